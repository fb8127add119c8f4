/** What the tenant is told of addresses that several objects give to one Service, and of those that the mirroring controller leaves out. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { objectKey, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import { SERVICE_NAME, serviceKeysOf } from '../../../src/syncer/kinds/endpoint-slices.ts';
import { BY_SERVICE } from '../../../src/syncer/kinds/kind.ts';
import type { VirtualCache } from '../../../src/syncer/kinds/relations.ts';
import { syncedKinds } from '../../../src/syncer/kinds/synced-kinds.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';
import { worldText } from '../../support/world-file.ts';

const CONFIG = configOf(`
endpointSyncer:
  name: vc
  host: {namespace: host}
  selector: {matchExpressions: [{key: out, operator: DoesNotExist}]}
`);
const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';

type Given = Readonly<{ endpoints?: KubeObject; slices?: readonly KubeObject[] }>;

/** The notes about one of the objects, by their reasons. */
function notesOf(object: KubeObject, { endpoints, slices = [] }: Given): Readonly<Record<string, string>> {
  const cacheOf = (objects: readonly KubeObject[]): VirtualCache => ({
    get: (key) => objects.find((one) => objectKey(one) === key),
    byIndex: (index, value) =>
      new Set(
        objects.flatMap((one) =>
          index === BY_SERVICE && serviceKeysOf(one).includes(value as never) ? [objectKey(one)] : [],
        ),
      ),
  });
  const caches = new Map([
    ['endpoints', cacheOf(endpoints === undefined ? [] : [endpoints])],
    ['endpointslices', cacheOf(slices)],
  ]);
  const plural = object === endpoints ? 'endpoints' : 'endpointslices';
  const found = syncedKinds(CONFIG, caches).find(({ kind }) => kind.resource.plural === plural);
  return Object.fromEntries((found?.kind.noticesOf(object) ?? []).map(({ reason, note }) => [reason, note]));
}

function objectsOf(file: string): KubeObject[] {
  return parseAllDocuments(worldText(file)).map((one) => one.toJS() as KubeObject);
}

function sliceOf(name: string, endpoint: JsonObject, port: JsonObject, labels: StringMap = {}): KubeObject {
  return {
    metadata: { name, namespace: 'shop', labels: { [SERVICE_NAME]: 'web', ...labels } },
    endpoints: [endpoint],
    ports: [port],
  };
}

function endpointsOf(list: string, addresses: readonly string[], labels: StringMap = {}): KubeObject {
  const subset = { [list]: addresses.map((ip) => ({ ip })), ports: [{ port: 80 }] };
  return { metadata: { name: 'web', namespace: 'shop', labels }, subsets: [subset] };
}

const at = (ip: string, ready?: boolean): JsonObject => ({
  addresses: [ip],
  ...(ready === undefined ? {} : { conditions: { ready } }),
});
const PORT = { port: 80, protocol: 'TCP' };

describe('an address in a slice and in the Endpoints of its Service', () => {
  const noteOf = (slice: KubeObject, labels: StringMap = {}): string | undefined =>
    notesOf(slice, { endpoints: endpointsOf('addresses', ['10.0.0.1'], labels), slices: [slice] })[
      'DuplicateEndpoints'
    ];

  test('is reported on each of them', () => {
    const slice = sliceOf('a', at('10.0.0.1'), PORT);
    expect(noteOf(slice)).toMatch(
      /^Address "10\.0\.0\.1" port 80 of Service "shop\/web" is also in Endpoints/u,
    );
    const endpoints = endpointsOf('addresses', ['10.0.0.1']);
    const notes = notesOf(endpoints, { endpoints, slices: [slice] });
    expect(notes['DuplicateEndpoints']).toContain('is also in EndpointSlice "shop/a"');
  });

  test.each<[string, KubeObject, StringMap]>([
    ['another address', sliceOf('a', at('10.0.0.2'), PORT), {}],
    ['another port', sliceOf('a', at('10.0.0.1'), { port: 81 }), {}],
    ['another protocol', sliceOf('a', at('10.0.0.1'), { port: 80, protocol: 'UDP' }), {}],
    ['another name of the port', sliceOf('a', at('10.0.0.1'), { ...PORT, name: 'x' }), {}],
    ['another Service', sliceOf('a', at('10.0.0.1'), PORT, { [SERVICE_NAME]: 'db' }), {}],
    ['Endpoints that are not selected', sliceOf('a', at('10.0.0.1'), PORT), { out: '' }],
    ['Endpoints that are not mirrored', sliceOf('a', at('10.0.0.1'), PORT), { [SKIP_MIRROR]: 'true' }],
  ])('is not reported of %s', (_, slice, labels) => {
    expect(noteOf(slice, labels)).toBeUndefined();
  });

  test.each(['True', 'false', '', '1'])('is reported where skip-mirror is %j', (value) => {
    expect(noteOf(sliceOf('a', at('10.0.0.1'), PORT), { [SKIP_MIRROR]: value })).toBeDefined();
  });
});

