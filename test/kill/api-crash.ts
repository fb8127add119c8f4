/** The crash test of the served API: keys that are created, changed and deleted, and a token. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashTest, Victim } from './kill-rounds.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openLocalAdministrator } from '../../src/access-keys/credentials/local-administrator.ts';
import { RawClient, type RawAnswer } from '../contract/raw-client.ts';
import { KEYS_PATH, TOKENS_PATH } from '../access-keys/composed-api.ts';
import { KeyWriter } from './key-writer.ts';

const WRITERS = 6;
const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export class ApiCrash implements CrashTest {
  readonly program: readonly string[];
  readonly database: string;
  readonly #dataDir: string;
  readonly #random: () => number;
  readonly #writers = Array.from({ length: WRITERS }, (_, number) => new KeyWriter(number));
  #url = '';
  #revision = 0;
  /** A token that an earlier process gave out. */
  #token = '';
  acknowledged = 0;
  unheard = 0;

  constructor(dataDir: string, random: () => number) {
    this.program = [join(import.meta.dirname, 'api-to-kill.ts'), dataDir];
    this.database = join(dataDir, 'management.db');
    this.#dataDir = dataDir;
    this.#random = random;
  }

  async check(victim: Victim): Promise<void> {
    this.#url = await victim.open();
    await using administrator = await this.#administrator();
    // One for all keys: each has its own header.
    await using client = this.#client();
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
  async writeUntilKilled(victim: Victim): Promise<void> {
    const after = Math.floor(this.#random() ** 2 * 40);
    await using administrator = await this.#administrator();
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

  async #administrator(): Promise<RawClient> {
    const local = await openLocalAdministrator(this.#dataDir, systemClock);
    assert.ok(local);
    return this.#client(local.credential());
  }

  #client(token?: string): RawClient {
    const ca = readFileSync(join(this.#dataDir, 'ca.crt'), 'utf8');
    return new RawClient({ url: this.#url, ca, ...(token === undefined ? {} : { token }) });
  }
}
