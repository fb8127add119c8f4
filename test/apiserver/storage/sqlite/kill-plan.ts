/** The writes of each writer of the crash test in their order, for the child that does them and the parent that checks them. */

export const WRITERS = 6;
const KEYS_PER_WRITER = 4;

/** One step of one writer: on its own key, or on the shared counter. */
export type Step = { readonly kind: 'own'; readonly name: string } | { readonly kind: 'shared' };

export interface OwnState {
  /** The step that wrote it. */
  readonly step: number;
  readonly padding: string;
}

export const SHARED = 'shared';

/** A number in [0, 1) from any two integers: the same for parent and child. */
function chance(a: number, b: number): number {
  let x = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 1, 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  x = Math.imul(x ^ (x >>> 13), 0x2c1b3c6d);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

export function stepOf(writer: number, step: number): Step {
  const drawn = chance(writer, step);
  if (drawn < 0.2) return { kind: 'shared' };
  return { kind: 'own', name: `w${writer}-${Math.floor(drawn * 997) % KEYS_PER_WRITER}` };
}

/** A step on a key that exists deletes it, this often. */
export function deletes(writer: number, step: number): boolean {
  return chance(writer + 1000, step) < 0.3;
}

/** Large enough that many states do not fit a page of the database, so that a half write would show. */
export function stateOf(writer: number, step: number): OwnState {
  const length = Math.floor(chance(writer + 2000, step) ** 4 * 20_000);
  return { step, padding: String.fromCharCode(97 + (step % 26)).repeat(length) };
}

/** The states of a writer's own keys after its first `steps` steps. */
export class Model {
  readonly #writer: number;
  readonly states = new Map<string, OwnState>();
  /** Steps done. */
  steps = 0;
  /** How many of them were on the shared counter. */
  shared = 0;

  constructor(writer: number) {
    this.#writer = writer;
  }

  advance(): void {
    const step = stepOf(this.#writer, this.steps);
    if (step.kind === 'shared') this.shared++;
    else if (this.states.has(step.name) && deletes(this.#writer, this.steps)) this.states.delete(step.name);
    else this.states.set(step.name, stateOf(this.#writer, this.steps));
    this.steps++;
  }
}
