/** Random values from a seed, so that a run can be repeated. */

import { seededRandom } from '../../support/random.ts';

export class Seeded {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  /** In [0, below). */
  integer(below: number): number {
    return Math.floor(this.next() * below);
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    const value = values[this.integer(values.length)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  }

  /** A function of these, called. */
  oneOf<T>(makers: readonly (() => T)[]): T {
    return this.pick(makers)();
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; at++) bytes[at] = this.integer(256);
    return bytes;
  }

  /** Up to `length` characters of `alphabet`. */
  text(length: number, alphabet = 'abcXYZ019-._~%/?#[]@!$&\'()*+,;=:" \\{}|^`<>é漢\u0000\u0001\n'): string {
    const characters = Array.from(alphabet);
    return Array.from({ length: this.integer(length + 1) }, () => this.pick(characters)).join('');
  }
}
