/** A map whose entries are gone some time after they were set. */

import type { Clock } from './clock.ts';

interface Entry<V> {
  readonly value: V;
  readonly keptMs: number;
  readonly endMs: number;
}

export class Expiring<K, V> {
  readonly #clock: Clock;
  readonly #keptMs: (value: V) => number;
  readonly #entries = new Map<K, Entry<V>>();
  /** Keys by how long their entries are kept, in the order in which they were set, which is that in which they end. */
  readonly #queues = new Map<number, Set<K>>();

  /** `keptMs`: of each value. A few different times: each `set` looks at one entry of each. */
  constructor(clock: Clock, keptMs: (value: V) => number) {
    this.#clock = clock;
    this.#keptMs = keptMs;
  }

  /** Entries that are held: once one has been set, those that have not expired. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#isLive(entry)) return entry?.value;
    this.delete(key);
    return undefined;
  }

  set(key: K, value: V): void {
    this.delete(key);
    const keptMs = this.#keptMs(value);
    this.#entries.set(key, { value, keptMs, endMs: this.#clock.monotonicMs() + keptMs });
    const queue = this.#queues.get(keptMs) ?? new Set();
    this.#queues.set(keptMs, queue.add(key));
    for (const waiting of this.#queues.values()) this.#sweep(waiting);
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const queue = this.#queues.get(entry.keptMs);
    queue?.delete(key);
    if (queue?.size === 0) this.#queues.delete(entry.keptMs);
  }

  /** Ends at the first entry that is kept. */
  #sweep(queue: ReadonlySet<K>): void {
    for (const key of queue) {
      const entry = this.#entries.get(key);
      if (entry !== undefined && this.#isLive(entry)) return;
      this.delete(key);
    }
  }

  #isLive({ endMs }: Entry<V>): boolean {
    return this.#clock.monotonicMs() < endMs;
  }
}
