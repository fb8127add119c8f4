/**
 * Parses YAML without blocking the event loop: short texts immediately, longer ones in a worker thread, one at a time and with a deadline.
 * Parsing YAML takes a hundred times as long as parsing JSON, and far longer for some texts.
 */

import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../../base/clock.ts';
import { createSemaphore } from '../../../base/semaphore.ts';
import { sourceExtension } from '../../../base/source-extension.ts';
import {
  YAML_INLINE_BYTES_MAX,
  YAML_PARSE_MS_MAX,
  YAML_THREAD_MIB_MAX,
  YAML_WAITING_MAX,
} from '../../limits.ts';
import { tooManyRequests } from '../../status.ts';
import { readYaml, type YamlOutcome } from './read-yaml.ts';

/** An idle thread is terminated, since it holds some megabytes. */
const IDLE_MS = 60_000;

export class YamlParser implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #turns = createSemaphore(1);
  #waiting = 0;
  #thread: Worker | undefined;
  #idle: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws a 429 `StatusError` when too many texts wait. */
  async parse(text: string): Promise<YamlOutcome> {
    if (text.length <= YAML_INLINE_BYTES_MAX) return readYaml(text);
    if (this.#waiting >= YAML_WAITING_MAX) {
      throw tooManyRequests('too many large YAML bodies are being parsed; retry later or send JSON');
    }
    this.#waiting++;
    try {
      return await this.#turns.run(() => this.#inThread(text));
    } finally {
      this.#waiting--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }

  async #inThread(text: string): Promise<YamlOutcome> {
    this.#idle?.cancel();
    const thread = (this.#thread ??= this.#start());
    const { promise, resolve } = Promise.withResolvers<YamlOutcome>();
    const onFailure = (): void => {
      resolve({ kind: 'rejected', reason: 'the YAML needs too much memory; send JSON' });
    };
    thread.once('message', resolve);
    thread.once('error', onFailure);
    thread.once('exit', onFailure);
    const deadline = this.#clock.schedule(YAML_PARSE_MS_MAX, () => {
      resolve({ kind: 'rejected', reason: 'the YAML takes too long to parse; send JSON' });
      void this.#end();
    });
    thread.postMessage(text);
    try {
      return await promise;
    } finally {
      deadline.cancel();
      thread.removeListener('message', resolve);
      thread.removeListener('error', onFailure);
      thread.removeListener('exit', onFailure);
      if (this.#thread !== undefined) this.#idle = this.#clock.schedule(IDLE_MS, () => void this.#end());
    }
  }

  #start(): Worker {
    const thread = startThread();
    thread.once('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
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
