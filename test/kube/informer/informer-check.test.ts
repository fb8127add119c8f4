/** When a cache is reported as ready. */

import { expect, test } from 'vitest';
import { informerCheck } from '../../../src/kube/informer/informer-check.ts';
import type { ObservableInformer } from '../../../src/kube/informer/informer.ts';

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
