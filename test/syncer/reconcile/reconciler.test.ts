/** What one pass makes of a key, from what both sides hold, and that the next pass has nothing to do. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { changesOf, clustersAfter, object, rehearsed, type Clusters } from '../memory-world.ts';

const COPY = { name: 'web-x-shop-x-vc', namespace: 'host' };
const first = await rehearsed({ virtual: { Endpoints: [object()] } });
const [copy = object()] = clustersAfter(first).host.Endpoints ?? [];
const stray: KubeObject = {
  ...copy,
  metadata: {
    ...copy.metadata,
    name: 'old',
    uid: 'old',
    annotations: { ...copy.metadata.annotations, 'vcluster.loft.sh/object-host-name': 'old' },
  },
};
const byController = object({
  ...COPY,
  uid: 'f',
  labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' },
});
const withoutSelector = { Endpoints: [object()], Service: [object({ uid: 's' }, { spec: {} })] };
const optedOut = { labels: { 'vcluster.loft.sh/controlled-by': 'other' } };
const selecting = object({ ...COPY, uid: 's' }, { spec: { selector: { app: 'x' } } });

test.each<[string, Clusters, readonly string[], readonly string[]]>([
  [
    'only in the virtual cluster',
    { virtual: { Endpoints: [object()] } },
    ['host host/web-x-shop-x-vc created: no host copy'],
    ['Synced'],
  ],
  ['in step', clustersAfter(first), [], []],
  [
    'beside what the controller of the host still writes',
    {
      virtual: withoutSelector,
      host: { Endpoints: [byController], Service: [selecting] },
    },
    [],
    [],
  ],
  [
    'opted out, with a copy at the place of an earlier configuration, which stays',
    { virtual: { Endpoints: [object(optedOut)] }, host: { Endpoints: [stray] } },
    [],
    [],
  ],
  [
    'with a copy at the place of an earlier configuration',
    { virtual: { Endpoints: [object()] }, host: { Endpoints: [stray] } },
    ['host host/old deleted: belongs elsewhere now', 'host host/web-x-shop-x-vc created: no host copy'],
    ['Synced'],
  ],
])('an object %s', async (_, clusters, changes, reasons) => {
  const result = await rehearsed(clusters);
  expect(changesOf(result)).toEqual(changes);
  expect([...new Set(result.events.map(({ reason }) => reason))]).toEqual(reasons);
});

test('whatever both sides hold, the next pass writes nothing', async () => {
  const annotations = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2'), {
    noNullPrototype: true,
  });
  const subsets = fc.constantFrom<JsonValue[]>(
    [],
    [{ addresses: [{ ip: '10.0.0.1' }] }],
    [{ ports: [{ port: 80 }] }],
  );
  const state = fc.record({ annotations, subsets, uid: fc.constantFrom('uid-1', 'uid-2') });
  const side = fc.option(state);
  const stateOf = (
    { metadata }: KubeObject,
    { annotations, subsets, uid }: typeof state extends fc.Arbitrary<infer T> ? T : never,
  ) => ({
    metadata: { ...metadata, uid, annotations: { ...metadata.annotations, ...annotations } },
    subsets,
  });
  await fc.assert(
    fc.asyncProperty(side, side, async (virtual, host) => {
      const clusters = {
        virtual: { Endpoints: virtual === null ? [] : [stateOf(object(), virtual)] },
        host: { Endpoints: host === null ? [] : [stateOf(copy, host)] },
      };
      const result = await rehearsed(clusters);
      expect(changesOf(await rehearsed(clustersAfter(result)))).toEqual([]);
      expect(result.clusters.host.list('endpoints')).toHaveLength(virtual === null ? 0 : 1);
    }),
    { numRuns: costlyRuns(100) },
  );
});
