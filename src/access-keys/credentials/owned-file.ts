/** Files whose content is trusted as a credential: neither read from nor written into a file of another user. */

import { constants } from 'node:fs';
import { lstat, open, readlink, type FileHandle } from 'node:fs/promises';
import { dirname, isAbsolute, join, parse, resolve, sep } from 'node:path';
import { codeOf } from '../../base/errors.ts';

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

/** The path without symbolic links. */
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
