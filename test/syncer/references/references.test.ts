/** The names that patches get for references of a kind that is not watched yet. */

import { expect, test } from 'vitest';
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

test('while its kind is not watched, a copy keeps the name of an object of the host, and no other one', async () => {
  await using world = kindWorld();
  const { lookup } = new References(world.environment, await world.named(), {
    virtual: () => undefined,
    hostCopy: () => undefined,
    enqueue: () => undefined,
    all: () => [],
  });
  const kept = (name: string) => lookup(TLS, 'toHost', () => ({ namespace: 'host', name }));
  expect([kept('tls'), kept('other')]).toEqual([{ namespace: 'host', name: 'tls' }, undefined]);
  expect(lookup(reference('host', 'tls'), 'toVirtual')).toBeUndefined();
});
