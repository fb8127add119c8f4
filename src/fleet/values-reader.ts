/**
 * Reads the texts of vClusters, their values and their kubeconfigs, in one thread, which ends when it is idle. Namespaces take turns, and each has a
 * share of its time: whatever the texts of one namespace are and however often they change, those of another one are read soon.
 */

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { sleep, type Clock, type Timer } from '../base/clock.ts';
import { TerminalError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { TokenBuckets, type Rate } from '../base/token-bucket.ts';
import { Turns } from '../base/turns.ts';
import type { ParseKubeconfig } from '../kube/credentials/kubeconfig.ts';
import type { Kubeconfig } from '../kube/credentials/kubeconfig-file.ts';
import { parseKey, type ObjectKey } from '../kube/object.ts';
import { TransportError } from '../kube/types.ts';
import { decodeMemberConfig } from './config-transfer.ts';
import { TEXT_CHARS_MAX } from './vcluster.ts';
import type { MemberConfig, MemberSources } from './member-config.ts';

export interface ValuesReader extends AsyncDisposable {
  /** Rejects with an {@link UnreadableError} if it takes too long. */
  memberConfig(sources: MemberSources): Promise<MemberConfig>;
  /** `source`: of the text, for messages. Rejects with a `TerminalError` if it is none. */
  kubeconfig(vcluster: { readonly namespace: string }, text: string, source: string): Promise<Kubeconfig>;
}

/** Reading it took too much time or memory. It may have been for another reason that the machine was slow: a repetition may succeed. */
export class UnreadableError extends TerminalError {}

/** Of processor time, because a busy machine makes no text unreadable. Values that are as long as they may be take a fifth of it. */
const DEADLINE_MS = 5000;
/** Between two looks at the processor time. */
const LOOK_MS = 500;
/** Of the values of one vCluster, with what reading them leaves to the garbage collector. */
const HEAP_MIB = 192;
const IDLE_MS = 30_000;
/** Milliseconds that the texts of one namespace may take: 20 long ones at once, and a twentieth of the time afterwards. It is whole after 200 s. */
const SHARE: Rate = { burst: 10_000, perSecond: 50 };
/** A kubeconfig has certificates, and a few short fields beside them. */
const KUBECONFIG_CHARS_MAX = 256 * 1024;

export type ReadRequest =
  | { readonly kind: 'values'; readonly sources: MemberSources }
  | { readonly kind: 'kubeconfig'; readonly text: string; readonly source: string };

export type ReadResponse = { readonly text: string } | { readonly error: string };

interface Job extends PromiseWithResolvers<ReadResponse> {
  readonly namespace: string;
  readonly request: ReadRequest;
}

export class ThreadReader implements ValuesReader {
  readonly #clock: Clock;
  readonly #processorMs: typeof processorTimeOf;
  readonly #waiting = new Turns<Job>((key) => parseKey(key).namespace);
  /** What the texts of each namespace may take. */
  readonly #shares: TokenBuckets;
  /** Of requests whose namespace has used its share. */
  readonly #later = new Map<Timer, Job>();
  #idle: Timer | undefined;
  #thread: ReadingThread | undefined;
  #jobs = 0;
  #isReading = false;
  #isClosed = false;

  /** `processorMs`: of a thread, since its start. */
  constructor(clock: Clock, processorMs = processorTimeOf) {
    this.#clock = clock;
    this.#processorMs = processorMs;
    this.#shares = new TokenBuckets(SHARE, clock);
  }

  async memberConfig(sources: MemberSources): Promise<MemberConfig> {
    const response = await this.#read(sources.vcluster.namespace, { kind: 'values', sources });
    if ('error' in response) throw new Error(response.error);
    return decodeMemberConfig(response.text);
  }

  async kubeconfig(
    { namespace }: { readonly namespace: string },
    text: string,
    source: string,
  ): Promise<Kubeconfig> {
    const response = await this.#read(namespace, { kind: 'kubeconfig', text, source });
    if ('error' in response) throw new TerminalError(response.error);
    if (response.text.length > KUBECONFIG_CHARS_MAX)
      throw new TerminalError(
        `${source} has more than ${KUBECONFIG_CHARS_MAX} characters after aliases are expanded: shorten it`,
      );
    return parseJson(response.text) as unknown as Kubeconfig; // what the thread writes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#idle?.cancel();
    for (const [timer, job] of this.#later) {
      timer.cancel();
      job.reject(closed());
    }
    await this.#thread?.end(closed());
  }

  #read(namespace: string, request: ReadRequest): Promise<ReadResponse> {
    const job = { namespace, request, ...Promise.withResolvers<ReadResponse>() };
    this.#add(`${namespace}/${(this.#jobs += 1)}`, job);
    return job.promise;
  }

  #add(key: ObjectKey, job: Job): void {
    this.#waiting.set(key, job);
    if (!this.#isReading) void this.#readAll();
  }

  /** Never rejects. */
  async #readAll(): Promise<void> {
    this.#isReading = true;
    this.#idle?.cancel();
    for (let next = this.#waiting.take(); next !== undefined; next = this.#waiting.take()) {
      const [key, job] = next;
      const waitMs = this.#shares.spend(job.namespace, 0);
      if (waitMs > 0 && !this.#isClosed) {
        this.#addLater(key, job, Math.ceil(waitMs));
        continue;
      }
      const startedMs = this.#clock.monotonicMs();
      await this.#respond(job).then(job.resolve, job.reject);
      this.#shares.spend(job.namespace, this.#clock.monotonicMs() - startedMs);
    }
    this.#isReading = false;
    if (!this.#isClosed) this.#idle = this.#clock.schedule(IDLE_MS, () => void this.#thread?.end(closed()));
  }

  #addLater(key: ObjectKey, job: Job, waitMs: number): void {
    const timer = this.#clock.schedule(waitMs, () => {
      this.#later.delete(timer);
      this.#add(key, job);
    });
    this.#later.set(timer, job);
  }

  async #respond({ request }: Job): Promise<ReadResponse> {
    if (this.#isClosed) throw closed();
    const thread = this.#thread?.hasEnded === false ? this.#thread : new ReadingThread();
    this.#thread = thread;
    const reading = new AbortController();
    void this.#limit(thread, reading.signal);
    try {
      return await thread.respond(request);
    } finally {
      reading.abort();
    }
  }

  /** Ends the thread when it has used that much processor time. A thread that is ended may not tell any more what it has used. */
  async #limit(thread: ReadingThread, signal: AbortSignal): Promise<void> {
    const untilMs = (await this.#processorMs(thread.worker)) + DEADLINE_MS;
    let leftMs = DEADLINE_MS;
    while (leftMs > 0) {
      await sleep(this.#clock, Math.max(leftMs, LOOK_MS), signal);
      if (signal.aborted) return;
      leftMs = untilMs - (await this.#processorMs(thread.worker));
    }
    await thread.end(unreadable('time'));
  }
}

/** 0 before it runs, and afterwards. */
async function processorTimeOf(worker: Worker): Promise<number> {
  const { user, system } = await worker.cpuUsage().catch(() => ({ user: 0, system: 0 }));
  return (user + system) / 1000;
}

class ReadingThread {
  readonly worker: Worker;
  readonly #ended = Promise.withResolvers<void>();
  #response: PromiseWithResolvers<ReadResponse> | undefined;
  hasEnded = false;

  constructor() {
    this.worker = new Worker(new URL(`./values-thread${extname(import.meta.url)}`, import.meta.url), {
      name: 'values',
      // It needs nothing of this process.
      execArgv: [],
      argv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    });
    this.worker.on('message', (response: ReadResponse) => this.#response?.resolve(response));
    this.worker.on('error', (error: unknown) =>
      this.#fail(isOutOfMemory(error) ? unreadable('memory') : error),
    );
    this.worker.on('exit', () => {
      this.#fail(new Error('the thread that reads values has ended'));
      this.#ended.resolve();
    });
  }

  /** One at a time. */
  respond(request: ReadRequest): Promise<ReadResponse> {
    const response = Promise.withResolvers<ReadResponse>();
    this.#response = response;
    this.worker.postMessage(request);
    return response.promise;
  }

  /** What it reads is rejected with `reason`. */
  async end(reason: Error): Promise<void> {
    this.#fail(reason);
    void this.worker.terminate();
    await this.#ended.promise;
  }

  #fail(reason: unknown): void {
    this.hasEnded = true;
    this.#response?.reject(reason);
  }
}

function closed(): Error {
  return new TransportError('the fleet is stopping');
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

function unreadable(what: 'time' | 'memory'): UnreadableError {
  return new UnreadableError(`the text takes too much ${what} to read: shorten it`);
}

/** For one sync, which reads the Secret again now and then: its kubeconfig is parsed when it has changed. Rejects when `signal` aborts. */
export function kubeconfigParser(
  reader: Pick<ValuesReader, 'kubeconfig'>,
  vcluster: { readonly namespace: string },
  signal: AbortSignal,
): ParseKubeconfig {
  let last: { readonly text: string; readonly config: Kubeconfig } | undefined;
  return async (text, source) => {
    if (last?.text === text) return last.config;
    if (text.length > TEXT_CHARS_MAX)
      throw new TerminalError(`${source} has more than ${TEXT_CHARS_MAX} characters: shorten it`);
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    try {
      const config = await Promise.race([reader.kubeconfig(vcluster, text, source), aborted.promise]);
      last = { text, config };
      return config;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  };
}