describe('two slices of a Service', () => {
  const [ready, notReady] = [sliceOf('a', at('10.0.0.1'), PORT), sliceOf('b', at('10.0.0.1', false), PORT)];

  test.each([ready, notReady])('that disagree whether an address is ready are reported on each', (slice) => {
    expect(notesOf(slice, { slices: [ready, notReady] })['DuplicateEndpoints']).toMatch(
      /^Address "10\.0\.0\.1" port 80 .* is ready in EndpointSlice "shop\/a" and not ready in EndpointSlice "shop\/b"\. .* may stop/u,
    );
  });

  test('that agree are not, nor one that is not selected', () => {
    expect(notesOf(ready, { slices: [ready, sliceOf('b', at('10.0.0.1', true), PORT)] })).toEqual({});
    const out = sliceOf('b', at('10.0.0.1', false), PORT, { out: '' });
    expect(notesOf(ready, { slices: [ready, out] })).toEqual({});
  });
});

test('what people wrote: slices that disagree are reported on each, Endpoints that are not mirrored on neither', () => {
  const slices = objectsOf('newground/13-disagree.yaml');
  for (const slice of slices)
    expect(notesOf(slice, { slices })['DuplicateEndpoints']).toContain('Address "192.0.2.23" port 5432');
  const [endpoints, slice] = objectsOf('newground/13-skip-mirror.yaml');
  if (endpoints === undefined || slice === undefined) throw new Error('two objects are expected');
  for (const one of [endpoints, slice]) expect(notesOf(one, { endpoints, slices: [slice] })).toEqual({});
});

test('an address has one value, whatever its text', () => {
  const group = fc.integer({ min: 0, max: 0xffff });
  const groups = fc.array(fc.oneof(fc.constant(0), group), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(groups, fc.boolean(), (numbers, isLong) => {
      const plain = numbers.map((one) => one.toString(16)).join(':');
      const padded = numbers.map((one) => one.toString(16).toUpperCase().padStart(4, '0')).join(':');
      const short = plain.replace(/(?:^|:)0(?::0)+(?:$|:)/u, '::');
      const slice = sliceOf('a', at(isLong ? padded : plain), PORT);
      const endpoints = endpointsOf('notReadyAddresses', [short]);
      const note = notesOf(slice, { endpoints, slices: [slice] })['DuplicateEndpoints'];
      expect(note).toContain('not ready in Endpoints "shop/web"');
    }),
  );
});

describe('what the mirroring controller leaves out', () => {
  const noteOf = (count: number, labels: StringMap = {}): string | undefined => {
    const addresses = Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    const endpoints = endpointsOf('notReadyAddresses', addresses, labels);
    return notesOf(endpoints, { endpoints })['TooManyAddresses'];
  };

  test('of a subset is counted', () => {
    expect(noteOf(1000)).toBeUndefined();
    expect(noteOf(1003)).toMatch(/^subsets\[0\] has 1003 addresses, .*: 3 get no traffic/u);
  });

  test.each<
    [
      what: string,
      subsets: readonly (readonly [name: string, port: number, ...ips: string[]])[],
      name?: string,
    ]
  >([
    [
      'two ports of no name',
      [
        ['', 80, 'a'],
        ['', 81, 'a'],
      ],
      'two ports without a name',
    ],
    [
      'two of one name',
      [
        ['x', 80, 'a', 'b'],
        ['x', 81, 'b', 'a'],
        ['y', 82, 'a', 'b'],
      ],
      'two ports of the name "x"',
    ],
    [
      'one port, in two subsets',
      [
        ['', 80, 'a'],
        ['', 80, 'b'],
      ],
    ],
    [
      'ports of different names',
      [
        ['x', 80, 'a'],
        ['y', 81, 'a'],
      ],
    ],
    [
      'one with another address',
      [
        ['', 80, 'a'],
        ['', 81, 'a', 'b'],
      ],
    ],
    [
      'one with another address in a third subset',
      [
        ['', 80, 'a'],
        ['', 81, 'a'],
        ['', 81, 'b'],
      ],
    ],
  ])('addresses with %s', (_what, subsets, expected) => {
    const object = endpointsOf('addresses', []);
    const made = subsets.map(([name, port, ...ips]) => ({
      addresses: ips.map((ip) => ({ ip: `10.0.0.${ip.charCodeAt(0)}` })),
      ports: [name === '' ? { port } : { name, port }],
    }));
    const endpoints = { ...object, subsets: made };
    const note = notesOf(endpoints, { endpoints })['NoEffect'] ?? '';
    expect(/two ports (?:without a name|of the name "\w+")/u.exec(note)?.[0]).toBe(expected);
  });

  test('is not reported where it makes no slice', () => {
    expect(noteOf(1003, { [SKIP_MIRROR]: 'true' })).toBeUndefined();
  });
});
