/**
 * Parses YAML without blocking the event loop: short texts immediately, longer ones in a worker thread, one at a time and with a deadline.
 * Parsing YAML takes a hundred times as long as parsing JSON, and far longer for some texts. The users whose texts wait take turns.
 */

import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import { sourceExtension } from '../../base/source-extension.ts';
import type { StatusError } from '../../kube/status-error.ts';
import {
  YAML_INLINE_BYTES_MAX,
  YAML_PARSE_MS_MAX,
  YAML_PARSE_MS_MAX_WHILE_OTHERS_WAIT,
  YAML_THREAD_MIB_MAX,
  YAML_WAITING_MAX,
  YAML_WAITING_PER_USER_MAX,
} from '../limits.ts';
import { tooManyRequests } from '../status.ts';
import { readYaml, type YamlOutcome } from './read-yaml.ts';
import type { YamlMessage } from './yaml-thread.ts';

/** Idle threads are terminated, since each holds some megabytes. */
const IDLE_MS = 60_000;

/** The parser for the texts of one user. Throws a 429 `StatusError` when too many texts wait, or when this one keeps others waiting. */
export type ParseYaml = (text: string) => Promise<YamlOutcome>;

/** The text in the thread. */
interface Parsing {
  readonly user: string;
  /** Monotonic; undefined: the thread is still starting. */
  startedMs: number | undefined;
  readonly reject: (error: StatusError) => void;
  deadline: Timer;
}

export class YamlParser implements AsyncDisposable {
  readonly #clock: Clock;
  /** By user, the starts of the texts that wait. The first user is the next one, and becomes the last. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #waitingCount = 0;
  #isBusy = false;
  #parsing: Parsing | undefined;
  #thread: Worker | undefined;
  /** Started while texts wait: the start of a thread takes longer than most texts, and the present one may be terminated. */
  #spare: Worker | undefined;
  #idle: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(user: string): ParseYaml {
    return async (text) => {
      if (text.length <= YAML_INLINE_BYTES_MAX) return readYaml(text);
      if (this.#isBusy) await this.#turnOf(user);
      this.#isBusy = true;
      try {
        return await this.#inThread(text, user);
      } finally {
        this.#isBusy = false;
        this.#startNext();
      }
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endAll();
  }

  #turnOf(user: string): Promise<void> {
    const own = this.#waiting.get(user) ?? [];
    if (own.length >= YAML_WAITING_PER_USER_MAX || this.#waitingCount >= YAML_WAITING_MAX) {
      throw tooManyRequests('too many large YAML bodies are being parsed; retry later or send JSON');
    }
    this.#waiting.set(user, own);
    this.#waitingCount++;
    const turn = new Promise<void>((resolve) => own.push(resolve));
    this.#spare ??= this.#start();
    this.#limitParsing();
    return turn;
  }

  #startNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
    const [user, starts] = next;
    const start = starts.shift();
    this.#waiting.delete(user);
    if (starts.length > 0) this.#waiting.set(user, starts);
    this.#waitingCount--;
    this.#isBusy = true;
    start?.();
  }

  async #inThread(text: string, user: string): Promise<YamlOutcome> {
    this.#idle?.cancel();
    const thread = (this.#thread ??= this.#spare ?? this.#start());
    if (thread === this.#spare) this.#spare = undefined;
    if (this.#waitingCount > 0) this.#spare ??= this.#start();
    const { promise, resolve, reject } = Promise.withResolvers<YamlOutcome>();
    const deadline = this.#clock.schedule(YAML_PARSE_MS_MAX, () => {
      resolve({ kind: 'rejected', reason: 'the YAML takes too long to parse; send JSON' });
      void this.#end();
    });
    const parsing: Parsing = { user, startedMs: undefined, reject, deadline };
    this.#parsing = parsing;
    const onMessage = (message: YamlMessage): void => {
      if (message !== 'started') return resolve(message);
      parsing.startedMs = this.#clock.monotonicMs();
      this.#limitParsing();
    };
    const onFailure = (): void => {
      resolve({ kind: 'rejected', reason: 'the YAML needs too much memory; send JSON' });
    };
    thread.on('message', onMessage);
    thread.once('error', onFailure);
    thread.once('exit', onFailure);
    thread.postMessage(text);
    try {
      return await promise;
    } finally {
      parsing.deadline.cancel();
      this.#parsing = undefined;
      thread.removeListener('message', onMessage);
      thread.removeListener('error', onFailure);
      thread.removeListener('exit', onFailure);
      if ((this.#thread ?? this.#spare) !== undefined) {
        this.#idle = this.#clock.schedule(IDLE_MS, () => void this.#endAll());
      }
    }
  }

  /** Shortens the deadline of the text in the thread while another user waits. */
  #limitParsing(): void {
    const parsing = this.#parsing;
    if (parsing?.startedMs === undefined) return;
    const { user, startedMs, reject } = parsing;
    if (![...this.#waiting.keys()].some((waiting) => waiting !== user)) return;
    const leftMs = startedMs + YAML_PARSE_MS_MAX_WHILE_OTHERS_WAIT - this.#clock.monotonicMs();
    parsing.deadline.cancel();
    parsing.deadline = this.#clock.schedule(Math.max(0, leftMs), () => {
      reject(tooManyRequests('the YAML takes long to parse and others wait; retry later or send JSON'));
      void this.#end();
    });
  }

  #start(): Worker {
    const thread = startThread();
    thread.once('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      if (this.#spare === thread) this.#spare = undefined;
    });
    return thread;
  }

  async #endAll(): Promise<void> {
    const spare = this.#spare;
    this.#spare = undefined;
    await Promise.all([this.#end(), spare?.terminate()]);
  }

  async #end(): Promise<void> {
    this.#idle?.cancel();
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }
}

function startThread(): Worker {
  const program = `./yaml-thread.${sourceExtension(import.meta.url)}`;
  const thread = new Worker(new URL(program, import.meta.url), {
    name: 'yaml-parser',
    // The thread needs no options of this process.
    execArgv: [],
    argv: [],
    resourceLimits: { maxOldGenerationSizeMb: YAML_THREAD_MIB_MAX },
  });
  // An error while no text is parsed must not end the process; the next text starts another thread.
  thread.on('error', () => undefined);
  thread.unref();
  return thread;
}
