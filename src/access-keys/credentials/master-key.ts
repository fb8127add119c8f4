/**
 * The one secret outside the store: `<dataDir>/master.key`, 32 random bytes in base64. The pepper of the digests and the encryption key of
 * sealed fields are derived from it. Without it no key in the store can be recognised: back it up with the store.
 */

import { hkdfSync, createCipheriv, createDecipheriv } from 'node:crypto';
import { link, mkdir, open, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { MANAGEMENT_GROUP } from '../identity.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { StoreError, type Store, type StoreKey } from '../../apiserver/storage/store.ts';
import type { RandomBytes } from './access-key.ts';
import { readOwnFile } from './owned-file.ts';

const KEY_BYTES = 32;
export const MASTER_KEY_FILE = 'master.key';
const DERIVATION = 'endpoint-syncer management';
const GROUP_AND_OTHERS = 0o077;

/** Store key of the proof of the master key that the store was created with. */
export const MASTER_KEY_PROOF: StoreKey = {
  resource: `masterkeyproofs.${MANAGEMENT_GROUP}`,
  namespace: '',
  name: 'proof',
};

export class MasterKey {
  /** HMAC key of the digests of access keys. */
  readonly pepper: Buffer;
  readonly seal: Seal;
  /** HMAC key of the local administrator's credentials, see `LocalAdministrator`. */
  readonly localAdministrator: Buffer;
  /** Identifies the master key without revealing it. */
  readonly proof: string;

  /** `bytes`: 32 random bytes. */
  constructor(bytes: Buffer, randomBytes: RandomBytes) {
    const derive = (purpose: string): Buffer =>
      Buffer.from(hkdfSync('sha256', bytes, '', `${DERIVATION} ${purpose}`, KEY_BYTES));
    this.pepper = derive('pepper');
    this.seal = new Seal(derive('seal'), randomBytes);
    this.localAdministrator = derive('local administrator');
    this.proof = derive('proof').toString('base64');
  }
}

interface MasterKeyOptions {
  readonly dataDir: string;
  readonly store: Store;
  /** Resources whose objects are unusable without the master key that they were created with. */
  readonly dependentResources: readonly string[];
  readonly randomBytes: RandomBytes;
  readonly logger: Logger;
}

/**
 * Reads the file, or creates it if neither the file nor an object that depends on it exists. Throws `TerminalError` if the file is missing,
 * damaged, or not the one that the keys in the store were created with.
 */
export async function openMasterKey(options: MasterKeyOptions): Promise<MasterKey> {
  const { dataDir, store, randomBytes, logger } = options;
  const file = join(dataDir, MASTER_KEY_FILE);
  let text = await readIfThere(file);
  if (text === undefined && (await isInUse(options))) {
    throw new TerminalError(
      `${file} is missing, but the store has keys that were created with it: restore the file from its backup (all replicas need the same), ` +
        'or start with an empty store',
    );
  }
  text ??= await createFile(dataDir, file, randomBytes);
  const key = new MasterKey(parse(file, text), randomBytes);
  await prove(store, key, file);
  if (await isOpenToOthers(file)) {
    logger.warn({ file }, 'other users can read the master key: chmod 600');
  }
  return key;
}

/** Also looks for dependent objects, because the proof alone can have been deleted. */
async function isInUse({ store, dependentResources }: MasterKeyOptions): Promise<boolean> {
  if (await store.get(MASTER_KEY_PROOF)) return true;
  for (const resource of dependentResources) {
    const { entries } = await store.list({ resource }, { limit: 1 });
    if (entries.length > 0) return true;
  }
  return false;
}

/** The master key in the data directory of an API; undefined if there is none. Throws `TerminalError` if it cannot be read. */
export async function readMasterKey(
  dataDir: string,
  randomBytes: RandomBytes,
): Promise<MasterKey | undefined> {
  const file = join(dataDir, MASTER_KEY_FILE);
  const text = await readIfThere(file);
  return text === undefined ? undefined : new MasterKey(parse(file, text), randomBytes);
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readOwnFile(file);
  } catch (error) {
    throw new TerminalError(`${file} cannot be read: ${String(error)}`, { cause: error });
  }
}

/** Other users can read or write the file. */
export async function isOpenToOthers(file: string): Promise<boolean> {
  return ((await stat(file)).mode & GROUP_AND_OTHERS) !== 0;
}

/** Writes a temporary file and links it, so that no process reads a partial file and one of two concurrent processes wins. Returns the content. */
async function createFile(dataDir: string, file: string, randomBytes: RandomBytes): Promise<string> {
  const aside = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const handle = await open(aside, 'wx', 0o600);
    try {
      await handle.writeFile(`${randomBytes(KEY_BYTES).toString('base64')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(aside, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await unlink(aside);
    await syncFolder(dataDir);
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new TerminalError(`${file} cannot be created: ${String(error)}`, { cause: error });
  }
}

/** A new file is durable only when its folder is synced too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function parse(file: string, text: string): Buffer {
  const bytes = Buffer.from(text.trim(), 'base64');
  if (bytes.length === KEY_BYTES && bytes.toString('base64') === text.trim()) return bytes;
  throw new TerminalError(
    `${file} is damaged: it must hold ${KEY_BYTES} bytes in base64 (44 characters); restore it from its backup`,
  );
}

/** Compares the proof in the store, or creates it. */
async function prove(store: Store, key: MasterKey, file: string): Promise<void> {
  const value = { metadata: { name: MASTER_KEY_PROOF.name }, proof: key.proof };
  const entry = await store.create(MASTER_KEY_PROOF, value).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === 'exists' && error.current) return error.current;
    throw error;
  });
  if (entry.value['proof'] === key.proof) return;
  throw new TerminalError(
    `${file} is not the master key that the keys in the store were created with: restore the right file (all replicas need the same), ` +
      'or start with an empty store',
  );
}

// AES-256-GCM for secrets in the store that must be read again.

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ALGORITHM = 'aes-256-gcm';
/** Version of the format. */
const VERSION = 's1.';

/** Encrypts secrets with a key that is not in the store. */
export class Seal {
  readonly #key: Buffer;
  readonly #randomBytes: RandomBytes;

  /** `key`: 32 bytes. */
  constructor(key: Buffer, randomBytes: RandomBytes) {
    this.#key = key;
    this.#randomBytes = randomBytes;
  }

  /** `purpose` is authenticated with the text: a text opens only for the purpose that it was sealed for. */
  seal(plain: string, purpose: string): string {
    const nonce = this.#randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return VERSION + sealed.toString('base64url');
  }

  /** Throws an `Error` that names the purpose, never the text, if the text was changed or sealed with another key. */
  open(sealed: string, purpose: string): string {
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
    const isWhole = sealed.startsWith(VERSION) && bytes.length >= NONCE_BYTES + TAG_BYTES;
    if (!isWhole) throw new Error(`the stored value for ${purpose} is not a sealed text`);
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const text = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
    } catch (error) {
      const why = 'it was changed, or sealed for another purpose or with another master key';
      throw new Error(`the stored value for ${purpose} cannot be decrypted: ${why}`, { cause: error });
    }
  }
}
