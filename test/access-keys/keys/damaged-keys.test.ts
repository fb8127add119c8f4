/** Stored keys that the API would not have stored: each is shown, can be deleted, and changes nothing for other keys. */

import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { startEmbeddedCluster } from '../../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../../src/kube/access.ts';
import { openReplica } from '../../apiserver/storage/secrets/replicas.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { SqliteStore } from '../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import type { Store, StoredEntry } from '../../../src/apiserver/storage/store.ts';
import { metadataOf } from '../../../src/kube/object.ts';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import {
  cloneJson,
  objectField,
  objectList,
  type JsonObject,
  type JsonValue,
} from '../../../src/base/json.ts';
import { silentLogger, type LogFields, type Logger } from '../../../src/base/logger.ts';
import { temporaryFolder } from '../../apiserver/storage/temporary-folder.ts';
import { NO_PRIMITIVE } from '../../support/no-primitive.ts';
import { KEYS_PATH, keyOf, startKeyServer, type KeyServer } from './key-server.ts';

const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const YAML = { accept: 'application/yaml' };
const METADATA = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' };

/** A path in the stored object, and a value that the API does not put there. */
type Damage = readonly [path: string, value: JsonValue];

const DAMAGES: readonly Damage[] = [
  ['spec.ttl', Number.MAX_SAFE_INTEGER],
  ['spec.ttl', 8.64e15],
  ['spec.ttl', -1],
  ['spec.ttl', 'soon'],
  ['spec.ttl', { seconds: 1 }],
  ['metadata.creationTimestamp', 'yesterday'],
  ['metadata.creationTimestamp', '+012345-01-01T00:00:00Z'],
  ['metadata.deletionTimestamp', 'tomorrow'],
  ['status.lastActivity', 'never'],
  ['status.lastActivity', '+275760-09-13T00:00:00.000Z'],
  ['status', 'fine'],
  ['spec.scope', 'all'],
  ['spec.groups', { a: 1 }],
  ['spec', null],
  ['credential', []],
  ['replacedCredentials', [{ id: 'x', digest: 'y', until: 'later' }]],
  ['replacedCredentials', [{ until: '+275760-09-13T00:00:00.000Z' }]],
  ['sealed', 1],
  ['tokenGeneration', 'first'],
  ...[
    'spec.ttl',
    'spec.ttlAfterLastActivity',
    'spec.disabled',
    'spec.displayName',
    'spec.user',
    'spec.scope',
    'metadata.creationTimestamp',
    'metadata.deletionTimestamp',
    'metadata.generation',
    'status.lastActivity',
    'credential',
    'tokenGeneration',
  ].map((path): Damage => [path, NO_PRIMITIVE]),
  ...['spec.groups', 'metadata.ownerReferences', 'replacedCredentials'].map((path): Damage => [
    path,
    [NO_PRIMITIVE],
  ]),
];

async function damage({ store }: KeyServer, name: string, [path, value]: Damage): Promise<void> {
  const entry = await store.get({ resource: KEY_STORAGE, namespace: '', name });
  if (!entry) throw new Error(`no key ${name}`);
  const object = cloneJson(entry.value);
  const parts = path.split('.');
  let parent: JsonObject = object;
  for (const part of parts.slice(0, -1)) parent = parent[part] as JsonObject; // a key that the API stored
  parent[parts.at(-1) ?? ''] = value;
  await store.update(entry.key, object, entry.revision);
}

interface Opened extends AsyncDisposable {
  readonly store: Store;
}

