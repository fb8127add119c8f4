/** Repeated kill -9 of a process that writes: every acknowledged write is stored, and none is stored partly. */

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { verifyDatabase } from '../../../../src/apiserver/storage/sqlite/maintenance.ts';
import type { StoredEntry } from '../../../../src/apiserver/storage/store.ts';
import { Model, SHARED, WRITERS } from './kill-plan.ts';

const CHILD = join(import.meta.dirname, 'store-to-kill.ts');
/** The compile cache that the scripts of package.json use. */
const COMPILE_CACHE = join(import.meta.dirname, '../../../../node_modules/.cache/endpoint-syncer-scripts');
/** Small, so that compaction is frequent while the process is killed. */
const HISTORY_LIMIT = 100;
/** Processes that have started and wait, because starting takes most of the time. */
const READY = 2;

export interface KillReport {
  readonly kills: number;
  /** Writes that were acknowledged before a kill. */
  readonly acknowledged: number;
  /** Writes that were stored although their acknowledgement was not received. */
  readonly unheard: number;
}

/** `random` chooses the time of each kill. */
export async function killRounds(file: string, rounds: number, random: () => number): Promise<KillReport> {
  const checker = new Checker();
  const waiting: Victim[] = [];
  let acknowledged = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      while (waiting.length < Math.min(READY, rounds - round)) waiting.push(new Victim(file));
      const victim = waiting.shift();
      if (!victim) break;
      await using killed = victim;
      checker.check(await killed.open());
      acknowledged += await killed.writeUntilKilled(checker, Math.floor(random() ** 2 * 60));
      assert.deepEqual(verifyDatabase(file).problems, [], `round ${round}`);
    }
    await using last = new Victim(file);
    checker.check(await last.open());
  } finally {
    for (const victim of waiting) await victim[Symbol.asyncDispose]();
  }
  return { kills: rounds, acknowledged, unheard: checker.unheard };
}

interface Found {
  readonly revision: number;
  readonly entries: readonly StoredEntry[];
}

class Victim {
  readonly #process: ChildProcess;
  readonly #lines: Interface;
  readonly #iterator: NodeJS.AsyncIterator<string>;
  readonly #exit: Promise<void>;
  #error = '';

  constructor(file: string) {
    this.#process = spawn(process.execPath, [CHILD, file, String(HISTORY_LIMIT)], {
      stdio: 'pipe',
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
    });
    this.#exit = new Promise((resolve) => this.#process.once('close', () => resolve()));
    this.#process.stderr?.on('data', (chunk) => (this.#error += String(chunk)));
    if (!this.#process.stdout) throw new Error('the child has no standard output');
    this.#lines = createInterface({ input: this.#process.stdout });
    this.#iterator = this.#lines[Symbol.asyncIterator]();
  }

  async open(): Promise<Found> {
    this.#process.stdin?.write('open\n');
    const { value, done } = await this.#iterator.next();
    if (done) throw new Error(`the store did not open: ${this.#error}`);
    return JSON.parse(value) as Found; // from our own child
  }

  /** Kills the process after so many acknowledgements; returns how many were received. */
  async writeUntilKilled(checker: Checker, after: number): Promise<number> {
    this.#process.stdin?.write(`${JSON.stringify(checker.steps)}\n`);
    let heard = 0;
    for (;;) {
      const { value, done } = await this.#iterator.next();
      if (done) break;
      const [writer, revision] = String(value).split(' ').map(Number);
      checker.acknowledge(writer ?? -1, revision ?? 0);
      if (heard++ === after) this.#process.kill('SIGKILL');
    }
    await this.#exit;
    assert.equal(this.#process.signalCode, 'SIGKILL', this.#error);
    return heard;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }
}

/** The expected contents: for each writer what was acknowledged, and at most one more step. */
class Checker {
  readonly #models = Array.from({ length: WRITERS }, (_, writer) => new Model(writer));
  #revision = 0;
  unheard = 0;

  get steps(): readonly number[] {
    return this.#models.map(({ steps }) => steps);
  }

  acknowledge(writer: number, revision: number): void {
    this.#models[writer]?.advance();
    this.#revision = Math.max(this.#revision, revision);
  }

  check({ revision, entries }: Found): void {
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
}

function expectedOf({ states, shared }: Model): unknown {
  return { states: Object.fromEntries(states), shared };
}
