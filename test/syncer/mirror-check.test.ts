/** Which copies of Endpoints are reported because the host makes no EndpointSlice of them, and when. */

import { expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { ENDPOINT_SLICES, type KubeObject, type ObjectMeta, type Resource } from '../../src/kube/object.ts';
import { failure } from '../../src/kube/status-error.ts';
import type { ClusterClient, ListOptions } from '../../src/kube/types.ts';
import { checkMirrors } from '../../src/syncer/mirror-check.ts';
import { FakeClock } from '../support/fake-clock.ts';

const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const SECOND = 1000;

function endpointsOf(
  name: string,
  metadata: Partial<ObjectMeta> = {},
  subsets?: KubeObject['subsets'],
): KubeObject {
  const filled = [{ notReadyAddresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }];
  return { metadata: { name, namespace: 'host', uid: `u-${name}`, ...metadata }, subsets: subsets ?? filled };
}

function serviceOf(name: string, spec: object = {}): KubeObject {
  return { metadata: { name, namespace: 'host', uid: `s-${name}` }, spec } as KubeObject; // built from JSON parts
}

function sliceOf(name: string, manager = MIRRORING): KubeObject {
  const labels = { 'kubernetes.io/service-name': name, 'endpointslice.kubernetes.io/managed-by': manager };
  return { metadata: { name: `${name}-1`, namespace: 'host', labels } };
}

interface Host {
  readonly copies?: readonly KubeObject[];
  readonly services?: readonly KubeObject[];
  readonly slices?: readonly KubeObject[] | 'forbidden';
}

/** The names of the copies that are reported, in time; each state of the host lasts for as many seconds. */
async function reported(...states: readonly (readonly [seconds: number, host: Host])[]) {
  const clock = new FakeClock();
  let host: Host = {};
  const names: string[] = [];
  const notes = new Set<string>();
  let lists = 0;
  const find = (name: string): KubeObject | undefined =>
    host.services?.find(({ metadata }) => metadata.name === name);
  const client = {
    get: async (_: Resource, { name }: { name: string }) => {
      const found = find(name);
      if (found === undefined) throw failure(404, 'NotFound', 'not found');
      return found;
    },
    list: async (resource: Resource, { labelSelector = '' }: ListOptions = {}) => {
      lists += 1;
      expect(resource).toBe(ENDPOINT_SLICES);
      if (host.slices === 'forbidden') throw failure(403, 'Forbidden', 'no');
      const terms = labelSelector.split(',').map((term) => term.split('='));
      const items = (host.slices ?? []).filter(({ metadata: { labels = {} } }) =>
        terms.every(([key = '', value]) => labels[key] === value),
      );
      return { resourceVersion: '1', continueToken: '', items };
    },
  } as unknown as ClusterClient; // what the check needs
  const stopping = new AbortController();
  const running = checkMirrors(
    {
      client,
      copies: () => (host.copies ?? []).map((copy) => ({ virtual: copy, host: copy })),
      hostServices: { get: (key) => find(key.replace('host/', '')) },
      report: ({ metadata }, { note }) => {
        names.push(metadata.name);
        notes.add(note);
      },
      clock,
      logger: silentLogger,
    },
    stopping.signal,
  );
  for (const [seconds, state] of states) {
    host = state;
    await clock.advanceAsync(seconds * SECOND);
  }
  stopping.abort();
  await running;
  return { names, notes, lists };
}

const UNMIRRORED: Host = { copies: [endpointsOf('web')], services: [serviceOf('web')] };

test('a copy without a slice is reported after 30 s, and again every five minutes with the same note', async () => {
  expect((await reported([29, UNMIRRORED])).names).toEqual([]);
  const { names, notes } = await reported([60, UNMIRRORED]);
  expect(names).toEqual(['web']);
  expect([...notes]).toEqual([expect.stringContaining('sync.toHost.endpoints.enabled: false')]);
  const later = await reported([30 + 5 * 60 + 10, UNMIRRORED]);
  expect([later.names, later.notes.size]).toEqual([['web', 'web'], 1]);
});

test.each<[string, Host]>([
  ['with a slice', { ...UNMIRRORED, slices: [sliceOf('web')] }],
  ['without a host Service', { ...UNMIRRORED, services: [] }],
  [
    'of a Service with a selector',
    { ...UNMIRRORED, services: [serviceOf('web', { selector: { app: 'x' } })] },
  ],
  ['of an ExternalName', { ...UNMIRRORED, services: [serviceOf('web', { type: 'ExternalName' })] }],
  [
    'of which no controller makes a slice',
    {
      ...UNMIRRORED,
      copies: [
        endpointsOf(
          'web',
          {},
          [80, 81].map((port) => ({ addresses: [{ ip: '10.0.0.1' }], ports: [{ port }] })),
        ),
      ],
    },
  ],
  ['without addresses', { ...UNMIRRORED, copies: [endpointsOf('web', {}, [])] }],
  [
    'that the controller leaves alone',
    {
      ...UNMIRRORED,
      copies: [endpointsOf('web', { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } })],
    },
  ],
  [
    'of a leader election',
    {
      ...UNMIRRORED,
      copies: [endpointsOf('web', { annotations: { 'control-plane.alpha.kubernetes.io/leader': '{}' } })],
    },
  ],
  ['where slices may not be listed', { ...UNMIRRORED, slices: 'forbidden' }],
])('a copy %s is not reported', async (_, host) => {
  expect((await reported([20 * 60, host])).names).toEqual([]);
});

test('a slice that another program wrote does not count', async () => {
  const slices = [sliceOf('web', 'endpoint-syncer')];
  expect((await reported([60, { ...UNMIRRORED, slices }])).names).toEqual(['web']);
});

test('a controller that starts later ends it, and another Service begins it again', async () => {
  const mirrored = { ...UNMIRRORED, slices: [sliceOf('web')] };
  const services = [{ metadata: { name: 'web', namespace: 'host', uid: 'another' }, spec: {} }];
  const { names } = await reported([60, UNMIRRORED], [20 * 60, mirrored], [60, { ...UNMIRRORED, services }]);
  expect(names).toEqual(['web', 'web']);
});

test('many copies are looked for in one list, and those that have their slice never again', async () => {
  const all = Array.from({ length: 200 }, (_, i) => `web-${i}`);
  const host = {
    copies: all.map((name) => endpointsOf(name)),
    services: all.map((name) => serviceOf(name)),
    slices: all.slice(1).map((name) => sliceOf(name)),
  };
  expect(await reported([60, host])).toMatchObject({ names: ['web-0'], lists: 1 });
});
