/** Updates one key repeatedly, one request at a time, and returns the states that are possible after a request without a response. */

import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/base/json.ts';
import { EXPIRED_MESSAGE } from '../../src/access-keys/keys/key-authenticator.ts';
import type { RawAnswer, RawClient, RawRequest } from '../contract/raw-client.ts';
import { KEYS_PATH } from '../access-keys/composed-api.ts';

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

export class KeyWriter {
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
