/** Minimal histories in which the simulation found a bug, each with the bug as its title. */

import { expect, test } from 'vitest';
import type { Settings } from './daemon/sim-config.ts';
import type { Action } from './history/operations.ts';
import { runHistory } from './sim-run.ts';

const SETTINGS: Settings = {
  isPatched: true,
  areEndpointsSynced: true,
  areSlicesSynced: false,
  hasReferences: false,
  hasLeaderElection: false,
  hasOwner: false,
  requiresService: false,
  isMapped: false,
  naming: 'short',
};
const ENDPOINTS = { plural: 'endpoints', annotations: {}, labels: {}, ips: 1 } as const;

/** What is violated when these happen one after the other, each once the one before has settled. */
function history(actions: readonly Action[]): Promise<string[]> {
  const operations = actions.map((action, at) => ({ ...action, atMs: 10_000 * (at + 1) }));
  const parts = { daemons: 1, hasDryRun: false, isCalm: false };
  return runHistory({ seed: 1, ...parts, settings: SETTINGS, operations });
}

test('a copy that another client applied again in the place of another copy is not touched', async () => {
  const clone = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'clone', plural: 'endpoints', object: 0, at: 1 },
    { kind: 'put', object: 1, ...ENDPOINTS },
  ]);
  expect(clone).toEqual([]);
});

test('a copy with a damaged name stays that of its own object, not of another one with the same host name', async () => {
  const damaged = await history([
    { kind: 'put', object: 3, ...ENDPOINTS },
    { kind: 'put', object: 4, ...ENDPOINTS },
    { kind: 'damage', plural: 'endpoints', object: 3, key: 'vcluster.loft.sh/object-name', value: null },
  ]);
  expect(damaged).toEqual([]);
});

test('a value on its way to the virtual side does not arrive in its translated form when the patch is removed meanwhile', async () => {
  const edit = {
    plural: 'endpoints',
    side: 'host',
    object: 0,
    key: 'example.com/team',
    value: 'v1',
  } as const;
  const interrupted = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'crash', daemon: 0, afterWrites: 1, downMs: 25_000 },
    { kind: 'annotate', ...edit },
    { kind: 'configure', settings: { isPatched: false }, isRestart: true },
  ]);
  expect(interrupted).toEqual([]);
});