function alone<S extends Store & AsyncDisposable>(store: S): Opened {
  return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

async function openSecrets(): Promise<Opened> {
  const cluster = await startEmbeddedCluster({ name: 'host' });
  const replica = await openReplica(plainAccess(cluster.url), { name: 'main' });
  const dispose = async (): Promise<void> => {
    await replica[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  };
  return { store: replica.store, [Symbol.asyncDispose]: dispose };
}

const STORES: readonly (readonly [string, (folder: string) => Promise<Opened>])[] = [
  ['memory', () => Promise.resolve(alone(new MemoryStore()))],
  ['sqlite', async (folder) => alone(await SqliteStore.open({ file: join(folder, 'keys.db') }))],
  ['secrets', openSecrets],
];

describe.each(STORES)('a damaged key in %s', (_driver, open) => {
  test.each(DAMAGES)('%s: %j', async (...damaged) => {
    using folder = temporaryFolder();
    await using opened = await open(folder.path);
    const { store } = opened;
    await using api = await startKeyServer({ store });
    await api.create('good', { ttl: 3600 });
    await api.create('damaged', { ttl: 3600 });
    await damage(api, 'damaged', damaged);
    expect(await shownAndDeleted(api)).toEqual(ALL);
    // Also from a start with it.
    await api.create('damaged', { ttl: 3600 });
    await damage(api, 'damaged', damaged);
    await using restarted = await startKeyServer({ store });
    expect(await shownAndDeleted(restarted)).toEqual(ALL);
  });
});

const ALL = {
  watched: ['good', 'damaged'],
  listed: [
    [200, true, 200],
    [200, true, 200],
  ],
  deleted: 200,
  left: ['good'],
};

/** What clients see of both keys, as JSON and as a table, before and after the damaged one is deleted. */
async function shownAndDeleted(api: KeyServer): Promise<unknown> {
  await using watch = await api.client.watch(`${KEYS_PATH}?watch=true&timeoutSeconds=5`);
  const nameOf = (object: JsonObject | undefined): JsonValue => metadataOf(object ?? {})['name'] ?? '';
  const first = [nameOf((await watch.next())?.object), nameOf((await watch.next())?.object)];
  const listed: unknown[] = [];
  for (const headers of [{}, TABLE]) {
    const list = await api.send('GET', KEYS_PATH, undefined, headers);
    const hasBoth = ['good', 'damaged'].every((name) => list.text.includes(`"name":"${name}"`));
    const one = await api.send('GET', `${KEYS_PATH}/damaged`, undefined, headers);
    listed.push([list.status, hasBoth, one.status]);
  }
  const { status } = await api.send('DELETE', `${KEYS_PATH}/damaged`);
  const left = objectList((await api.send('GET', KEYS_PATH)).json ?? {}, 'items').map(nameOf);
  return {
    watched: ['good', 'damaged'].filter((name) => first.includes(name)),
    listed,
    deleted: status,
    left,
  };
}

test.each<Damage>([
  ['metadata.deletionGracePeriodSeconds', NO_PRIMITIVE],
  ['metadata.deletionGracePeriodSeconds', 1e300],
  ['metadata.deletionTimestamp', 'tomorrow'],
])('a key that is being deleted, with %s: %j, can be deleted now', async (...damaged) => {
  await using api = await startKeyServer();
  await api.create('good', { ttl: 3600 });
  await api.create('damaged', { ttl: 3600 });
  await api.send('DELETE', `${KEYS_PATH}/damaged`, { gracePeriodSeconds: 600 });
  await damage(api, 'damaged', damaged);
  expect(await shownAndDeleted(api)).toEqual(ALL);
});

describe('a key whose lifetime cannot be read', () => {
  test.each<Damage>([
    ['spec.ttl', Number.MAX_SAFE_INTEGER],
    ['spec.ttl', 'soon'],
    ['metadata.creationTimestamp', 'yesterday'],
  ])('%s: %j is named in the log, shown without its end, and authenticates nobody', async (...damaged) => {
    const lines: LogFields[] = [];
    const logger: Logger = { ...silentLogger, warn: (fields) => void lines.push(fields) };
    await using api = await startKeyServer({ logger });
    const secret = keyOf(await api.create('damaged', { ttl: 3600 }));
    await damage(api, 'damaged', damaged);
    expect(lines).toEqual([{ name: 'damaged', problem: expect.stringContaining(damaged[0]) as string }]);
    const shown = await api.send('GET', `${KEYS_PATH}/damaged`);
    expect(objectField(shown.json ?? {}, 'status')['expiresAt']).toBeUndefined();
    const answer = await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${secret}` });
    expect(answer.status).toBe(401);
  });
});

test('no stored JSON in the place of a key breaks the list of the others, or its own deletion', async () => {
  await using api = await startKeyServer();
  await api.create('good', { ttl: 3600 });
  await api.create('damaged', { ttl: 3600 });
  const key = { resource: KEY_STORAGE, namespace: '', name: 'damaged' };
  const stored = async (): Promise<StoredEntry> => {
    const entry = await api.store.get(key);
    if (!entry) throw new Error('the key is gone');
    return entry;
  };
  const { value } = await stored();
  const paths = pathsOf(value);
  const damages = fc.array(fc.tuple(fc.constantFrom(...paths), fc.jsonValue()), {
    minLength: 1,
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(damages, async (changes) => {
      let object = value;
      for (const [path, json] of changes) object = replaced(object, path, json as JsonValue); // fast-check's JSON
      const entry = await stored();
      await api.store.update(key, object, entry.revision);
      for (const headers of [{}, TABLE, YAML, METADATA]) {
        const list = await api.send('GET', KEYS_PATH, undefined, headers);
        expect(list.status).toBe(200);
        expect(list.text).toMatch(/"?name"?: ?"?good/u);
      }
      expect((await api.send('GET', `${KEYS_PATH}/damaged`)).status).toBe(200);
      const deleted = await api.send('DELETE', `${KEYS_PATH}/damaged`, { gracePeriodSeconds: 0 });
      expect(deleted.status).toBe(200);
      // Finalizers may keep it.
      const left = await api.store.get(key);
      if (left !== undefined) await api.store.delete(key, left.revision);
      await api.create('damaged', { ttl: 3600 });
    }),
    { numRuns: 200 },
  );
});

/** Of all members, but for those by which the store knows the object. */
function pathsOf(value: JsonObject, prefix: readonly string[] = []): (readonly string[])[] {
  return Object.entries(value).flatMap(([name, child]) => {
    const path = [...prefix, name];
    const below =
      typeof child === 'object' && child !== null && !Array.isArray(child) ? pathsOf(child, path) : [];
    return [path, ...below];
  });
}

function replaced(object: JsonObject, [name = '', ...rest]: readonly string[], value: JsonValue): JsonObject {
  if (rest.length === 0) return { ...object, [name]: value };
  return { ...object, [name]: replaced(objectField(object, name), rest, value) };
}
