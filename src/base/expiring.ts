/** A map whose entries are gone some time after they were set. */

import type { Clock } from './clock.ts';

export class Expiring<K, V> {
  readonly #clock: Clock;
  readonly #keptMs: (value: V) => number;
  /** In the order in which they were set. */
  readonly #entries = new Map<K, { readonly value: V; readonly setMs: number }>();

  /** `keptMs`: of each value. */
  constructor(clock: Clock, keptMs: (value: V) => number) {
    this.#clock = clock;
    this.#keptMs = keptMs;
  }

  get(key: K): V | undefined {
    return this.#live(key)?.value;
  }

  set(key: K, value: V): void {
    // In the order of the map, so that a sweep ends at the first entry that is kept.
    this.#entries.delete(key);
    this.#entries.set(key, { value, setMs: this.#clock.monotonicMs() });
    for (const oldest of this.#entries.keys()) if (this.#live(oldest) !== undefined) return;
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  #live(key: K): { readonly value: V; readonly setMs: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.monotonicMs() - entry.setMs < this.#keptMs(entry.value))
      return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
