/** When a cache is reported as ready, and which configurations need another generation. */

import { expect, test } from 'vitest';
import type { ObservableInformer } from '../../src/kube/informer/informer.ts';
import { informerCheck } from '../../src/syncer/engine.ts';
import { isSameGeneration } from '../../src/syncer/generation.ts';
import { validConfig } from '../cli/config/setup.ts';

type Cache = Pick<ObservableInformer, 'condition' | 'isSynced' | 'stalenessMs' | 'size'>;

const SYNCED: Cache = {
  condition: { lastError: undefined, isRewound: false } as Cache['condition'], // what is read
  isSynced: true,
  stalenessMs: 1400,
  size: 3,
};
const failing = (isRewound: boolean): Pick<Cache, 'condition'> => ({
  condition: { lastError: 'refused', isRewound } as Cache['condition'], // what is read
});

test.each<[string, Partial<Cache>, boolean, string]>([
  ['synced', {}, true, '3 objects, last event 1 s ago'],
  ['synced, whose watch fails', failing(false), true, '3 objects, last event 1 s ago, last error: refused'],
  ['not synced', { isSynced: false }, false, 'not synced yet'],
  [
    'not synced, with a reason',
    { isSynced: false, ...failing(false) },
    false,
    'not synced yet, last error: refused',
  ],
  [
    'of a server that was restored',
    failing(true),
    false,
    'the server was restored, its objects are not listed yet, last error: refused',
  ],
  [
    'without an event for almost five minutes',
    { stalenessMs: 299_999 },
    true,
    '3 objects, last event 300 s ago',
  ],
  ['without an event for five minutes', { stalenessMs: 300_000 }, false, '3 objects, last event 300 s ago'],
])('a cache %s', (_, change, isOk, detail) => {
  const cache = { ...SYNCED, ...change } as ObservableInformer; // what is read
  expect(informerCheck(cache)).toEqual({ isOk, detail });
});

test.each<[string, string, boolean]>([
  ['a value that no expression reads', 'networking: {podCIDR: 10.2.0.0/16}', true],
  ['a value beside one that an expression reads', 'controlPlane: {statefulSet: {labels: {other: x}}}', true],
  ['a value that an expression reads', 'controlPlane: {statefulSet: {labels: {team: shop}}}', false],
  ['a text of which an expression reads the length', 'exportKubeConfig: {context: longer}', false],
  ['a kind that is synced', 'sync: {toHost: {endpointSlices: {enabled: false}}}', false],
])('another generation is needed after a change of %s: %s', (_, change, isSame) => {
  const expressions = [
    'context.vcluster.config.controlPlane.statefulSet.labels.team',
    'context.vcluster.config.exportKubeConfig.context.length',
  ];
  const patches = expressions.map((expression, at) => ({ path: `metadata.annotations.a${at}`, expression }));
  const patched = (text: string) => {
    const { sync, ...config } = validConfig(`endpointSyncer: {name: vc}\n${text}`);
    return { ...config, sync: { ...sync, endpoints: { ...sync.endpoints, patches } } };
  };
  expect(isSameGeneration(patched(''), patched(change))).toBe(isSame);
});
