/** Entries by key, in the order in which they were added, except that groups take turns: many entries of one group delay each of another by one. */

export class Turns<T> {
  readonly #groupOf: (key: string) => string;
  /** In the order of their turns. */
  readonly #groups = new Map<string, Map<string, T>>();
  #size = 0;

  /** Default: one group, that is, the order in which keys were added. */
  constructor(groupOf: (key: string) => string = () => '') {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#size;
  }

  has(key: string): boolean {
    return this.#size > 0 && this.#groups.get(this.#groupOf(key))?.has(key) === true;
  }

  get(key: string): T | undefined {
    return this.#groups.get(this.#groupOf(key))?.get(key);
  }

  /** A key that is there keeps its place. */
  set(key: string, value: T): void {
    const name = this.#groupOf(key);
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = new Map();
      this.#groups.set(name, group);
    }
    if (!group.has(key)) this.#size += 1;
    group.set(key, value);
  }

  delete(key: string): void {
    const name = this.#groupOf(key);
    const group = this.#groups.get(name);
    if (group?.delete(key) !== true) return;
    this.#size -= 1;
    if (group.size === 0) this.#groups.delete(name);
  }

  /** Removes and returns the oldest entry of the group whose turn it is; undefined if there is none. */
  take(): readonly [string, T] | undefined {
    for (const [name, group] of this.#groups) {
      const next = group.entries().next();
      if (next.done) continue;
      const [key] = next.value;
      group.delete(key);
      this.#size -= 1;
      // The last in the order of turns from now on.
      this.#groups.delete(name);
      if (group.size > 0) this.#groups.set(name, group);
      return next.value;
    }
    return undefined;
  }

  /** All of them, group by group. */
  *entries(): Generator<readonly [string, T]> {
    for (const group of this.#groups.values()) yield* group;
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }
}
