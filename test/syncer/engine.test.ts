/** What the engine does beyond single keys: the evidence for deletions, and copies in namespaces that are no longer mapped; and which configurations
 * need another engine. */

import { expect, test } from 'vitest';
import { needsNewEngine } from '../../src/syncer/engine.ts';
import { validConfig } from '../cli/config/setup.ts';
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

test.each<[string, string, boolean]>([
  ['a value that no expression reads', 'networking: {podCIDR: 10.2.0.0/16}', false],
  ['a value beside one that an expression reads', 'controlPlane: {statefulSet: {labels: {other: x}}}', false],
  ['a value that an expression reads', 'controlPlane: {statefulSet: {labels: {team: shop}}}', true],
  ['a text of which an expression reads the length', 'exportKubeConfig: {context: longer}', true],
  ['a kind that is synced', 'sync: {toHost: {endpointSlices: {enabled: false}}}', true],
])('another engine is needed after a change of %s: %s', (_, change, isNeeded) => {
  const expressions = [
    'context.vcluster.config.controlPlane.statefulSet.labels.team',
    'context.vcluster.config.exportKubeConfig.context.length',
  ];
  const patches = expressions.map((expression, at) => ({ path: `metadata.annotations.a${at}`, expression }));
  const patched = (text: string) => {
    const { sync, ...config } = validConfig(`endpointSyncer: {name: vc}\n${text}`);
    return { ...config, sync: { ...sync, endpoints: { ...sync.endpoints, patches } } };
  };
  expect(needsNewEngine(patched(''), patched(change))).toBe(isNeeded);
});
