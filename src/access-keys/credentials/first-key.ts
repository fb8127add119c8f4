/** The first administrator's key. */

import { unlink, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isOpenToOthers, createOwnFile, readOwnFile } from './master-key.ts';
import {
  MANAGEMENT_API_VERSION,
  MANAGEMENT_GROUP,
  SERVER_WRITE,
  ADMINISTRATORS,
  EXTRA,
} from '../identity.ts';
import { type JsonObject, isJsonObject, ownValue } from '../../base/json.ts';
import type { ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import {
  isRevisionConflict,
  storeKey,
  type Target,
  type ResourceDefinition,
} from '../../apiserver/objects/resource-definition.ts';
import { decodeObject } from '../../apiserver/schema/decode.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { TerminalError, messageOf } from '../../base/errors.ts';
import { StatusError } from '../../kube/status-error.ts';
import { StoreError, type StoreKey } from '../../apiserver/storage/store.ts';
import type { KeyDigests } from './access-key.ts';
import type { Logger } from '../../base/logger.ts';

export const FIRST_KEY_NAME = 'bootstrap-admin';
const FIRST_USER = 'admin';

/** The object to create, with `key` as its secret if given. `maxTtlMs` 0: it never expires. */
export function firstKey(maxTtlMs: number, key?: string): JsonObject {
  return {
    apiVersion: MANAGEMENT_API_VERSION,
    kind: 'OwnedAccessKey',
    metadata: { name: FIRST_KEY_NAME },
    spec: {
      displayName: 'First administrator',
      description: 'Created by keys bootstrap. Create your own keys with it, then revoke it.',
      user: FIRST_USER,
      groups: [ADMINISTRATORS],
      type: 'User',
      ttl: Math.floor(maxTtlMs / 1000),
      ...(key === undefined ? {} : { key }),
    },
  };
}

// `bootstrapKeyFile`: supplies the first key to the API, or receives the generated one.

interface FirstKeyFileOptions {
  readonly file: string;
  /** 0: no maximum. */
  readonly maxTtlMs: number;
  readonly definition: ResourceDefinition;
  readonly registry: ObjectRegistry;
  readonly digests: KeyDigests;
  /** The user of a key, undefined for an unknown one. Rejects with `StatusError` for a known key that is refused. */
  authenticate(key: string): Promise<UserInfo | undefined>;
  readonly logger: Logger;
}

/** Creates the key in the file if it does not exist; without a file, creates a key and the file. Throws `TerminalError` for an unusable file. */
export async function ensureFirstKeyFile(options: FirstKeyFileOptions): Promise<void> {
  const key = await readKey(options);
  if (key !== '') await useSuppliedKey(options, key);
  else await createFile(options);
}

async function readKey({ file, logger }: FirstKeyFileOptions): Promise<string> {
  try {
    const text = await readOwnFile(file);
    if (text === undefined) return '';
    if (await isOpenToOthers(file)) {
      logger.warn({ file }, 'other users can read bootstrapKeyFile: chmod 600');
    }
    return text.trim();
  } catch (error) {
    throw unusable(file, 'read', error);
  }
}

async function useSuppliedKey(options: FirstKeyFileOptions, key: string): Promise<void> {
  const { registry, definition, file, logger } = options;
  // Read first: another replica may be creating the key.
  const wasUsed = await isUsed(options, key);
  try {
    const user = await options.authenticate(key);
    if (user?.extra[EXTRA.keyName]?.[0] === FIRST_KEY_NAME) return await markUsed(options, key);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    // An administrator disabled the key, or it has expired.
    logger.warn(
      { file, reason: error.message },
      'the key in bootstrapKeyFile is refused; it is not enabled again',
    );
    return;
  }
  if (wasUsed) {
    logger.warn(
      { file, name: FIRST_KEY_NAME },
      'the key in bootstrapKeyFile was revoked or has expired and is not created again',
    );
    return;
  }
  const target = targetOf(definition);
  const entry = await registry.find(target);
  if (entry) {
    logger.warn(
      { file, name: FIRST_KEY_NAME },
      'bootstrapKeyFile contains another key, which replaces the first key',
    );
    try {
      await registry.store.delete(storeKey(target), entry.revision);
    } catch (error) {
      if (isConflict(error)) return useSuppliedKey(options, key);
      throw error;
    }
  }
  try {
    await create(options, key);
  } catch (error) {
    if (isConflict(error)) return;
    throw error instanceof StatusError ? unusable(file, 'used', error) : error;
  }
  await markUsed(options, key);
}

/** In the store, with the digest of the key from the file that was created last: the file outlives a key that is revoked. */
const USED_KEY: StoreKey = { resource: `firstkeys.${MANAGEMENT_GROUP}`, namespace: '', name: 'used' };

async function isUsed({ registry, digests }: FirstKeyFileOptions, key: string): Promise<boolean> {
  const entry = await registry.store.get(USED_KEY);
  return entry?.value['digest'] === digests.stored(key).digest;
}

async function markUsed({ registry: { store }, digests }: FirstKeyFileOptions, key: string): Promise<void> {
  const { digest } = digests.stored(key);
  const entry = await store.get(USED_KEY);
  if (entry?.value['digest'] === digest) return;
  const value = { metadata: { name: USED_KEY.name }, digest };
  try {
    await (entry ? store.update(USED_KEY, value, entry.revision) : store.create(USED_KEY, value));
  } catch (error) {
    // Another replica has marked it.
    if (!isRevisionConflict(error) && !(error instanceof StoreError && error.code === 'exists')) throw error;
  }
}

async function createFile(options: FirstKeyFileOptions): Promise<void> {
  const { file, logger, registry, definition } = options;
  const isThere = (): void => {
    const why = 'the first key exists and cannot be shown again: bootstrapKeyFile is not written';
    logger.info({ file, name: FIRST_KEY_NAME }, why);
  };
  if (await registry.find(targetOf(definition))) return isThere();
  // The file is opened first: a key that cannot be written would be lost.
  const handle = await createOwnFile(file).catch((error: unknown) => {
    throw unusable(file, 'written', error);
  });
  await using _closed = { [Symbol.asyncDispose]: () => handle.close() };
  try {
    await writeNewKey(options, handle);
  } catch (error) {
    // The file is kept: a replica that shares it is about to write the key into it.
    if (isConflict(error)) return isThere();
    await unlink(file);
    throw error;
  }
  logger.info(
    { file: resolve(file), name: FIRST_KEY_NAME },
    'the first administrator key is in bootstrapKeyFile',
  );
}

async function writeNewKey(options: FirstKeyFileOptions, handle: FileHandle): Promise<void> {
  const spec = (await create(options))['spec'];
  const key = isJsonObject(spec) ? ownValue(spec, 'key') : undefined;
  if (typeof key !== 'string')
    throw new TerminalError('the first key was created, but the response does not contain it');
  await handle.chmod(0o600);
  await handle.writeFile(`${key}\n`);
  await handle.sync();
  await markUsed(options, key);
}

async function create(
  { registry, definition, maxTtlMs }: FirstKeyFileOptions,
  key?: string,
): Promise<JsonObject> {
  const { value: body } = decodeObject(definition.schema, firstKey(maxTtlMs, key));
  const { object } = await registry.create({ ...targetOf(definition), name: '' }, body, SERVER_WRITE);
  return object;
}

/** Another replica created it first. */
function isConflict(error: unknown): boolean {
  return isRevisionConflict(error) || (error instanceof StatusError && error.code === 409);
}

function targetOf(definition: ResourceDefinition): Target {
  return { definition, namespace: '', name: FIRST_KEY_NAME, subresource: undefined };
}

function unusable(file: string, what: string, cause: unknown): TerminalError {
  const why = messageOf(cause);
  const message = `managementApi.bootstrapKeyFile ${file} cannot be ${what}: ${why}`;
  return new TerminalError(message, { cause });
}
