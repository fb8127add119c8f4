/** Repeated kill -9 of a process that writes: every acknowledged write is stored, and none is stored partly. */

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { verifyDatabase } from '../../src/apiserver/storage/sqlite/maintenance.ts';

/** What a process writes, and how it is checked. */
export interface CrashTest {
  /** The program of the process and its arguments. It waits for a line before it opens the database. */
  readonly program: readonly string[];
  readonly database: string;
  /** Writes that were acknowledged before a kill. */
  readonly acknowledged: number;
  /** Writes that were stored although their acknowledgement was not received. */
  readonly unheard: number;
  /** Every acknowledged write is there, and at most one more of each writer. */
  check(victim: Victim): Promise<void>;
  /** Kills the process in the middle of its writes. */
  writeUntilKilled(victim: Victim): Promise<void>;
}

/** Processes that have started and wait, because starting takes most of the time. */
const READY = 2;

export async function killRounds(crashTest: CrashTest, rounds: number): Promise<void> {
  const { program, database } = crashTest;
  const waiting: Victim[] = [];
  const next = (round: number): Victim => {
    while (waiting.length < Math.min(READY, rounds + 1 - round)) waiting.push(new Victim(program));
    return waiting.shift() ?? new Victim(program);
  };
  try {
    for (let round = 0; round < rounds; round++) {
      await using victim = next(round);
      await crashTest.check(victim);
      await crashTest.writeUntilKilled(victim);
      assert.deepEqual(verifyDatabase(database).problems, [], `round ${round}`);
    }
    await using last = next(rounds);
    await crashTest.check(last);
  } finally {
    for (const victim of waiting) await victim[Symbol.asyncDispose]();
  }
}

/** The compile cache that the scripts of package.json use. */
const COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/endpoint-syncer-scripts');

/** A process to be killed. */
export class Victim {
  readonly #process: ChildProcess;
  readonly #lines: NodeJS.AsyncIterator<string>;
  readonly #exit: Promise<unknown>;
  #error = '';

  constructor(program: readonly string[]) {
    this.#process = spawn(process.execPath, program, {
      stdio: 'pipe',
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
    });
    this.#exit = once(this.#process, 'close');
    this.#process.stderr?.on('data', (chunk) => (this.#error += String(chunk)));
    assert.ok(this.#process.stdout);
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Opens the database; its first line. */
  async open(): Promise<string> {
    this.send('open');
    const line = await this.nextLine();
    if (line === undefined) throw new Error(`the process did not open the database: ${this.#error}`);
    return line;
  }

  send(line: string): void {
    this.#process.stdin?.write(`${line}\n`);
  }

  /** Undefined: it has ended. */
  async nextLine(): Promise<string | undefined> {
    const { value, done } = await this.#lines.next();
    return done ? undefined : value;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** Rejects when it ended otherwise. */
  async killed(): Promise<void> {
    await this.#exit;
    assert.equal(this.#process.signalCode, 'SIGKILL', this.#error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.#exit;
  }
}
