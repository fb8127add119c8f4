/**
 * The one secret outside the store: `<dataDir>/master.key`, 32 random bytes in base64. The pepper of the digests and the encryption key of
 * sealed fields are derived from it. Without it no key in the store can be recognised: back it up with the store.
 */

import {
  hkdfSync,
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { constants } from 'node:fs';
import {
  link,
  mkdir,
  open,
  readFile,
  stat,
  unlink,
  lstat,
  readlink,
  type FileHandle,
} from 'node:fs/promises';
import { join, dirname, isAbsolute, parse, resolve, sep } from 'node:path';
import { MANAGEMENT_GROUP, ADMINISTRATORS, AUTHENTICATED } from '../identity.ts';
import { TerminalError, codeOf } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { syncFolder } from '../../apiserver/storage/sqlite/database-file.ts';
import { StoreError, type Store, type StoreKey } from '../../apiserver/storage/store.ts';
import type { RandomBytes } from './access-key.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';

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
  const key = new MasterKey(keyBytes(file, text), randomBytes);
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
    syncFolder(dataDir);
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new TerminalError(`${file} cannot be created: ${String(error)}`, { cause: error });
  }
}

function keyBytes(file: string, text: string): Buffer {
  const bytes = Buffer.from(text.trim(), 'base64');
  if (bytes.length === KEY_BYTES && bytes.toString('base64') === text.trim()) return bytes;
  throw new TerminalError(
    `${file} is damaged: it must hold ${KEY_BYTES} bytes in base64 (44 characters); restore it from its backup`,
  );
}

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
const VERSION = 's1.';

export class Seal {
  readonly #key: Buffer;
  readonly #randomBytes: RandomBytes;

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

// Files whose content is trusted as a credential: neither read from nor written into a file of another user.

/** As of Linux. */
const LINKS_MAX = 40;
const BYTES_MAX = 64 * 1024;

/**
 * The text of a file that belongs to `uid` or root, and so do the links that lead to it: the kubelet mounts a Secret as links. Undefined: it
 * does not exist. Rejects with an `Error` that says what belongs to whom.
 */
export async function readOwnFile(file: string, uid = ownUid()): Promise<string | undefined> {
  try {
    const handle = await open(await followOwnLinks(resolve(file), uid), READ);
    await using _closed = { [Symbol.asyncDispose]: () => handle.close() };
    await checkOwner(handle, file, [0, uid]);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(BYTES_MAX), 0, BYTES_MAX);
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

// A named pipe would block the start until another process writes into it.
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A new file, or the one that a replica of the same user has created. Rejects for a link and for a file of another user. */
export async function createOwnFile(file: string, uid = ownUid()): Promise<FileHandle> {
  try {
    return await open(file, CREATE, 0o600);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  const handle = await open(file, APPEND).catch((cause: unknown) => {
    throw codeOf(cause) === 'ELOOP' ? new Error(`${file} is a link: name the file itself`, { cause }) : cause;
  });
  try {
    await checkOwner(handle, file, [uid]);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function ownUid(): number {
  return process.geteuid?.() ?? 0;
}

async function checkOwner(handle: FileHandle, file: string, owners: readonly number[]): Promise<void> {
  const stats = await handle.stat();
  if (!stats.isFile()) throw new Error(`${file} is no regular file`);
  if (!owners.includes(stats.uid)) throw foreign(file, stats.uid, owners);
}

async function followOwnLinks(path: string, uid: number): Promise<string> {
  const { root } = parse(path);
  let done = root;
  let steps = path.slice(root.length).split(sep);
  for (let links = 0; steps.length > 0;) {
    const [step = '', ...rest] = steps;
    const at = join(done, step);
    const stats = await lstat(at);
    if (!stats.isSymbolicLink()) {
      [done, steps] = [at, rest];
      continue;
    }
    if (![0, uid].includes(stats.uid)) throw foreign(at, stats.uid, [0, uid]);
    if (++links > LINKS_MAX) throw new Error(`${path} leads through more than ${LINKS_MAX} links`);
    const target = await readlink(at);
    const next = isAbsolute(target) ? target : resolve(dirname(at), target);
    [done, steps] = [root, [...next.slice(root.length).split(sep), ...rest]];
  }
  return done;
}

function foreign(file: string, owner: number, owners: readonly number[]): Error {
  const own = owners.length === 1 ? `user ${owners[0]}` : `user ${owners[1]} of this process or root`;
  return new Error(
    `${file} belongs to user ${owner}, not to ${own}: that user could choose or read the key; move it, or chown it`,
  );
}

// The local administrator: read access to the master key allows to forge any key, so it is administrator access. The `keys` commands use it on
// the machine of the API, before the first key exists. A credential contains its creation time in seconds and is valid for a minute.

const LOCAL_ADMINISTRATOR: UserInfo = {
  name: 'system:local-administrator',
  uid: '',
  groups: [ADMINISTRATORS, AUTHENTICATED],
  extra: {},
};

const PREFIX = 'local_';
const LIFE_SECONDS = 60;
const CREDENTIAL = /^local_(\d{10,12})_([A-Za-z0-9_-]{43})$/u;

export class LocalAdministrator {
  readonly #secret: Buffer;
  readonly #clock: Clock;

  /** `secret` is derived from the master key for this purpose. */
  constructor(secret: Buffer, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** A bearer token that is valid for a minute. */
  credential(): string {
    const issuedAt = String(Math.floor(this.#clock.now() / 1000));
    return `${PREFIX}${issuedAt}_${this.#mac(issuedAt).toString('base64url')}`;
  }

  /** The local administrator, if the bearer token is its credential. */
  authenticate(token: string): UserInfo | undefined {
    const [, issuedAt, mac] = CREDENTIAL.exec(token) ?? [];
    if (issuedAt === undefined || mac === undefined) return undefined;
    const isGenuine = timingSafeEqual(this.#mac(issuedAt), Buffer.from(mac, 'base64url'));
    const ageSeconds = Math.abs(this.#clock.now() / 1000 - Number(issuedAt));
    return isGenuine && ageSeconds <= LIFE_SECONDS ? LOCAL_ADMINISTRATOR : undefined;
  }

  #mac(issuedAt: string): Buffer {
    return createHmac('sha256', this.#secret).update(issuedAt).digest();
  }
}

/** For commands on the machine of the API. Undefined if the folder has no master key. Throws `TerminalError` if it cannot be read. */
export async function openLocalAdministrator(
  dataDir: string,
  clock: Clock,
): Promise<LocalAdministrator | undefined> {
  const file = join(dataDir, MASTER_KEY_FILE);
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  return new LocalAdministrator(new MasterKey(keyBytes(file, text), randomBytes).localAdministrator, clock);
}
