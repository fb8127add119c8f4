/** The crash test of the served API: keys that are created, changed and deleted, and a token. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashTest, Victim } from './kill-rounds.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openLocalAdministrator } from '../../src/access-keys/credentials/master-key.ts';
import { RawClient, type RawAnswer, type RawRequest } from '../contract/raw-client.ts';
import { KEYS_PATH, TOKENS_PATH } from '../access-keys/composed-api.ts';
import { EXPIRED_MESSAGE } from '../../src/access-keys/keys/key-authenticator.ts';

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

// Updates one key repeatedly, one request at a time, and returns the states that are possible after a request without a response.

/** The key as it must be. */
interface State {
  readonly description: string;
  readonly isDisabled: boolean;
  /** Undefined: its only showing was not heard. */
  readonly text: string | undefined;
}

interface Step {
  readonly request: RawRequest;
  /** Undefined: the key is gone. */
  after(answer: RawAnswer | undefined): State | undefined;
}

class KeyWriter {
  readonly name: string;
  #steps = 0;
  #state: State | undefined;
  /** Sent, and not answered. */
  #open: Step | undefined;
  /** Texts of deleted keys, which must not be accepted again. */
  readonly #gone: string[] = [];

  constructor(number: number) {
    this.name = `w${number}`;
  }

  /** One request; the resourceVersion of its answer, 0 where it has none. Rejects when the server is killed meanwhile. */
  async step(client: RawClient, random: () => number): Promise<number> {
    const step = this.#next(random());
    this.#open = step;
    const answer = await client.send(step.request);
    assert.ok([200, 201].includes(answer.status), answer.text);
    this.#take(step, answer);
    const { metadata } = answer.json as { metadata: { resourceVersion?: string } }; // every answer has it
    return Number(metadata.resourceVersion ?? 0);
  }

  #next(drawn: number): Step {
    const description = `${this.name} step ${++this.#steps}`;
    const state = this.#state;
    const path = `${KEYS_PATH}/${this.name}`;
    if (!state) {
      const spec = { ...this.#spec, description };
      const body = { metadata: { name: this.name }, spec };
      const after = (answer?: RawAnswer): State => ({ description, isDisabled: false, text: keyOf(answer) });
      return { request: { method: 'POST', path: KEYS_PATH, body }, after };
    }
    if (drawn < 0.3) return { request: { method: 'DELETE', path }, after: () => undefined };
    const isDisabled = drawn < 0.6 ? !state.isDisabled : state.isDisabled;
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = { spec: { description, disabled: isDisabled } };
    return {
      request: { method: 'PATCH', path, headers, body },
      after: () => ({ ...state, description, isDisabled }),
    };
  }

  get #spec(): JsonObject {
    return { displayName: this.name, ttl: 0, type: 'User', user: `user of ${this.name}` };
  }

  #take(step: Step, answer: RawAnswer | undefined): void {
    const before = this.#state;
    this.#state = step.after(answer);
    this.#open = undefined;
    if (before?.text !== undefined && !this.#state) this.#gone.push(before.text);
  }

  /** What was answered is there, or else that and the one request after it; the key opens what it opened. Was there one more? */
  async check(found: JsonObject | undefined, as: (key: string) => Promise<RawAnswer>): Promise<boolean> {
    const open = this.#open;
    const isAhead = open !== undefined && this.#isThere(found, open.after(undefined));
    if (isAhead) this.#take(open, undefined);
    this.#open = undefined;
    assert.ok(this.#isThere(found, this.#state), `${this.name}: ${JSON.stringify([this.#state, found])}`);
    const state = this.#state;
    if (state?.text !== undefined) {
      assert.equal((await as(state.text)).status, state.isDisabled ? 401 : 200, this.name);
    }
    for (const text of this.#gone.splice(0)) {
      const { status, json } = await as(text);
      assert.deepEqual([status, json?.['message'] === EXPIRED_MESSAGE], [401, false], this.name);
    }
    return isAhead;
  }

  #isThere(found: JsonObject | undefined, state: State | undefined): boolean {
    if (!found || !state) return !found && !state;
    const { disabled = false, ...spec } = found['spec'] as JsonObject; // a key has it
    const wanted = { ...this.#spec, description: state.description };
    assert.deepEqual(Object.keys(spec).sort(), Object.keys(wanted).sort(), 'it is half there');
    return disabled === state.isDisabled && spec['description'] === state.description;
  }
}

function keyOf(answer: RawAnswer | undefined): string | undefined {
  const { spec } = (answer?.json ?? {}) as { spec?: { key?: string } }; // the answer of a create
  return spec?.key;
}
