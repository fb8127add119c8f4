/** The object that owns the copies. When it is created again, the uid that is known of it names no object any more, and the host's garbage collector
 * deletes every copy with that owner, also one that is created again. */

import type { OwnerReference } from '../translate/forge.ts';

type ResolveOwner = () => Promise<OwnerReference | undefined>;

export class CopyOwner {
  readonly #resolve: ResolveOwner;
  #current: OwnerReference | undefined;
  #reading: Promise<void> | undefined;

  /** `current`: as resolved at the start; undefined: copies have no owner. */
  constructor(current: OwnerReference | undefined, resolve: ResolveOwner) {
    this.#current = current;
    this.#resolve = resolve;
  }

  get current(): OwnerReference | undefined {
    return this.#current;
  }

  /** Reads the uid again, because a copy was deleted. Never rejects: an owner that does not exist stays, so that nothing outlives it. */
  async refresh(): Promise<void> {
    if (this.#current === undefined) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    this.#current = (await this.#resolve().catch(() => undefined)) ?? this.#current;
  }
}
