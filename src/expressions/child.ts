/** One sandbox process: started without environment, network or files; line-based messages; ended with SIGKILL, also by itself if it is
 * silent for too long or takes too much memory. */

import { spawn, type ChildProcess, execFileSync } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '../base/clock.ts';
import { InputBuffer } from '../base/input-buffer.ts';
import type { KillReason } from './batch.ts';
import { PROCESSOR_SHARE, STARVED_FACTOR, type GuestSource } from './guest-source.ts';

type LimitReason = Exclude<KillReason, 'exit'>;

export interface ChildOptions {
  readonly source: GuestSource;
  readonly clock: Clock;
  /** Limit of its resident memory, above its baseline. */
  readonly memoryBytes: number;
}

interface ChildEvents {
  ready(): void;
  message(line: string): void;
  /** Called once, last. The reason is undefined unless a limit was exceeded. */
  ended(how: string, reason: LimitReason | undefined): void;
}

/** The child's own heap, which holds the text of a batch several times; the isolate's heap is additional. */
const HEAP_MIB = 128;
/** Longer than any message of the realm: a child that sends more is compromised. */
const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;
const STDERR_CHARS_MAX = 2000;
const TICK_MS = 10;
/** A silent child is checked every tick, a child that sends results less often. */
const RESPONSIVE_TICKS = 10;

interface Watch {
  readonly silenceMs: number;
  allowanceMs: number;
  /** When its last message came. */
  heardMs: number;
  /** Its processor time when it became silent. */
  processorMs: number | undefined;
  /** The limit was exceeded at the last check. */
  isSuspect: boolean;
}

export class SandboxChild {
  readonly pid: number;
  /** Resident bytes when it became ready. */
  baselineBytes = 0;
  isReady = false;
  isFresh = true;
  /** The isolates that it knows, each with the programs that it knows. */
  readonly isolates: Map<number, Set<number>>;
  readonly #process: ChildProcess;
  readonly #input: Writable;
  readonly #events: ChildEvents;
  /** The beginning of a message. */
  readonly #pending = new InputBuffer(MESSAGE_BYTES_MAX);
  #unsent = '';
  #stderr = '';
  #hasEnded = false;
  #processorMs: number | undefined;
  readonly #clock: Clock;
  readonly #memoryBytes: number;
  #killReason: LimitReason | undefined;
  #watch: Watch | undefined;
  #watchTimer: Timer | undefined;
  #ticks = 0;

