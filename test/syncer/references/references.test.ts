/** The names that patches get for references, in both directions. */

import { expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { References } from '../../../src/syncer/references/references.ts';
import { kindPolicy, resolveNamedKinds } from '../../../src/syncer/references/referenced-kind.ts';
import { kindWorld } from './kind-world.ts';

function secret(namespace: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name: 'tls', uid: namespace, resourceVersion: '5', ...metadata, namespace } };
}

async function referencesIn(world: ReturnType<typeof kindWorld>, isOpened = true): Promise<References> {
  const { environment, signal } = world;
  const named = await resolveNamedKinds(
    kindPolicy(environment.config.sync),
    environment.discoveries,
    () => undefined,
  );
  const references = new References(environment, named, {
    virtual: () => undefined,
    hostCopy: () => undefined,
    enqueue: () => undefined,
    all: () => [],
  });
  if (!isOpened) return references;
  references.kinds.start(signal);
  await references.kinds.whenOpened(signal);
  return references;
}

const reference = (namespace: string, name: string) => ({
  patchIndex: 0,
  path: '',
  apiVersion: 'v1',
  kind: 'Secret',
  namespace,
  name,
});
const TLS = reference('shop', 'tls');

test('an object of the virtual cluster, or of none, has the translated name, and is found by it', async () => {
  await using world = kindWorld();
  world.store('virtual', secret('shop'));
  const { lookup } = await referencesIn(world);
  const { names } = world.environment;
  const target = names.shortToHost(TLS);
  expect(lookup(TLS, 'toHost')).toEqual(target);
  expect(lookup(reference('shop', 'none'), 'toHost')).toEqual(
    names.shortToHost({ namespace: 'shop', name: 'none' }),
  );
  expect(lookup({ ...TLS, ...target }, 'toVirtual')).toEqual({ namespace: 'shop', name: 'tls' });
  expect(lookup(reference('host', 'unknown'), 'toVirtual')).toBeUndefined();
});

test('an object that only the host has keeps its name', async () => {
  await using world = kindWorld();
  world.store('host', secret('host'));
  const { lookup } = await referencesIn(world);
  expect(lookup(TLS, 'toHost')).toEqual({ namespace: 'host', name: 'tls' });
});

test('while its kind is not watched, a copy keeps the name of an object of the host, and no other one', async () => {
  await using world = kindWorld();
  const { lookup } = await referencesIn(world, false);
  const kept = (name: string) => lookup(TLS, 'toHost', () => ({ namespace: 'host', name }));
  expect([kept('tls'), kept('other')]).toEqual([{ namespace: 'host', name: 'tls' }, undefined]);
  expect(lookup(reference('host', 'tls'), 'toVirtual')).toBeUndefined();
});
