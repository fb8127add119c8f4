/** The audit log: one JSON line per request in files that are rotated by size. Requests never wait for it, and a full disk does not fail them. */

import type { AuditEvent, AuditUser } from '../../apiserver/request/request-info.ts';
import { networkOf } from '../../apiserver/http/client-limits.ts';
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { codeOf } from '../../base/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { TokenBuckets, type Rate } from '../../base/token-bucket.ts';
import { EXTRA } from '../identity.ts';

interface FileOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Size of a file, and number of rotated files to keep. */
  readonly fileBytesMax: number;
  readonly filesKept: number;
}

/** Of the requests of one address that are refused. */
export const REFUSED_RATE: Rate = { burst: 100, perSecond: 1 };
const ADDRESSES_MAX = 10_000;
/** Number of refused requests of this address that were left out since the line before. */
const SUPPRESSED = 'endpoint-syncer/suppressed';

/**
 * Two logs: `audit.log`, and `audit-refused.log` for requests without a known user and those that are refused, of which each address gets a
 * share. So no flood displaces what a user did.
 */
export class AuditTrail implements AsyncDisposable {
  readonly #served: AuditLog;
  readonly #refused: AuditLog;
  readonly #shares: TokenBuckets;
  readonly #suppressed = new LRUCache<string, number>({ maxSize: ADDRESSES_MAX, sizeCalculation: () => 1 });

  constructor({ folder, ...options }: FileOptions & { readonly folder: string }) {
    this.#served = new AuditLog({ ...options, path: join(folder, 'audit.log') });
    this.#refused = new AuditLog({ ...options, path: join(folder, 'audit-refused.log') });
    this.#shares = new TokenBuckets(REFUSED_RATE, options.clock);
  }

  /** Returns immediately; never throws. */
  record(event: AuditEvent): void {
    if (!isRefused(event)) return this.#served.record(event);
    const address = networkOf(event.sourceIPs[0] ?? '');
    const suppressed = this.#suppressed.get(address) ?? 0;
    if (this.#shares.take(address) > 0) return void this.#suppressed.set(address, suppressed + 1);
    this.#suppressed.delete(address);
    const annotations = { ...event.annotations, [SUPPRESSED]: String(suppressed) };
    this.#refused.record(suppressed === 0 ? event : { ...event, annotations });
  }

  async flushed(): Promise<void> {
    await Promise.all([this.#served.flushed(), this.#refused.flushed()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#served[Symbol.asyncDispose](), this.#refused[Symbol.asyncDispose]()]);
  }
}

function isRefused({ user, responseStatus: { code } }: AuditEvent): boolean {
  return user.username === undefined || code === 401 || code === 403 || code === 429;
}

export interface AuditLogOptions extends FileOptions {
  /** Rotated files are `PATH.1`, `PATH.2`, … */
  readonly path: string;
}

/** A crash loses at most the events of this time. */
const FLUSH_AFTER_MS = 200;
/** Larger writes cost less: each one wakes a thread. */
const FLUSH_AT_LENGTH = 256 * 1024;
/** Characters that wait for the disk; further lines are dropped and counted. */
export const QUEUE_LENGTH_MAX = 16 * 1024 * 1024;

export class AuditLog implements AsyncDisposable {
  readonly #options: AuditLogOptions;
  #lines: string[] = [];
  #length = 0;
  #dropped = 0;
  #isFailing = false;
  #isClosed = false;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #file: FileHandle | undefined;
  /** Device and inode of the file. */
  #fileId = '';
  #fileBytes = 0;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Returns immediately; never throws. */
  record(event: AuditEvent): void {
    if (this.#isClosed || this.#length > QUEUE_LENGTH_MAX) {
      this.#dropped++;
      return;
    }
    const line = `${JSON.stringify({ ...event, user: withoutScope(event.user) })}\n`;
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= FLUSH_AT_LENGTH) this.#flush();
    else this.#timer ??= this.#options.clock.schedule(FLUSH_AFTER_MS, () => this.#flush());
  }

  /** Resolves when every line so far is written or dropped. */
  async flushed(): Promise<void> {
    while (this.#writing || this.#lines.length > 0) {
      this.#flush();
      await this.#writing;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.flushed();
    await this.#closeFile();
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#writing || this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    this.#length = 0;
    this.#writing = this.#write(lines).finally(() => {
      this.#writing = undefined;
      // Lines that were recorded during the write are due.
      if (this.#lines.length > 0 && !this.#isClosed) this.#flush();
    });
  }

  async #write(lines: readonly string[]): Promise<void> {
    const { logger, path } = this.#options;
    const bytes = Buffer.from(lines.join(''));
    try {
      const file = await this.#openFile(bytes.length);
      await file.appendFile(bytes);
      this.#fileBytes += bytes.length;
      if (this.#isFailing) logger.info({ path, dropped: this.#dropped }, 'writing the audit log again');
      this.#isFailing = false;
    } catch (error) {
      this.#dropped += lines.length;
      if (!this.#isFailing)
        logger.error({ err: error, path }, 'cannot write the audit log; requests are served without it');
      this.#isFailing = true;
      await this.#closeFile();
    }
  }

  /** The file for `more` bytes, rotated if it would become too large. */
  async #openFile(more: number): Promise<FileHandle> {
    const { path, fileBytesMax, filesKept } = this.#options;
    // Another program may have renamed or removed the file, as logrotate does.
    if (this.#file !== undefined && (await fileIdAt(path)) !== this.#fileId) await this.#closeFile();
    this.#file ??= await this.#open();
    if (this.#fileBytes === 0 || this.#fileBytes + more <= fileBytesMax) return this.#file;
    await this.#closeFile();
    await rotateFiles(path, filesKept);
    this.#file = await this.#open();
    return this.#file;
  }

  async #open(): Promise<FileHandle> {
    const file = await open(this.#options.path, 'a+', 0o600);
    try {
      const { size, dev, ino } = await file.stat();
      this.#fileBytes = size;
      this.#fileId = `${dev} ${ino}`;
      // A full disk or a crash has cut the last line short.
      if (size > 0 && !(await endsLine(file, size))) await file.appendFile('\n');
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => undefined);
  }
}

/** '': there is none. */
async function fileIdAt(path: string): Promise<string> {
  try {
    const { dev, ino } = await stat(path);
    return `${dev} ${ino}`;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

async function endsLine(file: FileHandle, size: number): Promise<boolean> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString('latin1') === '\n';
}

async function rotateFiles(path: string, kept: number): Promise<void> {
  await rm(`${path}.${kept}`, { force: true });
  for (let number = kept - 1; number >= 1; number--)
    await renameIfExists(`${path}.${number}`, `${path}.${number + 1}`);
  await (kept > 0 ? renameIfExists(path, `${path}.1`) : rm(path, { force: true }));
}

async function renameIfExists(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** The scope is long, and the event names its key. */
function withoutScope(user: AuditUser): AuditUser {
  if (!user.extra || !(EXTRA.scope in user.extra)) return user;
  const { [EXTRA.scope]: _scope, ...extra } = user.extra;
  return { ...user, extra };
}
