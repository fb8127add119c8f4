/** While an object is being deleted on either side, nothing new reaches the virtual one, and what flows one way reaches the host. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { annotated, changesOf, clustersAfter, object, rehearsed, type Clusters } from '../memory-world.ts';

const virtual = object({ annotations: { a: '1', b: '1' } }, { subsets: [] });
const [copy = virtual] =
  clustersAfter(await rehearsed({ virtual: { Endpoints: [virtual] } })).host.Endpoints ?? [];

const DELETED = '2025-12-31T23:00:00Z';

function terminating(given: KubeObject): KubeObject {
  const metadata = { ...given.metadata, deletionTimestamp: DELETED, finalizers: ['example.com/hold'] };
  return { ...given, metadata };
}

const addresses = (...ips: readonly string[]) => [{ addresses: ips.map((ip) => ({ ip })) }];
const [endpointsOf, annotationsOf] = [
  (clusters: Clusters, side: 'virtual' | 'host') => clusters[side]?.Endpoints?.[0],
  (given: KubeObject | undefined) => given?.metadata.annotations ?? {},
];

const VALUES = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3'), {
  noNullPrototype: true,
});
const SUBSETS = fc.constantFrom(addresses(), addresses('10.0.0.1'), addresses('10.0.0.1', '10.0.0.2'));

test('a copy that is being deleted gets what flows one way, and nothing of it is read back', async () => {
  const arbitrary = fc.record({
    values: VALUES,
    hostValues: VALUES,
    subsets: SUBSETS,
    hostSubsets: SUBSETS,
    // The virtual object may have been created again since.
    uid: fc.constantFrom(virtual.metadata.uid ?? '', 'again'),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ values, hostValues, subsets, hostSubsets, uid }) => {
      const original = { ...virtual, metadata: { ...virtual.metadata, uid, annotations: values }, subsets };
      const held = terminating({ ...annotated(copy, hostValues), subsets: hostSubsets });
      const clusters = { virtual: { Endpoints: [original] }, host: { Endpoints: [held] } };
      const result = await rehearsed(clusters);
      const after = clustersAfter(result);
      expect(changesOf(result).filter((change) => change.startsWith('virtual'))).toEqual([]);
      expect(annotationsOf(endpointsOf(after, 'virtual'))).toEqual(values);
      const host = endpointsOf(after, 'host');
      expect(host?.['subsets']).toEqual(subsets);
      expect(host?.metadata).toMatchObject({
        uid: copy.metadata.uid,
        deletionTimestamp: DELETED,
        finalizers: ['example.com/hold'],
      });
      const changed = Object.entries(values).filter(([key, value]) => annotationsOf(virtual)[key] !== value);
      expect(annotationsOf(host)).toMatchObject(Object.fromEntries(changed));
      expect(result.objects.map(({ decision }) => decision)).toEqual([
        { kind: 'terminating', next: 'recreate' },
      ]);
      expect(changesOf(await rehearsed(after))).toEqual([]);
    }),
    { numRuns: costlyRuns(100) },
  );
});

test('a virtual object that is being deleted stays in sync, and nothing new is written to it', async () => {
  const arbitrary = fc.record({ values: VALUES, hostValues: VALUES, subsets: SUBSETS });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ values, hostValues, subsets }) => {
      const held = terminating({ ...annotated(virtual, values), subsets });
      const clusters = {
        virtual: { Endpoints: [held] },
        host: { Endpoints: [annotated(copy, hostValues)] },
      };
      const result = await rehearsed(clusters);
      const after = clustersAfter(result);
      expect(changesOf(result).filter((change) => change.startsWith('virtual'))).toEqual([]);
      expect(endpointsOf(after, 'host')?.['subsets']).toEqual(subsets);
      expect(changesOf(await rehearsed(after))).toEqual([]);
    }),
    { numRuns: costlyRuns(100) },
  );
});

test('what holds the host name and is being deleted is left alone', async () => {
  const { name, namespace = '' } = copy.metadata;
  const foreign = terminating(object({ name, namespace, uid: 'f', labels: {} }));
  const result = await rehearsed({ virtual: { Endpoints: [virtual] }, host: { Endpoints: [foreign] } });
  expect(changesOf(result)).toEqual([]);
  expect(result.objects.map(({ decision }) => decision)).toEqual([{ kind: 'terminating', next: 'create' }]);
});

test('a copy without a virtual object whose deletion a finalizer holds up is not deleted twice', async () => {
  const result = await rehearsed({ host: { Endpoints: [terminating(copy)] } });
  expect(changesOf(result)).toEqual([]);
});
