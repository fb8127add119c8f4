/** One watch: events in order, late, sometimes twice, and a stream that may stall, break off or be refused. */

import type { Timer, VirtualClock } from '../../../src/base/clock.ts';
import { eventOf, type Change } from '../../../src/kube/memory-cluster.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { cloneObject, type KubeObject, type Resource } from '../../../src/kube/object.ts';
import {
  TransportError,
  type WatchEventType,
  type WatchHandler,
  type WatchOptions,
} from '../../../src/kube/types.ts';
import type { Faults } from './faults.ts';

import type { ProcessClock } from './process-clock.ts';
import type { SimCluster } from './sim-cluster.ts';

export interface SimWatchOptions {
  readonly cluster: SimCluster;
  readonly clock: VirtualClock;
  readonly process: ProcessClock;
  readonly faults: Faults;
  readonly resource: Resource;
  readonly scope: WatchOptions;
  readonly handler: WatchHandler;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The response that never came. */
export function lostAnswer(): TransportError {
  return new TransportError('connection reset');
}

/** An idle watch hears from the server this often. */
export const BOOKMARK_MS = 60_000;

export class SimWatch {
  readonly #options: SimWatchOptions;
  readonly #unsubscribe: () => void;
  readonly #unstream: () => void;
  readonly #timers = new Set<Timer>();
  #deliverAtMs = 0;
  #hasEnded = false;
  #isStalled = false;
  #previous: { readonly type: WatchEventType; readonly object: KubeObject } | undefined;

  constructor(options: SimWatchOptions) {
    this.#options = options;
    this.#unsubscribe = options.cluster.subscribe((change) => this.#enqueue(change));
    this.#unstream = options.cluster.openStream(() => {
      this.#close();
      options.process.run(() => options.reject(lostAnswer()));
    });
  }

  start(): void {
    const { cluster, scope, handler, faults } = this.#options;
    const { signal } = scope;
    const missed = cluster.changesAfter(Number(scope.resourceVersion));
    if (missed === undefined) return this.#end(failure(410, 'Expired', 'too old resource version'));
    if (signal?.aborted === true) return this.#end(lostAnswer());
    signal?.addEventListener('abort', this.#aborted, { once: true });
    handler.started();
    for (const change of missed) this.#enqueue(change);
    const lifeMs = Math.min((scope.timeoutSeconds ?? 300) * 1000, faults.watchLifeMs());
    this.#later(lifeMs, () => this.#end(faults.isWatchCut() ? lostAnswer() : undefined));
    const stallAfterMs = faults.stallAfterMs();
    if (stallAfterMs !== undefined) this.#later(stallAfterMs, () => (this.#isStalled = true));
    const bookmark = (): void => {
      // A watch that waits for a later version hears nothing, not even that.
      if (cluster.revision >= Number(scope.resourceVersion))
        this.#deliver('BOOKMARK', {
          kind: this.#options.resource.kind,
          metadata: { name: '', resourceVersion: String(cluster.revision) },
        });
      this.#later(BOOKMARK_MS, bookmark);
    };
    this.#later(BOOKMARK_MS, bookmark);
  }

  #enqueue(change: Change): void {
    const { resource, scope } = this.#options;
    const event = eventOf(change, resource.plural, scope);
    if (event !== undefined) this.#deliver(event.type, event.object);
  }

  /** In order: an event is never before one that was committed earlier. */
  #deliver(type: WatchEventType, object: KubeObject): void {
    const { clock, faults } = this.#options;
    // Whole milliseconds, as timers have: rounded down, a later event could be due first.
    const delayMs = Math.ceil(Math.max(this.#deliverAtMs - clock.nowMs, faults.latencyMs(), 1));
    this.#deliverAtMs = clock.nowMs + delayMs;
    const isTwice = faults.isEventTwice();
    const replayed = faults.isEventReplayed() ? this.#previous : undefined;
    if (type !== 'BOOKMARK') this.#previous = { type, object };
    this.#later(delayMs, () => {
      this.#hand(type, object);
      if (isTwice) this.#hand(type, object);
      if (replayed !== undefined && replayed.type !== 'DELETED') this.#hand(replayed.type, replayed.object);
    });
  }

  #hand(type: WatchEventType, object: KubeObject): void {
    if (this.#hasEnded || this.#isStalled) return;
    const { handler } = this.#options;
    try {
      handler.dataReceived();
      handler.event(type, cloneObject(object));
    } catch (error) {
      this.#end(error as Error);
    }
  }

  #later(delayMs: number, callback: () => void): void {
    const { clock, process } = this.#options;
    const timer = clock.schedule(delayMs, () => {
      this.#timers.delete(timer);
      if (process.isDead) this.#close();
      else process.run(callback);
    });
    this.#timers.add(timer);
  }

  #end(error?: Error): void {
    if (this.#hasEnded) return;
    this.#close();
    if (error === undefined) this.#options.resolve();
    else this.#options.reject(error);
  }

  /** As undici: the request rejects with the reason. */
  readonly #aborted = (): void =>
    this.#options.process.run(() => this.#end(this.#options.scope.signal?.reason as Error));

  #close(): void {
    this.#hasEnded = true;
    this.#unsubscribe();
    this.#unstream();
    // Node keeps a composite signal, and all that its listeners hold, for as long as it has a listener.
    this.#options.scope.signal?.removeEventListener('abort', this.#aborted);
    for (const timer of this.#timers) timer.cancel();
  }
}
