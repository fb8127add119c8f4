/**
 * The key and token API keeps its objects as Secrets in the namespace that references lead to. A tenant tries
 * to read them by naming them, and to put forged ones beside them. Each attempt causes an Event and no write.
 */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/clock.ts';
import { loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { openReplica, type Replica } from '../apiserver/storage/secrets/replicas.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { named, referencePatches, secret, short } from '../scenarios/reference-objects.ts';
import { sharedProcess, type Shared } from '../scenarios/shared-world.ts';
import type { NewWorld, World } from '../scenarios/world.ts';
import { expectRefused } from './expect-refused.ts';

const OBJECT_TYPE = 'endpoint-syncer/object';
const NOTES_TYPE = 'endpoint-syncer/notes';
const ACTIVITY = 'activity';

/** The type of a Secret, and the label that says what is in it. */
const WRITTEN = [
  [OBJECT_TYPE, 'ownedaccesskeys.management.platform.sh'],
  [OBJECT_TYPE, 'signingkeys.management.platform.sh'],
  [OBJECT_TYPE, 'masterkeyproofs.management.platform.sh'],
  [NOTES_TYPE, ACTIVITY],
] as const;

export function keyStoreAttacks(newWorld: NewWorld): void {
  describe('attack: the Secrets of the key store', () => {
    const shared = sharedProcess(newWorld, async (world) => {
      const [port = 0] = await freePorts(1);
      const managementApi = {
        enabled: true,
        bindAddress: `127.0.0.1:${port}`,
        dataDir: `${world.directory}/data`,
        bootstrapKeyFile: `${world.directory}/first-key`,
        store: { driver: 'kubernetes', namespace: world.hostNamespace },
      };
      return { config: { ...referencePatches(), managementApi } as JsonObject };
    });

    test.for(WRITTEN)('%s of %s cannot be read by its name', async ([type, resource]) => {
      const { world } = shared();
      if (type === NOTES_TYPE) await writeNotes(world);
      const original = await storedSecret(world, type, resource);
      const note = await expectRefused(shared(), original.metadata.name, original);
      expect(note).toContain('key store');
    });

    test.for(WRITTEN)(
      '%s of %s with its labels taken off cannot be read either',
      async ([type, resource]) => {
        const { world } = shared();
        if (type === NOTES_TYPE) await writeNotes(world);
        const { data } = await storedSecret(world, type, resource);
        const name = `plain-${resource.split('.')[0]}`;
        const key = `${world.hostNamespace}/${name}`;
        const original = await world.host.create('Secret', secret(key, { type, data } as JsonObject));
        expect(await expectRefused(shared(), name, original)).toContain('key store');
      },
    );

    test.for(WRITTEN)(
      'a virtual Secret like %s of %s is not copied to the host',
      async ([type, resource]) => {
        const { world } = shared();
        if (type === NOTES_TYPE) await writeNotes(world);
        const { data, metadata } = await storedSecret(world, type, resource);
        const forgeries = [
          ['by-type', { type, data }, {}],
          ['by-labels', { data }, metadata.labels ?? {}],
          [metadata.name, { data }, {}],
        ] as const;
        for (const [name, content, labels] of forgeries)
          expect(await exported(shared(), name, content as JsonObject, labels)).toBeUndefined();
      },
    );

    test('copies of another syncer with the labels and the type of the store are not read as objects', async () => {
      const { world } = shared();
      await using replica = await replicaOf(world);
      await replica.store.notes(ACTIVITY).write(new Map([['uid', 'real']]));
      const keys = { resource: 'ownedaccesskeys.management.platform.sh' };
      const before = await replica.store.list(keys);
      for (const [type, resource] of WRITTEN) {
        const { data, metadata } = await storedSecret(world, type, resource);
        const forged = type === NOTES_TYPE ? { notes: base64(JSON.stringify([['uid', 'forged']])) } : data;
        const name = `forged-${resource.split('.')[0]}-x-default-x-${world.vcluster}`;
        await world.host.create(
          'Secret',
          secret(`${world.hostNamespace}/${name}`, { type, data: forged } as JsonObject, metadata.labels),
        );
      }
      await using another = await replicaOf(world);
      for (const { store } of [replica, another]) {
        expect((await store.list(keys)).entries).toEqual(before.entries);
        expect((await store.notes(ACTIVITY).read()).get('uid')).toBe('real');
      }
    });

    test('labels of the store on Endpoints are not copied to the host', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const forged = named(`${ns}/forged`, {});
      forged.metadata.labels = {
        'app.kubernetes.io/managed-by': 'endpoint-syncer',
        'endpoint-syncer/part': 'notes',
      };
      await world.virtual.create('Endpoints', forged);
      const copy = await world.whenCopy(`${ns}/forged`, () => true);
      expect(Object.keys(copy.metadata.labels ?? {}).toSorted()).toEqual([
        'vcluster.loft.sh/managed-by',
        'vcluster.loft.sh/namespace',
      ]);
    });
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** A replica of the store that the daemon uses. */
async function replicaOf(world: World): Promise<Replica> {
  const access = loadClusterAccess(
    { kubeconfig: world.host.kubeconfigPath, context: '' },
    { clock: systemClock },
  );
  return openReplica(access, { name: 'management', namespace: world.hostNamespace });
}

async function writeNotes(world: World): Promise<void> {
  await using replica = await replicaOf(world);
  await replica.store.notes(ACTIVITY).write(new Map([['some-key', new Date(0).toISOString()]]));
}

/** The Secrets that the running program has written: the first key and the first signing key are created after the start. */
async function storedSecret(world: World, type: string, resource: string): Promise<KubeObject> {
  const found = await eventually(
    () => world.host.list('Secret', world.hostNamespace),
    (all) => all.some((one) => isStored(one, type, resource)),
    { what: `a Secret of the type ${type} with ${resource}` },
  );
  const [stored] = found.filter((one) => isStored(one, type, resource));
  if (stored === undefined) throw new Error('it was there a moment ago');
  return stored;
}

function isStored({ metadata, type }: KubeObject, wanted: string, resource: string): boolean {
  const isOwn = metadata.name.startsWith('endpoint-syncer.');
  return isOwn && type === wanted && metadata.labels?.['endpoint-syncer/resource'] === resource;
}

/** The host copy of such a virtual Secret after an Endpoints references it. */
async function exported(
  { world, daemon, namespace }: Shared,
  name: string,
  content: JsonObject,
  labels: Record<string, string>,
): Promise<KubeObject | undefined> {
  const ns = await namespace();
  await world.virtual.create('Secret', secret(`${ns}/${name}`, content, labels));
  await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
  expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotAllowed')).toContain('key store');
  await world.settle(daemon);
  return world.host.find('Secret', ...short(world, `${ns}/${name}`));
}
