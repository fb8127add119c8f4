/** `bootstrapKeyFile`: whoever installs the API brings the first key along, or finds it there. */

import { open, readFile, unlink, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isRevisionConflict, type ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { decodeObject } from '../../apiserver/schema/decode.ts';
import { storeKey, type Target } from '../../apiserver/request/target.ts';
import { SERVER_USER, type UserInfo } from '../../apiserver/request/user.ts';
import { TerminalError } from '../../base/errors.ts';
import { StatusError } from '../../kube/status-error.ts';
import { isJsonObject, ownValue, type JsonObject } from '../../base/json.ts';
import type { Logger } from '../../base/logger.ts';
import { EXTRA } from '../identity.ts';
import { FIRST_KEY_NAME, firstKey } from './first-key.ts';

export interface FirstKeyFileOptions {
  readonly file: string;
  /** 0: no maximum. */
  readonly maxTtlMs: number;
  /** OwnedAccessKey. */
  readonly definition: ResourceDefinition;
  readonly registry: ObjectRegistry;
  /** Whose key it is, undefined for none. Rejects with `StatusError` for a key that is known and refused. */
  authenticate(key: string): Promise<UserInfo | undefined>;
  readonly logger: Logger;
}

const CONTEXT = { user: SERVER_USER, manager: 'endpoint-syncer', isDryRun: false };

/** Makes the key in the file exist; without a file, makes a key and the file. Throws `TerminalError` when the file is unusable. */
export async function ensureFirstKeyFile(options: FirstKeyFileOptions): Promise<void> {
  const key = await readKey(options.file);
  if (key !== '') await bringAlong(options, key);
  else await makeFile(options);
}

async function readKey(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw unusable(file, 'read', error);
  }
}

async function bringAlong(options: FirstKeyFileOptions, key: string): Promise<void> {
  const { registry, definition, file, logger } = options;
  try {
    const user = await options.authenticate(key);
    if (user?.extra[EXTRA.keyName]?.[0] === FIRST_KEY_NAME) return;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    // Somebody saw to it that this key is good for nothing any more.
    logger.warn(
      { file, reason: error.message },
      'the key in bootstrapKeyFile is known and refused, it stays so',
    );
    return;
  }
  const target = targetOf(definition);
  const entry = await registry.find(target);
  if (entry) {
    logger.warn(
      { file, name: FIRST_KEY_NAME },
      'bootstrapKeyFile has another key than before, which replaces it',
    );
    try {
      await registry.store.delete(storeKey(target), entry.revision);
    } catch (error) {
      if (isOvertaken(error)) return bringAlong(options, key);
      throw error;
    }
  }
  await create(options, key).catch((error: unknown) => {
    if (isOvertaken(error)) return;
    throw error instanceof StatusError ? unusable(file, 'used', error) : error;
  });
}

async function makeFile(options: FirstKeyFileOptions): Promise<void> {
  const { file, logger, registry, definition } = options;
  const isThere = (): void => {
    const why = 'the first key was made before and cannot be shown again: bootstrapKeyFile is not written';
    logger.info({ file, name: FIRST_KEY_NAME }, why);
  };
  if (await registry.find(targetOf(definition))) return isThere();
  // The file first: a key that nobody can write down would be lost.
  const handle = await open(file, 'a', 0o600).catch((error: unknown) => {
    throw unusable(file, 'written', error);
  });
  await using _closed = { [Symbol.asyncDispose]: () => handle.close() };
  try {
    await writeNewKey(options, handle);
  } catch (error) {
    // The file stays: where replicas share it, the key of the other one is about to be written into it.
    if (isOvertaken(error)) return isThere();
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
  if (typeof key !== 'string') throw new TerminalError('the first key was made, and not shown');
  await handle.chmod(0o600);
  await handle.writeFile(`${key}\n`);
  await handle.sync();
}

async function create(
  { registry, definition, maxTtlMs }: FirstKeyFileOptions,
  key?: string,
): Promise<JsonObject> {
  const { value: body } = decodeObject(definition.schema, firstKey(maxTtlMs, key));
  const { object } = await registry.create({ ...targetOf(definition), name: '' }, body, CONTEXT);
  return object;
}

/** Another replica was faster. */
function isOvertaken(error: unknown): boolean {
  return isRevisionConflict(error) || (error instanceof StatusError && error.code === 409);
}

function targetOf(definition: ResourceDefinition): Target {
  return { definition, namespace: '', name: FIRST_KEY_NAME, subresource: undefined };
}

function unusable(file: string, what: string, cause: unknown): TerminalError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `managementApi.bootstrapKeyFile ${file} cannot be ${what}: ${why}`;
  return new TerminalError(message, { cause });
}
