/**
 * The one secret that lies outside the store: `<dataDir>/master.key`, 32 random bytes in base64. The pepper of the keys' digests and the key
 * that seals what must be read again are derived from it. Without it no key in the store can be recognised: back it up with the store.
 */

import { hkdfSync } from 'node:crypto';
import { link, mkdir, open, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { TerminalError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { StoreError, type Store, type StoreKey } from '../../apiserver/storage/store.ts';
import type { Seal } from '../types.ts';
import { AesSeal } from './aes-seal.ts';
import type { RandomBytes } from './base62.ts';

const KEY_BYTES = 32;
/** In the data directory. */
export const MASTER_KEY_FILE = 'master.key';
const DERIVATION = 'endpoint-syncer management';
/** Rights of anybody but the owner. */
const OTHERS = 0o077;

/** Where the store keeps the value that tells which master key it belongs to. */
export const MASTER_KEY_PROOF: StoreKey = {
  resource: 'masterkeyproofs.management.platform.sh',
  namespace: '',
  name: 'proof',
};

export class MasterKey {
  /** Key of the HMACs of access keys. */
  readonly pepper: Buffer;
  readonly seal: Seal;
  /** Of the credentials of the administrator on the machine of the API, see `LocalAdministrator`. */
  readonly localAdministrator: Buffer;
  /** Tells master keys apart and says nothing about them. */
  readonly proof: string;

  /** `bytes`: 32 random ones. */
  constructor(bytes: Buffer, randomBytes: RandomBytes) {
    const derive = (purpose: string): Buffer =>
      Buffer.from(hkdfSync('sha256', bytes, '', `${DERIVATION} ${purpose}`, KEY_BYTES));
    this.pepper = derive('pepper');
    this.seal = new AesSeal(derive('seal'), randomBytes);
    this.localAdministrator = derive('local administrator');
    this.proof = derive('proof').toString('base64');
  }
}

export interface MasterKeyOptions {
  readonly dataDir: string;
  readonly store: Store;
  /** Resources whose objects are worth nothing without the key that they were made with. */
  readonly madeWith: readonly string[];
  readonly randomBytes: RandomBytes;
  readonly logger: Logger;
}

/**
 * Reads the file, or makes it where neither the file nor anything made with it exists. Throws `TerminalError` when the file is missing,
 * damaged, or not the one that the keys in the store were made with.
 */
export async function openMasterKey(options: MasterKeyOptions): Promise<MasterKey> {
  const { dataDir, store, randomBytes, logger } = options;
  const file = join(dataDir, MASTER_KEY_FILE);
  let text = await readIfThere(file);
  if (text === undefined && (await isInUse(options))) {
    throw new TerminalError(
      `${file} is missing, but the store has keys that were made with it: put the file back from its backup (every replica needs the same), ` +
        'or begin with an empty store',
    );
  }
  text ??= await makeFile(dataDir, file, randomBytes);
  const key = new MasterKey(parse(file, text), randomBytes);
  await prove(store, key, file);
  if (((await stat(file)).mode & OTHERS) !== 0) {
    logger.warn({ file }, 'others than its owner may read the master key: chmod 600');
  }
  return key;
}

/** Somebody may have deleted the proof alone. */
async function isInUse({ store, madeWith }: MasterKeyOptions): Promise<boolean> {
  if (await store.get(MASTER_KEY_PROOF)) return true;
  for (const resource of madeWith) {
    const { entries } = await store.list({ resource }, { limit: 1 });
    if (entries.length > 0) return true;
  }
  return false;
}

/** The key of an API that runs, or ran, over this folder; undefined when there is none. Throws `TerminalError` when it cannot be read. */
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
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new TerminalError(`${file} cannot be read: ${String(error)}`, { cause: error });
  }
}

/** Written aside and then linked: nobody sees half a file, and of two processes one wins. Answers what the file holds. */
async function makeFile(dataDir: string, file: string, randomBytes: RandomBytes): Promise<string> {
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
    throw new TerminalError(`${file} cannot be made: ${String(error)}`, { cause: error });
  }
}

/** The name of a new file is only durable with its folder. */
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
    `${file} is damaged: it must hold ${KEY_BYTES} bytes in base64 (44 characters); put it back from its backup`,
  );
}

/** Compares the proof in the store, put there if there was none. */
async function prove(store: Store, key: MasterKey, file: string): Promise<void> {
  const value = { metadata: { name: MASTER_KEY_PROOF.name }, proof: key.proof };
  const entry = await store.create(MASTER_KEY_PROOF, value).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === 'exists' && error.current) return error.current;
    throw error;
  });
  if (entry.value['proof'] === key.proof) return;
  throw new TerminalError(
    `${file} is not the master key that the keys in the store were made with: put the right file back (every replica needs the same), ` +
      'or begin with an empty store',
  );
}
