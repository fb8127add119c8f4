/** A pair is kept in step: the host is written first, and an interruption between both writes loses nothing. */

import { expect, test } from 'vitest';
import { failure } from '../../../src/kube/status-error.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { annotated, changesOf, clustersAfter, object, rehearsed, type Clusters } from '../memory-world.ts';

const virtual = object({ annotations: { a: '1', b: '1' } }, { subsets: [] });
const [copy = virtual] =
  clustersAfter(await rehearsed({ virtual: { Endpoints: [virtual] } })).host.Endpoints ?? [];

const pair = (changed: { readonly virtual?: KubeObject; readonly host?: KubeObject }): Clusters => ({
  virtual: { Endpoints: [changed.virtual ?? virtual] },
  host: { Endpoints: [changed.host ?? copy] },
});

/** The annotations `a` and `b` of both sides. */
function values(clusters: Clusters): unknown {
  const of = (objects: readonly KubeObject[] = []): unknown =>
    objects.map(({ metadata: { annotations } }) => [annotations?.['a'], annotations?.['b']]);
  return { virtual: of(clusters.virtual?.Endpoints), host: of(clusters.host?.Endpoints) };
}

const HOST = 'host host/web-x-shop-x-vc updated: ';
const VIRTUAL = 'virtual shop/web updated: changed on the host';

test.each<[string, Clusters, readonly string[], unknown]>([
  ['the copy', pair({ host: annotated(copy, { a: '2' }) }), [`${HOST}bookkeeping`, VIRTUAL], ['2', '1']],
  [
    'one key on each side',
    pair({ virtual: annotated(virtual, { b: '2' }), host: annotated(copy, { a: '2' }) }),
    [`${HOST}differs from the virtual object`, VIRTUAL],
    ['2', '2'],
  ],
  [
    'the content of the copy, which is drift',
    pair({ host: { ...copy, subsets: [{ addresses: [{ ip: '1.1.1.1' }] }] } }),
    [`${HOST}differs from the virtual object`],
    ['1', '1'],
  ],
])('%s has changed', async (_, clusters, changes, both) => {
  const result = await rehearsed(clusters);
  expect(changesOf(result)).toEqual(changes);
  expect(values(clustersAfter(result))).toEqual({ virtual: [both], host: [both] });
  expect(clustersAfter(result).host.Endpoints?.[0]?.['subsets']).toEqual([]);
});

test('a sync that ended between the write of the host and that of the virtual object goes on from there', async () => {
  const edited = pair({ host: annotated(copy, { a: '2' }) });
  const rejecting = await rehearsed(edited, {
    admit: (_plural, stored, previous) => {
      // Only the virtual object is in this namespace.
      if (previous !== undefined && stored.metadata.namespace === 'shop')
        throw failure(403, 'Forbidden', 'refused');
      return stored;
    },
  });
  const interrupted = clustersAfter(rejecting);
  expect(values(interrupted)).toEqual({ virtual: [['1', '1']], host: [['2', '1']] });
  expect(interrupted.host.Endpoints?.[0]?.metadata.annotations).not.toEqual(
    edited.host?.Endpoints?.[0]?.metadata.annotations,
  );
  const result = await rehearsed(interrupted);
  expect(changesOf(result)).toEqual([VIRTUAL]);
  expect(values(clustersAfter(result))).toEqual({ virtual: [['2', '1']], host: [['2', '1']] });
});
