/** The requests of one key, over as many connections as it likes: the effect on the requests of others. */

import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KEYS_PATH, startComposed, type Composed, type MadeKey } from '../access-keys/composed-api.ts';
import type { RawAnswer } from '../contract/raw-client.ts';

const CONNECTIONS = 1005;
const REVIEWS_PATH = '/apis/authentication.k8s.io/v1/tokenreviews';

let api: Composed;
let hostile: MadeKey;
let other: MadeKey;
let delegator: MadeKey;
let attack: Attack;

beforeEach(async () => {
  api = await startComposed();
  hostile = await api.key('hostile', { user: 'mallory' });
  other = await api.key('other', { user: 'ann' });
  delegator = await api.key('delegator', { user: 'cluster', groups: ['platform:auth-delegators'] });
  attack = new Attack(api, hostile.text);
});

afterEach(async () => {
  attack.end();
  await api[Symbol.asyncDispose]();
});

/** Connections with a request of one key each. */
class Attack {
  readonly #api: Composed;
  readonly #token: string;
  readonly #sockets: TLSSocket[] = [];
  #session: Buffer | undefined;
  /** The status of each response, in the order of arrival. */
  readonly codes: number[] = [];

  constructor(api: Composed, token: string) {
    this.#api = api;
    this.#token = token;
  }

  /** Sends a POST of this text on a connection of its own; resolves when it is sent. */
  async send(headers: string, text: string): Promise<void> {
    const { hostname: host, port } = new URL(this.#api.api.url);
    const session = this.#session === undefined ? {} : { session: this.#session };
    const socket = connect({ host, port: Number(port), ca: this.#api.ca, ...session });
    this.#sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('session', (established) => (this.#session = established));
    socket.on('data', (bytes: Buffer) => {
      const code = /^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1', 0, 20))?.[1];
      if (code !== undefined) this.codes.push(Number(code));
    });
    const head = `POST ${KEYS_PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${this.#token}\r\n${headers}\r\n\r\n`;
    await new Promise<void>((resolve) => socket.write(head + text, () => resolve()));
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function createKey({ client }: Pick<MadeKey, 'client'>, name: string): Promise<RawAnswer> {
  const body = { metadata: { name }, spec: { displayName: name, ttl: 0, type: 'User', user: 'ann' } };
  return client.send({ method: 'POST', path: KEYS_PATH, body });
}

describe(`${CONNECTIONS} bodies of one key that never end`, () => {
  beforeEach(async () => {
    for (let sent = 0; sent < CONNECTIONS; sent += 67) {
      const batch = Array.from({ length: 67 }, () => attack.send('transfer-encoding: chunked', '5\r\n{"a":'));
      await Promise.all(batch);
    }
  });

  test('get 429 above the share of one user, and no other client does', async () => {
    const answers = {
      readyz: (await api.as(undefined).send({ method: 'GET', path: '/readyz' })).status,
      healthz: (await api.as(undefined).send({ method: 'GET', path: '/healthz' })).status,
      livez: (await api.as(undefined).send({ method: 'GET', path: '/livez' })).status,
      administrator: (await createKey({ client: api.administrator }, 'by-administrator')).status,
      review: (
        await delegator.client.send({
          method: 'POST',
          path: REVIEWS_PATH,
          body: { spec: { token: hostile.text } },
        })
      ).status,
      ordinary: (await createKey(other, 'by-another-user')).status,
    };
    expect(answers).toEqual({
      readyz: 200,
      healthz: 200,
      livez: 200,
      administrator: 201,
      review: 201,
      ordinary: 201,
    });
    // On a busy machine the first ones have missed their deadline before the last ones are sent.
    await expect.poll(() => attack.codes).toContain(429);
    expect(attack.codes.filter((code) => code !== 429 && code !== 408)).toEqual([]);
  });
});

describe('40 bodies of one key in YAML that takes long to parse', () => {
  const long = 'a: b\n'.repeat(100_000);

  test('are parsed in turn with those of others', async () => {
    const type = `content-type: application/yaml\r\ncontent-length: ${long.length}`;
    await Promise.all(Array.from({ length: 40 }, () => attack.send(type, long)));
    // Those above the share of one user.
    await expect.poll(() => attack.codes.length).toBeGreaterThan(0);
    const before = attack.codes.filter((code) => code !== 429).length;
    const metadata = `metadata: {name: yaml, annotations: {note: "${'d'.repeat(5000)}"}}`;
    const created = await other.client.send({
      method: 'POST',
      path: KEYS_PATH,
      headers: { 'content-type': 'application/yaml' },
      body: `${metadata}\nspec: {displayName: a, ttl: 0, type: User, user: ann}\n`,
    });
    expect(created.status).toBe(201);
    // The one that was being parsed, and those before the bytes of the other client arrived; not the 16 that waited.
    expect(attack.codes.filter((code) => code !== 429).length - before).toBeLessThanOrEqual(4);
  });
});
