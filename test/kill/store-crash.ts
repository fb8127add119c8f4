/** The crash test of the store alone: a plan of writes for the child that does them, and what the parent expects of them. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { StoredEntry } from '../../src/apiserver/storage/store.ts';
import type { CrashTest, Victim } from './kill-rounds.ts';

/** Small, so that compaction is frequent while the process is killed. */
const HISTORY_LIMIT = 100;

interface Found {
  readonly revision: number;
  readonly entries: readonly StoredEntry[];
}

export class StoreCrash implements CrashTest {
  readonly program: readonly string[];
  readonly database: string;
  readonly #random: () => number;
  readonly #models = Array.from({ length: WRITERS }, (_, writer) => new Model(writer));
  #revision = 0;
  acknowledged = 0;
  unheard = 0;

  /** `random` chooses the time of each kill. */
  constructor(folder: string, random: () => number) {
    this.database = join(folder, 'management.db');
    this.program = [join(import.meta.dirname, 'store-to-kill.ts'), this.database, String(HISTORY_LIMIT)];
    this.#random = random;
  }

  async check(victim: Victim): Promise<void> {
    const { revision, entries } = JSON.parse(await victim.open()) as Found; // from our own child
    assert.ok(revision >= this.#revision, `revision ${revision}, but ${this.#revision} was acknowledged`);
    this.#revision = revision;
    const values = new Map(entries.map(({ key, value }) => [key.name, value]));
    const counts = values.get(SHARED)?.['counts'];
    for (const [writer, model] of this.#models.entries()) {
      const own = [...values].filter(([name]) => name.startsWith(`w${writer}-`));
      const found = {
        states: Object.fromEntries(own),
        shared: Array.isArray(counts) ? counts[writer] : 0,
      };
      if (isDeepStrictEqual(found, expectedOf(model))) continue;
      model.advance();
      this.unheard++;
      assert.deepEqual(found, expectedOf(model));
    }
  }

  /** Kills the process after so many acknowledgements. */
  async writeUntilKilled(victim: Victim): Promise<void> {
    const after = Math.floor(this.#random() ** 2 * 60);
    victim.send(JSON.stringify(this.#models.map(({ steps }) => steps)));
    for (let heard = 0; ; heard++) {
      const line = await victim.nextLine();
      if (line === undefined) break;
      const [writer, revision] = line.split(' ').map(Number);
      this.#models[writer ?? -1]?.advance();
      this.#revision = Math.max(this.#revision, revision ?? 0);
      this.acknowledged++;
      if (heard === after) victim.kill();
    }
    await victim.killed();
  }
}

function expectedOf({ states, shared }: Model): unknown {
  return { states: Object.fromEntries(states), shared };
}

// The writes of each writer in their order.

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
