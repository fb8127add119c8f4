/** EndpointSlices: which are synced, the labels of a copy, and what a server stores. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject, StringMap } from '../../../src/kube/object.ts';
import {
  createEndpointSliceKind,
  endpointSliceContent,
  exclusion,
  MANAGED_BY,
  SERVICE_NAME,
} from '../../../src/syncer/kinds/endpoint-slices.ts';
import type { Recreation } from '../../../src/syncer/kinds/kind.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { mappings, translators } from '../translate/setup.ts';

const RECORD = { 'endpoint-syncer/last-synced': '{}' };
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const { names } = translators();

function slice(labels: StringMap, rest: JsonObject = {}): KubeObject {
  return { metadata: { name: 'web-1', namespace: 'shop', labels }, ...rest };
}

describe('a slice is synced', () => {
  test.each<[string, StringMap, boolean, string | undefined]>([
    ['of a client', { [SERVICE_NAME]: 'web', [MANAGED_BY]: 'me' }, true, undefined],
    ['without a manager', { [SERVICE_NAME]: 'web' }, true, undefined],
    ['without a Service', { [MANAGED_BY]: 'me' }, true, 'no service name'],
    ['of a Service without a name', { [SERVICE_NAME]: '' }, true, 'no service name'],
    [
      'of the slice controller',
      { [SERVICE_NAME]: 'web', [MANAGED_BY]: 'endpointslice-controller.k8s.io' },
      false,
      'made by the EndpointSlice controller',
    ],
    [
      'mirrored, beside Endpoints',
      { [SERVICE_NAME]: 'web', [MANAGED_BY]: MIRRORING },
      true,
      'mirrored from Endpoints',
    ],
    ['mirrored, without Endpoints', { [SERVICE_NAME]: 'web', [MANAGED_BY]: MIRRORING }, false, undefined],
    [
      'managed by a word of every object',
      { [SERVICE_NAME]: 'web', [MANAGED_BY]: 'toString' },
      true,
      undefined,
    ],
  ])('%s', (_, labels, isEndpointsSynced, reason) => {
    expect(exclusion(slice(labels), { isEndpointsSynced })).toBe(reason);
  });
});

describe('the labels of a copy', () => {
  const toHost = (labels: StringMap, translator = names) =>
    endpointSliceContent.ownLabels?.(slice(labels), translator);
  const back = (labels: StringMap, namespace = 'test') =>
    endpointSliceContent.ownLabelsToVirtual?.({ metadata: { name: 'x', namespace, labels } }, 'shop', names);

  test.each<[string, StringMap, StringMap]>([
    ['name the host Service', { [SERVICE_NAME]: 'web' }, { [SERVICE_NAME]: 'web-x-shop-x-suffix' }],
    [
      'keep a name that another syncer has translated',
      { [SERVICE_NAME]: 'web-x-shop-x-suffix' },
      { [SERVICE_NAME]: 'web-x-shop-x-suffix' },
    ],
    [
      'translate a name that looks translated, of another namespace',
      { [SERVICE_NAME]: 'web-x-other-x-suffix' },
      { [SERVICE_NAME]: names.toHost({ namespace: 'shop', name: 'web-x-other-x-suffix' })?.name ?? '' },
    ],
    ['hide the mirroring controller', { [MANAGED_BY]: MIRRORING }, { [MANAGED_BY]: 'endpoint-syncer' }],
    ['keep another manager', { [MANAGED_BY]: 'me' }, { [MANAGED_BY]: 'me' }],
    ['are none without own ones', { app: 'x' }, {}],
  ])('%s', (_, labels, expected) => {
    expect(toHost(labels)).toEqual(expected);
  });

  test('name no Service of a namespace that is not mapped', () => {
    const only = translators(mappings({ a: 'h' }, true)).names;
    expect(toHost({ [SERVICE_NAME]: 'web' }, only)).toEqual({});
  });

  test('are those of the virtual slice again, whatever its Service and its manager', () => {
    const name = fc.stringMatching(/^[a-z]([-a-z0-9]{0,20}[a-z0-9])?$/);
    fc.assert(
      fc.property(name, fc.constantFrom(MIRRORING, 'me', ''), (service, manager) => {
        const labels = { [SERVICE_NAME]: service, [MANAGED_BY]: manager };
        fc.pre(!names.toVirtualCandidates({ namespace: 'test', name: service }).length);
        expect(back(toHost(labels) ?? {})).toEqual(labels);
      }),
    );
  });

  test.each([
    ['a Service of another namespace', 'web-x-other-x-suffix', 'test'],
    ['a Service of the host', 'nginx', 'test'],
    ['a Service in a namespace of no copy', 'web-x-shop-x-suffix', 'elsewhere'],
  ])('that name %s do not reach the virtual slice', (_, service, namespace) => {
    expect(back({ [SERVICE_NAME]: service }, namespace)).toEqual({});
  });
});

test.each<[string, JsonObject, JsonObject]>([
  [
    'empty conditions and hints',
    { endpoints: [{ addresses: ['1.1.1.1'], conditions: {}, hints: {} }] },
    { endpoints: [{ addresses: ['1.1.1.1'] }] },
  ],
  ['no ports', { ports: [], endpoints: null }, {}],
  ['a port without a protocol', { ports: [{ port: 80 }] }, { ports: [{ port: 80, protocol: 'TCP' }] }],
  [
    'a port without a number, which means all',
    { ports: [{ name: 'a' }] },
    { ports: [{ name: 'a', protocol: 'TCP' }] },
  ],
  [
    'a topology, which v1 does not write',
    { endpoints: [{ addresses: ['1.1.1.1'], deprecatedTopology: { a: 'b' } }, { addresses: ['1.1.1.2'] }] },
    { endpoints: [{ addresses: ['1.1.1.1'] }, { addresses: ['1.1.1.2'] }] },
  ],
])('a server stores %s as it returns it', (_, sent, stored) => {
  expect(endpointSliceContent.stored(sent)).toEqual(stored);
});

describe('a copy is deleted and created again', () => {
  const kind = createEndpointSliceKind({
    isEndpointsSynced: false,
    addressesOf: () => [],
    neverCopied: () => undefined,
    localServiceOf: () => undefined,
  });
  const OURS = 'endpoint-syncer';

  const VIRTUAL = slice({ [SERVICE_NAME]: 'web' });

  test.each<[string, StringMap, StringMap, Recreation]>([
    ['nothing has changed', { [MANAGED_BY]: 'me' }, { [MANAGED_BY]: 'me' }, 'never'],
    ['a mirrored slice becomes ours', { [MANAGED_BY]: MIRRORING }, { [MANAGED_BY]: OURS }, 'always'],
    ['a slice of another controller becomes ours', { [MANAGED_BY]: 'me' }, { [MANAGED_BY]: OURS }, 'always'],
    ['a controller has adopted it', { [MANAGED_BY]: MIRRORING }, {}, 'always'],
    ['its manager changes', { [MANAGED_BY]: 'me' }, { [MANAGED_BY]: 'you' }, 'always'],
    ['it gets a manager', {}, { [MANAGED_BY]: 'me' }, 'never'],
    ['it is ours and gets a manager', { [MANAGED_BY]: OURS }, { [MANAGED_BY]: 'me' }, 'never'],
    ['it is ours and loses that', { [MANAGED_BY]: OURS }, {}, 'never'],
    ['its Service changes', { [SERVICE_NAME]: 'a' }, { [SERVICE_NAME]: 'b' }, 'forReaders'],
    ['its Service is taken off', {}, { [SERVICE_NAME]: 'b' }, 'forReaders'],
    ['another label changes', { app: 'a' }, { app: 'b' }, 'never'],
  ])('where %s: %o becomes %o: %s', (_, actual, wanted, recreation) => {
    const service = { [SERVICE_NAME]: 'web' };
    const given = Object.hasOwn(wanted, SERVICE_NAME) ? {} : service;
    const [next, now] = [slice({ ...given, ...wanted }), slice({ ...given, ...actual })];
    expect(kind.recreationOf(next, now, VIRTUAL)).toBe(recreation);
  });

  test('where its address type changes', () => {
    const [next, now] = [slice({}, { addressType: 'IPv6' }), slice({}, { addressType: 'IPv4' })];
    expect(kind.recreationOf(next, now, VIRTUAL)).toBe('always');
  });

  test.each<[string, string, StringMap, readonly [string, number][], Recreation]>([
    [
      'vCluster labels it with the name of the virtual Service',
      'web',
      RECORD,
      [
        [OURS, 1],
        ['vcluster', 2],
      ],
      'never',
    ],
    [
      'vCluster does within the second of our write',
      'web',
      RECORD,
      [
        [OURS, 1],
        ['vcluster', 1],
      ],
      'never',
    ],
    ['that name is on a copy that this program never wrote', 'web', {}, [['vcluster', 2]], 'forReaders'],
    [
      'a client of the host sets that name',
      'web',
      RECORD,
      [
        ['vcluster', 1],
        [OURS, 2],
        ['kubectl', 3],
      ],
      'forReaders',
    ],
    ['nothing says who has set that name', 'web', RECORD, [], 'forReaders'],
    [
      'vCluster sets another name',
      'api',
      RECORD,
      [
        [OURS, 1],
        ['vcluster', 2],
      ],
      'forReaders',
    ],
  ])('where %s: %s', (_, name, annotations, writes, recreation) => {
    const next = slice({ [SERVICE_NAME]: 'web-x-shop-x-suffix' });
    const managedFields = writes.map(([manager, second]) => ({
      manager,
      operation: 'Update',
      time: `2026-01-01T00:00:0${second}Z`,
    }));
    const now = { metadata: { ...slice({ [SERVICE_NAME]: name }).metadata, annotations, managedFields } };
    expect(kind.recreationOf(next, now, VIRTUAL)).toBe(recreation);
  });
});

test('a value of an endpoint belongs to its addresses', () => {
  const elementAt = (path: ConcretePath) => endpointSliceContent.elementAt(path);
  expect(elementAt(['endpoints', 2, 'zone'])).toEqual({ at: 1, idMember: 'addresses' });
  for (const path of [
    ['endpoints', 2, 'addresses', 0],
    ['endpoints', 2],
    ['endpoints', '2', 'zone'],
    ['ports', 0, 'port'],
  ])
    expect(elementAt(path)).toBeUndefined();
});
