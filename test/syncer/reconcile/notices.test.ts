/** Whom a notice names, and what it advises. */

import { expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { contestedKeyNotice, contestedNotice, echoNotice } from '../../../src/syncer/reconcile/notices.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';

/** Written by these, each in its second. */
function writtenBy(...writers: readonly (readonly [manager: string, second: number])[]): KubeObject {
  const managedFields = writers.map(([manager, second]) => ({
    manager,
    operation: 'Update',
    time: `2026-01-01T00:00:0${second}Z`,
  }));
  return { metadata: { name: 'web', namespace: 'shop', managedFields } };
}

const OURS = 'endpoint-syncer';

test.each<[string, KubeObject, RegExp]>([
  [
    'the one that wrote last',
    writtenBy([OURS, 1], ['a', 3], ['b', 2]),
    /^Field manager "a" .*Stop the other writer/u,
  ],
  ['the other one, which wrote in the same second', writtenBy([OURS, 2], ['a', 2]), /^Field manager "a"/u],
  ['this program, which wrote last', writtenBy([OURS, 3], ['a', 2]), /^Another daemon .*leaderElection/u],
  ['this program, the only writer', writtenBy([OURS, 1]), /^Another daemon/u],
  [
    'the one that wrote after an earlier write of ours',
    writtenBy([OURS, 1], [OURS, 3], ['a', 2]),
    /^Another daemon/u,
  ],
  ['no one, where the API server records none', { metadata: { name: 'web' } }, /^Field manager "unknown"/u],
])('a contested copy names %s', (_, host, note) => {
  expect(contestedNotice(host, 4000).note).toMatch(note);
  expect(contestedNotice(host, 4000).note).toContain('corrected again in 4 s');
});

test.each<[string, { left: readonly string[]; waitMs: number }, string]>([
  ['now', { left: [], waitMs: 0 }, 'It gets its own values back. '],
  ['after a delay', { left: ['a'], waitMs: 2000 }, 'It gets its own values back in 2 s. '],
  ['never, as they are unknown', { left: ['a', 'b'], waitMs: 0 }, 'are not known any more: set a, b again. '],
  ['now, but for bookkeeping', { left: [LAST_SYNCED], waitMs: 0 }, 'It gets its own values back. '],
])('values that were copied back are restored %s', (_, { left, waitMs }, remedy) => {
  const { note } = echoNotice(writtenBy(['vcluster', 1]), { keys: ['a', 'b'], left }, 'Set it.', waitMs);
  expect(note).toContain('Field manager "vcluster" copies the host copy back into this object (a, b)');
  expect(note).toContain(remedy);
  expect(note).toMatch(/ Set it\.$/u);
});

test.each([
  ['annotations', 'annotation', 'excludeAnnotations'],
  ['labels', 'label', 'excludeLabels'],
])('a contested key of the %s names both writers and the setting', (member, what, setting) => {
  const pair = { virtual: writtenBy(['a', 1]), host: writtenBy(['b', 1]) };
  const { note } = contestedKeyNotice(pair, `${member} example.com/k`, 1000);
  expect(note).toMatch(/^Field managers "a" in this cluster and "b" on the host/u);
  expect(note).toContain(`the ${what} example.com/k; it is synced again in 1 s`);
  expect(note).toContain(`endpointSyncer.metadata.${setting}.`);
});
