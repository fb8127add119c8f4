/** Repeated kill -9 of the served API under requests: every acknowledged write is stored, and none is stored partly. */

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import type { JsonObject } from '../../../src/base/json.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { openLocalAdministrator } from '../../../src/access-keys/credentials/local-administrator.ts';
import { verifyDatabase } from '../../../src/apiserver/storage/sqlite/maintenance.ts';
import { RawClient, type RawAnswer } from '../../contract/raw-client.ts';
import { KEYS_PATH, TOKENS_PATH } from '../composed-api.ts';
import { KeyWriter } from './key-writer.ts';

const CHILD = join(import.meta.dirname, 'api-to-kill.ts');
/** The compile cache that the scripts of package.json use. */
const COMPILE_CACHE = join(import.meta.dirname, '../../../node_modules/.cache/endpoint-syncer-scripts');
const WRITERS = 6;
const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export interface ApiKillReport {
  readonly kills: number;
  /** Writes that were answered before a kill. */
  readonly acknowledged: number;
  /** Writes that were there although their answer was not heard. */
  readonly unheard: number;
}

/** Each kill comes at a moment that `random` chooses, with requests under way. */
export async function apiKillRounds(
  dataDir: string,
  rounds: number,
  random: () => number,
): Promise<ApiKillReport> {
  const crashTest = new CrashTest(dataDir, random);
  let next = new Victim(dataDir);
  try {
    for (let round = 0; round < rounds; round++) {
      await using victim = next;
      // The start is what takes time: the next one loads its modules while this one is under attack.
      next = new Victim(dataDir);
      const url = await victim.serve();
      await crashTest.check(url);
      await crashTest.writeUntilKilled(url, victim);
      const { problems } = verifyDatabase(join(dataDir, 'management.db'));
      assert.deepEqual(problems, [], `round ${round}`);
    }
    await crashTest.check(await next.serve());
  } finally {
    await next[Symbol.asyncDispose]();
  }
  const { acknowledged, unheard } = crashTest;
  return { kills: rounds, acknowledged, unheard };
}

class Victim {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  #error = '';

  constructor(dataDir: string) {
    this.#process = spawn(process.execPath, [CHILD, dataDir], {
      stdio: 'pipe',
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
    });
    this.#exit = once(this.#process, 'close');
    this.#process.stderr?.on('data', (chunk) => (this.#error += String(chunk)));
  }

  /** Its URL, once it listens. */
  async serve(): Promise<string> {
    const { stdin, stdout } = this.#process;
    assert.ok(stdin && stdout);
    stdin.write('serve\n');
    for await (const line of createInterface({ input: stdout })) return line;
    throw new Error(`the API did not start: ${this.#error}`);
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

class CrashTest {
  readonly #dataDir: string;
  readonly #random: () => number;
  readonly #writers = Array.from({ length: WRITERS }, (_, number) => new KeyWriter(number));
  #revision = 0;
  /** A token that an earlier process gave out. */
  #token = '';
  acknowledged = 0;
  unheard = 0;

  constructor(dataDir: string, random: () => number) {
    this.#dataDir = dataDir;
    this.#random = random;
  }

  async check(url: string): Promise<void> {
    await using administrator = await this.#administrator(url);
    // One for all keys: each has its own header.
    await using client = this.#client(url);
    const list = await administrator.send({ method: 'GET', path: KEYS_PATH });
    const { metadata, items } = list.json as { metadata: { resourceVersion: string }; items: JsonObject[] };
    const revision = Number(metadata.resourceVersion);
    assert.ok(revision >= this.#revision, `revision ${revision}, but ${this.#revision} was answered`);
    this.#revision = revision;
    const found = new Map(items.map((item) => [(item['metadata'] as { name: string }).name, item]));
    for (const writer of this.#writers) {
      const as = (key: string): Promise<RawAnswer> =>
        client.send({ method: 'GET', path: KEYS_PATH, headers: { authorization: `Bearer ${key}` } });
      if (await writer.check(found.get(writer.name), as)) this.unheard++;
    }
    await this.#checkToken(administrator, client, found);
  }

  /** A token is good after the kill: the key that signed it was there before it was given out. */
  async #checkToken(
    administrator: RawClient,
    client: RawClient,
    found: ReadonlyMap<string, JsonObject>,
  ): Promise<void> {
    if (!found.has('signer')) {
      const spec = { displayName: 'signer', ttl: 0, type: 'User', user: 'signer' };
      const body = { metadata: { name: 'signer' }, spec };
      const { json } = await administrator.send({ method: 'POST', path: KEYS_PATH, body });
      const headers = { authorization: `Bearer ${(json as { spec: { key: string } }).spec.key}` };
      const token = { metadata: {}, spec: {} };
      const created = await client.send({ method: 'POST', path: TOKENS_PATH, headers, body: token });
      this.#token = (created.json as { status: { token: string } }).status.token;
    }
    const review = { method: 'POST', path: TOKEN_REVIEWS, body: { spec: { token: this.#token } } };
    const { json } = await administrator.send(review);
    assert.equal((json as { status: { authenticated: boolean } }).status.authenticated, true);
  }

  /** Kills it after so many answers, in the middle of what follows. */
  async writeUntilKilled(url: string, victim: Victim): Promise<void> {
    const after = Math.floor(this.#random() ** 2 * 40);
    await using administrator = await this.#administrator(url);
    let heard = 0;
    await Promise.all(
      this.#writers.map(async (writer) => {
        try {
          for (;;) {
            this.#revision = Math.max(this.#revision, await writer.step(administrator, this.#random));
            this.acknowledged++;
            if (heard++ === after) victim.kill();
          }
        } catch (error) {
          // The connection broke off; everything else is a finding.
          if (!(error instanceof TypeError) || heard <= after) throw error;
        }
      }),
    );
    await victim.killed();
  }

  async #administrator(url: string): Promise<RawClient> {
    const local = await openLocalAdministrator(this.#dataDir, systemClock);
    assert.ok(local);
    return this.#client(url, local.credential());
  }

  #client(url: string, token?: string): RawClient {
    const ca = readFileSync(join(this.#dataDir, 'ca.crt'), 'utf8');
    return new RawClient({ url, ca, ...(token === undefined ? {} : { token }) });
  }
}