  constructor({ source, clock, memoryBytes }: ChildOptions, events: ChildEvents) {
    this.#clock = clock;
    this.#memoryBytes = memoryBytes;
    this.#events = events;
    this.isolates = new Map(source.setup.isolates.map(({ id }) => [id, new Set()]));
    const child = spawn(process.execPath, [...flags(source), '-e', source.main], {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    this.#process = child;
    this.pid = child.pid ?? 0;
    const [input, output, errors, lifeline] = child.stdio as [
      Writable,
      Readable,
      Readable,
      Duplex,
      undefined,
    ];
    this.#input = input;
    // Never read, because the child's write to it must not complete, see `holdLifeline`.
    lifeline.pause();
    for (const stream of [input, output, errors, lifeline]) stream.on('error', ignore);
    output.on('data', (chunk: Buffer) => this.#receive(chunk));
    errors.on('data', (chunk: Buffer) => {
      if (this.#stderr.length < STDERR_CHARS_MAX) this.#stderr += chunk.toString();
    });
    child.on('error', (error) => this.#end(error.message));
    child.on('exit', (code, signal) => this.#end(signal ?? `exit code ${code ?? 'unknown'}`));
    this.send(`S${JSON.stringify(source.setup)}`);
  }

  /** Writes the line together with those of {@link sendLater}, because each write wakes up the child. */
  send(line: string): void {
    this.#input.write(`${this.#unsent}${line}\n`);
    this.#unsent = '';
  }

  /** Sent with the next message. */
  sendLater(line: string): void {
    this.#unsent += `${line}\n`;
  }

  kill(): void {
    this.processorMs();
    this.#watchTimer?.cancel();
    this.#process.kill('SIGKILL');
  }

  /** It has work: it may be silent for `silenceMs`, and for `allowanceMs` more before its first response. */
  expectResponse(silenceMs: number, allowanceMs: number): void {
    this.#watch = { silenceMs, ...this.#heardNow(), allowanceMs };
    this.#watchTimer ??= this.#clock.schedule(TICK_MS, () => this.#tick());
  }

  expectNothing(): void {
    this.#watch = undefined;
  }

  residentBytes(): number | undefined {
    return residentBytes(this.pid);
  }

  /** Processor time used so far; the last known value once the process has ended. */
  processorMs(): number | undefined {
    this.#processorMs = processorMs(this.pid) ?? this.#processorMs;
    return this.#processorMs;
  }

  /** V8 reports there why it aborted. */
  get stderr(): string {
    return this.#stderr;
  }

  #receive(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1 && !this.#hasEnded; end = chunk.indexOf(10, from)) {
      const last = chunk.subarray(from, end);
      from = end + 1;
      if (this.#pending.length === 0) this.#dispatch(last.toString());
      else if (this.#pending.append(last)) this.#dispatch(this.#pending.take().toString());
      else return this.kill();
    }
    if (!this.#pending.append(chunk.subarray(from))) this.kill();
  }

  #dispatch(line: string): void {
    if (line !== 'H') {
      if (this.#watch !== undefined) Object.assign(this.#watch, this.#heardNow());
      this.#events.message(line);
      return;
    }
    this.isReady = true;
    this.baselineBytes = this.residentBytes() ?? 0;
    this.#events.ready();
  }

  #end(how: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#watchTimer?.cancel();
    this.#events.ended(how, this.#killReason);
  }

  #heardNow(): Omit<Watch, 'silenceMs'> {
    return {
      heardMs: this.#clock.monotonicMs(),
      allowanceMs: 0,
      processorMs: undefined,
      isSuspect: false,
    };
  }

  #tick(): void {
    this.#watchTimer = undefined;
    const watch = this.#watch;
    if (watch === undefined) return;
    this.#killReason = this.#exceededLimit(watch);
    if (this.#killReason !== undefined) {
      this.kill();
      return;
    }
    this.#watchTimer = this.#clock.schedule(watch.isSuspect ? 1 : TICK_MS, () => this.#tick());
  }

  #exceededLimit(watch: Watch): LimitReason | undefined {
    this.#ticks += 1;
    const silenceMs = this.#clock.monotonicMs() - watch.heardMs;
    if (silenceMs >= TICK_MS || this.#ticks % RESPONSIVE_TICKS === 0) {
      const bytes = this.residentBytes();
      if (bytes !== undefined && bytes > this.baselineBytes + this.#memoryBytes) return 'memory';
    }
    watch.processorMs ??= silenceMs >= TICK_MS ? this.processorMs() : undefined;
    const limitMs = watch.silenceMs + watch.allowanceMs;
    if (silenceMs <= limitMs) return undefined;
    // If this process was delayed, the response may already be in the pipe, so check once more after the next turn of the event loop.
    if (!watch.isSuspect) {
      watch.isSuspect = true;
      return undefined;
    }
    return this.#isStarved(watch, silenceMs, limitMs) ? undefined : 'timeout';
  }

  #isStarved(watch: Watch, silenceMs: number, limitMs: number): boolean {
    const now = this.processorMs();
    if (now === undefined || watch.processorMs === undefined || silenceMs > limitMs * STARVED_FACTOR)
      return false;
    return now - watch.processorMs < limitMs * PROCESSOR_SHARE;
  }
}

function ignore(): void {
  // A broken pipe means that the child has ended, which `exit` reports.
}

function flags(source: GuestSource): string[] {
  return [
    // Isolates do not work with Node's startup snapshot.
    '--no-node-snapshot',
    '--permission',
    '--allow-addons',
    `--allow-fs-read=${source.addon}`,
    '--no-warnings',
    // V8 does not allow the realm to delete this function, so it has an unguessable name.
    `--expose-gc-as=${source.setup.collectorName}`,
    '--disable-proto=delete',
    '--enable-experimental-regexp-engine-on-excessive-backtracks',
    `--regexp-backtracks-before-fallback=${source.regexpBacktracksMax}`,
    // Strings live for one batch, so a larger young generation would only increase the memory.
    '--max-semi-space-size=2',
    `--max-old-space-size=${HEAP_MIB}`,
  ];
}

/** Bytes; undefined when the process has ended or the system does not report it. Read from /proc on Linux, from `ps` elsewhere. */
export function residentBytes(pid: number): number | undefined {
  try {
    const text =
      process.platform === 'linux'
        ? readFileSync(`/proc/${pid}/status`, 'utf8')
        : `VmRSS: ${execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })}`;
    const kib = /VmRSS:\s*(\d+)/.exec(text)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined;
  }
}

/** Processor time used so far, milliseconds; undefined on systems other than Linux, which counts in hundredths of a second. */
export function processorMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything; user and system time are the 12th and 13th fields after it.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isFinite(ticks) ? ticks * 10 : undefined;
  } catch {
    return undefined;
  }
}
