/** What the engine does beyond single keys: the evidence for deletions, and copies in namespaces that are no longer mapped. */

import { expect, test } from 'vitest';
import { changesOf, clustersAfter, object, rehearsed, type Clusters } from './memory-world.ts';

const [kept, gone] = [object(), object({ name: 'db', uid: 'uid-2' })];
const { host } = clustersAfter(await rehearsed({ virtual: { Endpoints: [kept, gone] } }));
/** The virtual cluster is not known yet. */
const identity = { uid: 'a', known: undefined, isAdopted: false, lease: undefined };
const DELETED = 'host host/db-x-shop-x-vc deleted: virtual object is gone';

test.each<[string, Clusters, RegExp | undefined, readonly string[]]>([
  ['of which one original is there', { virtual: { Endpoints: [kept] }, host }, undefined, [DELETED]],
  ['of which none is there', { host }, /no object that any of the 2 copies on the host was made from/u, []],
  [
    'of which only another object of the same name is there',
    { virtual: { Endpoints: [object({ uid: 'other' })] }, host },
    /any of the 2 copies/u,
    ['host host/web-x-shop-x-vc updated: virtual object was re-created'],
  ],
])('copies %s', async (_, clusters, objection, changes) => {
  const result = await rehearsed(clusters, { identity });
  expect(result.objection ?? 'none').toMatch(objection ?? /^none$/u);
  expect(changesOf(result)).toEqual(changes);
});

const mapped = (target: string): string => `
endpointSyncer: {name: vc, host: {namespace: host}}
sync:
  toHost:
    endpointSlices: {enabled: false}
    namespaces: {enabled: true, mappings: {byName: {shop: ${target}}}}
`;

test('a copy in a namespace that is no longer mapped is deleted, and another one is created', async () => {
  const before = clustersAfter(await rehearsed({ virtual: { Endpoints: [kept] } }, {}, mapped('left')));
  const foreign = object({ namespace: 'left', name: 'foreign', uid: 'f' });
  const clusters = { ...before, host: { Endpoints: [...(before.host.Endpoints ?? []), foreign] } };
  const result = await rehearsed(clusters, {}, mapped('taken'));
  const keys = (clustersAfter(result).host.Endpoints ?? []).map(
    ({ metadata: { namespace, name } }) => `${namespace}/${name}`,
  );
  expect(keys.toSorted()).toEqual(['left/foreign', 'taken/web']);
});
