/** The names that patches get for references of a kind that is not watched yet. */

import { expect, test } from 'vitest';
import { Postponed } from '../../../src/base/errors.ts';
import { References } from '../../../src/syncer/references/references.ts';
import { kindWorld } from './kind-world.ts';

const reference = (namespace: string, name: string) => ({
  patchIndex: 0,
  path: '',
  apiVersion: 'v1',
  kind: 'Secret',
  namespace,
  name,
});
const TLS = reference('shop', 'tls');

test('no reconcile waits until the caches of a kind that an object names are filled', async () => {
  await using world = kindWorld();
  const { kinds, prepare } = new References(world.environment, await world.named(), []);
  kinds.start(world.signal);
  const postponed = thrownBy(() => prepare([TLS]));
  expect(postponed).toBeInstanceOf(Postponed);
  expect(kinds.caches('v1 Secret')).toBeUndefined();
  await (postponed as Postponed).until;
  expect(kinds.caches('v1 Secret')).toBeDefined();
  expect(thrownBy(() => prepare([TLS]))).toBeUndefined();
});

function thrownBy(call: () => void): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

test('while its kind is not watched, a copy keeps the name of an object of the host, and no other one', async () => {
  await using world = kindWorld();
  const { lookup } = new References(world.environment, await world.named(), []);
  const kept = (name: string) => lookup(TLS, 'toHost', () => ({ namespace: 'host', name }));
  expect([kept('tls'), kept('other')]).toEqual([{ namespace: 'host', name: 'tls' }, undefined]);
  expect(lookup(reference('host', 'tls'), 'toVirtual')).toBeUndefined();
});
