/** Runs the operations on keys and tokens against an API process, then searches its files, output and responses for the secrets. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { isJsonObject, type JsonValue } from '../../../src/base/json.ts';
import { generateAccessKey } from '../../../src/access-keys/credentials/access-key.ts';
import { MasterKey, openLocalAdministrator } from '../../../src/access-keys/credentials/master-key.ts';
import { readSigningKey, SIGNING_KEYS } from '../../../src/access-keys/tokens/key-ring.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { databaseFile } from '../../../src/apiserver/storage/sqlite/database-file.ts';
import { SqliteStore } from '../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { RawClient, type RawAnswer } from '../../contract/raw-client.ts';
import { KEYS_PATH, TOKENS_PATH } from '../composed-api.ts';
import { SecretHunt } from './secret-forms.ts';

const MAIN = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts');
/** Files that hold a secret by design. */
const SECRET_FILES: ReadonlySet<string> = new Set(['master.key', 'ca.key', 'tls.key']);
const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
const MERGE = { 'content-type': 'application/merge-patch+json' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-hunt-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** An API process, with everything that it writes and sends. */
class RecordedApi {
  readonly hunt = new SecretHunt();
  readonly dataDir = join(folder, 'data');
  readonly keyFile = join(folder, 'first.key');
  readonly #received: string[] = [];
  readonly #child;
  #out = '';
  #err = '';
  #ca = '';

  constructor() {
    mkdirSync(this.dataDir, { mode: 0o700 });
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `managementApi: {dataDir: ${this.dataDir}, bindAddress: "127.0.0.1:0", bootstrapKeyFile: ${this.keyFile}}\n`,
    );
    const args = [MAIN, 'api', '--config', config, '--log-level', 'debug'];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout.on('data', (chunk: Buffer) => (this.#out += chunk.toString('latin1')));
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#err += chunk.toString('latin1')));
  }

  async listening(): Promise<void> {
    const isUp = (): void => {
      if (!this.#out.includes('certificate-authority: ')) throw new Error(`it does not listen: ${this.#err}`);
    };
    await vi.waitFor(isUp, { timeout: 60_000, interval: 10 });
    this.#ca = readFileSync(join(this.dataDir, 'ca.crt'), 'utf8');
  }

  as(token: string | undefined): Caller {
    const url = /^server: (.*)$/m.exec(this.#out)?.[1] ?? '';
    return new Caller(
      new RawClient({ url, ca: this.#ca, ...(token === undefined ? {} : { token }) }),
      this.#received,
    );
  }

  stop(): void {
    this.#child.kill('SIGTERM');
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** The secrets that are now in files, output and responses. */
  findings(): string[] {
    const files = readdirSync(this.dataDir).filter((name) => !SECRET_FILES.has(name));
    return [
      ...files.flatMap((name) => this.hunt.findIn(name, readFileSync(join(this.dataDir, name)))),
      ...this.hunt.findIn('stdout', this.#out),
      ...this.hunt.findIn('stderr', this.#err),
      ...this.hunt.findIn('responses', this.#received.join('\n')),
    ];
  }

  get written(): readonly string[] {
    return readdirSync(this.dataDir).sort();
  }

  get logged(): string {
    return this.#err;
  }
}

/** Records responses, except those that return a secret by design. */
class Caller implements AsyncDisposable {
  readonly #client: RawClient;
  readonly #received: string[];

  constructor(client: RawClient, received: string[]) {
    this.#client = client;
    this.#received = received;
  }

  async ask(
    method: string,
    path: string,
    body?: JsonValue,
    headers: Record<string, string> = {},
  ): Promise<number> {
    const answer = await this.showing(method, path, body, headers);
    this.#received.push(`${method} ${answer.status} ${answer.text} ${JSON.stringify([...answer.headers])}`);
    return answer.status;
  }

  showing(
    method: string,
    path: string,
    body?: JsonValue,
    headers: Record<string, string> = {},
  ): Promise<RawAnswer> {
    return this.#client.send({ method, path, headers, ...(body === undefined ? {} : { body }) });
  }

  /** Returns a function that records the events of a watch up to the one that contains `the-end`. */
  async watch(path: string, headers: Record<string, string>): Promise<() => Promise<void>> {
    const watch = await this.#client.watch(path, headers);
    return async () => {
      for (;;) {
        const event = await watch.next();
        if (!event) break;
        this.#received.push(JSON.stringify(event));
        if (JSON.stringify(event).includes('the-end')) break;
      }
      await watch[Symbol.asyncDispose]();
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]();
  }
}

function textIn(answer: RawAnswer, part: 'spec' | 'status', field: string): string {
  const value = answer.json?.[part];
  const text = isJsonObject(value) ? value[field] : undefined;
  if (typeof text !== 'string') throw new Error(`no ${part}.${field}: ${answer.status}`);
  return text;
}

/** Random, and valid base64. */
function opaque(): string {
  return randomBytes(30).toString('base64');
}

const key = (name: string, spec: Record<string, JsonValue> = {}): JsonValue => ({
  metadata: { name },
  spec: { displayName: name, ttl: 0, type: 'User', user: 'ann', ...spec },
});

/** Creates, uses, changes and deletes keys and tokens, and sends requests that are rejected; secrets are in all parts of requests. */
async function useKeysAndTokens(api: RecordedApi): Promise<void> {
  const { hunt } = api;
  const first = hunt.add('bootstrap key', readFileSync(api.keyFile, 'utf8').trim());
  await using admin = api.as(first);
  const watches = [
    await admin.watch(`${KEYS_PATH}?watch=1`, {}),
    await admin.watch(`${KEYS_PATH}?watch=1`, TABLE),
  ];
  const make = async (name: string, spec: Record<string, JsonValue> = {}): Promise<string> => {
    const text = textIn(await admin.showing('POST', KEYS_PATH, key(name, spec)), 'spec', 'key');
    hunt.add(`secret of ${name}`, text.slice(17, 60));
    return hunt.add(`key ${name}`, text);
  };
  await write(api, admin, await make('ci'));
  const ends = await make('ends', { ttl: 1 });
  const disabled = await make('disabled', { disabled: true });
  const supplied = hunt.add('supplied key', randomBytes(24).toString('base64url'));
  await admin.showing('POST', KEYS_PATH, key('supplied', { key: supplied }));
  await tokens(api, admin, await make('maker', { scope: { clusters: [{ cluster: 'a' }] } }));
  await useRejectedCredentials(api, [disabled, supplied]);
  await using ended = api.as(ends);
  await expect.poll(() => ended.ask('GET', KEYS_PATH)).toBe(401);
  await admin.ask('DELETE', `${KEYS_PATH}/disabled`);
  await admin.ask(
    'POST',
    KEYS_PATH,
    key('the-end', { key: hunt.add('last key', randomBytes(24).toString('base64url')) }),
    TABLE,
  );
  for (const finish of watches) await finish();
}

/** Writes that are right and wrong, with secrets in them. */
async function write({ hunt }: RecordedApi, admin: Caller, text: string): Promise<void> {
  const identity = { userId: '1', connectorData: hunt.add('connectorData', opaque()) };
  const oidcLogin = {
    idToken: hunt.add('idToken', opaque()),
    accessToken: hunt.add('accessToken', opaque()),
    refreshToken: hunt.add('refreshToken', opaque()),
  };
  for (const secret of [identity.connectorData, ...Object.values(oidcLogin)]) {
    hunt.add(`decoded ${secret.slice(0, 4)}`, Buffer.from(secret, 'base64'));
  }
  const path = `${KEYS_PATH}/ci`;
  const spec = { identity, oidcLogin };
  const apply = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: { name: 'ci' },
    spec,
  };
  await admin.ask('PATCH', path, { spec }, MERGE);
  await admin.ask('PATCH', path, [{ op: 'replace', path: '/spec/identity', value: identity }], JSON_PATCH);
  await admin.ask('PATCH', path, [{ op: 'test', path: '/spec/key', value: text }], JSON_PATCH);
  await admin.ask(
    'PATCH',
    path,
    [{ op: 'add', path: '/spec/ttl', value: { x: oidcLogin.idToken } }],
    JSON_PATCH,
  );
  await admin.ask('PATCH', `${path}?fieldManager=m`, apply, APPLY);
  await admin.ask(
    'PATCH',
    `${path}?fieldManager=other`,
    { ...apply, spec: { identity: { ...identity, userId: '2' } } },
    APPLY,
  );
  await admin.ask('PATCH', path, { spec: { key: `${text.slice(0, -3)}xyz` } }, MERGE);
  await admin.ask('PATCH', path, { spec: { identity: { connectorData: [identity.connectorData] } } }, MERGE);
  await admin.ask('PATCH', path, { spec: { oidcLogin: { idToken: `!${oidcLogin.idToken}` } } }, MERGE);
  await admin.ask(
    'PATCH',
    `${path}?fieldValidation=Strict`,
    { spec: { ...spec, bogus: oidcLogin.idToken } },
    MERGE,
  );
  await admin.ask(
    'POST',
    KEYS_PATH,
    `{"spec":{"key":"${text}","identity":{"connectorData":"${identity.connectorData}"`,
  );
  await admin.ask('POST', KEYS_PATH, `spec: {key: ${text}\n  bad: [${oidcLogin.idToken}`, {
    'content-type': 'application/yaml',
  });
  await admin.ask('POST', KEYS_PATH, key('dup', { key: text, ...spec }));
  await admin.ask('POST', KEYS_PATH, key('Wrong Name', { ...spec, ttl: -1 }));
  await admin.ask('POST', `${KEYS_PATH}?dryRun=All`, key('dry', spec));
  await admin.ask('PUT', path, key('ci', spec));
  for (const headers of [{}, TABLE, { accept: 'application/yaml' }]) {
    await admin.ask('GET', path, undefined, headers);
    await admin.ask('GET', `${KEYS_PATH}?includeObject=Object`, undefined, headers);
  }
  await admin.ask('GET', `${path}/status`);
  await admin.ask('GET', `/version?access_token=${text}`);
  await admin.ask('GET', `/nowhere/${text}`);
}

const REVIEWS = '/kubernetes/cluster/a/apis/authentication.k8s.io/v1/tokenreviews';

async function tokens(api: RecordedApi, admin: Caller, maker: string): Promise<void> {
  const { hunt } = api;
  await using owner = api.as(maker);
  const created = await owner.showing('POST', TOKENS_PATH, { spec: { ttl: 600 } });
  const token = hunt.add('token', textIn(created, 'status', 'token'));
  hunt.add('signature of the token', token.slice(token.lastIndexOf('.') + 1));
  const changed = hunt.add('changed token', `${token.slice(0, -6)}AAAAAA`);
  for (const reviewed of [token, changed, maker, wrongKey(hunt, 'reviewed'), 'eyJhbGciOiJub25lIn0.e30.']) {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: reviewed } };
    await admin.ask('POST', REVIEWS, review);
    await admin.ask('POST', `${REVIEWS}?fieldValidation=Strict`, { ...review, bogus: reviewed });
  }
  await owner.ask('POST', TOKENS_PATH, { spec: { ttl: 99_999_999_999 } });
  await owner.ask('POST', TOKENS_PATH, { spec: { scope: { clusters: [{ cluster: 'other' }] } } });
  for (const bearer of [token, changed]) {
    await using caller = api.as(bearer);
    await caller.ask('GET', KEYS_PATH);
    await caller.ask('POST', TOKENS_PATH, { spec: {} });
  }
}

function wrongKey(hunt: SecretHunt, name: string): string {
  return hunt.add(`wrong key ${name}`, generateAccessKey(randomBytes));
}

/** The credentials of rejected requests must not be stored or logged either. */
async function useRejectedCredentials(api: RecordedApi, keys: readonly string[]): Promise<void> {
  const { hunt } = api;
  const unknown = wrongKey(hunt, 'sent');
  const typo = hunt.add('typo', `${unknown.slice(0, -1)}${unknown.endsWith('x') ? 'y' : 'x'}`);
  for (const bearer of [
    ...keys,
    unknown,
    typo,
    hunt.add('no key at all', opaque().replaceAll(/[+/=]/g, 'x')),
  ]) {
    await using caller = api.as(bearer);
    await caller.ask('GET', KEYS_PATH);
    await caller.ask('POST', KEYS_PATH, key('mine', { user: 'ann' }));
  }
  await using anonymous = api.as(undefined);
  for (const authorization of [`Basic ${unknown}`, `Bearer  ${unknown} ${unknown}`, unknown]) {
    await anonymous.ask('GET', KEYS_PATH, undefined, { authorization, 'user-agent': `curl ${unknown}` });
  }
  await anonymous.ask('GET', '/openid/v1/jwks');
  await anonymous.ask('GET', '/.well-known/openid-configuration');
}

/** Secrets that the process never sends: they are only in its memory and its key files. */
async function addInnerSecrets({ hunt, dataDir }: RecordedApi): Promise<void> {
  const file = readFileSync(join(dataDir, 'master.key'), 'utf8').trim();
  hunt.add('master key', Buffer.from(file, 'base64'));
  for (const name of ['ca.key', 'tls.key']) {
    const [, body = ''] = /-----\n([^-]+)\n-----/.exec(readFileSync(join(dataDir, name), 'utf8')) ?? [];
    hunt.add(name, Buffer.from(body, 'base64').subarray(-40)); // the key itself, after the header that is the same in all keys
  }
  const master = new MasterKey(Buffer.from(file, 'base64'), randomBytes);
  hunt.add('pepper', master.pepper);
  hunt.add('key of the local administrator', master.localAdministrator);
  await using store = await SqliteStore.open({
    file: databaseFile(dataDir),
    clock: systemClock,
    logger: silentLogger,
  });
  for (const entry of (await store.list({ resource: SIGNING_KEYS })).entries) {
    const { kid } = readSigningKey(entry);
    const { sealedPrivateKey } = entry.value['spec'] as { sealedPrivateKey: string }; // as it is stored
    const { d } = JSON.parse(master.seal.open(sealedPrivateKey, `signing-key:${kid}`)) as { d: string }; // a private JWK
    hunt.add(`private key ${kid}`, Buffer.from(d, 'base64url'));
  }
}

test('no file, log line or response of the process contains a secret', async () => {
  const api = new RecordedApi();
  try {
    await api.listening();
    const local = await openLocalAdministrator(api.dataDir, systemClock);
    await using machine = api.as(api.hunt.add('credential of this machine', local?.credential() ?? ''));
    expect(await machine.ask('GET', KEYS_PATH)).toBe(200);
    await useKeysAndTokens(api);
    // Also while the process runs, because the write-ahead log is removed when it ends.
    expect(api.findings()).toEqual([]);
    api.stop();
    expect(await api.ended()).toBe(0);
  } finally {
    api.kill();
  }
  await addInnerSecrets(api);
  expect(api.findings()).toEqual([]);
  // The search had secrets to look for, and files and logs to look in.
  expect(api.hunt.size).toBeGreaterThan(30);
  expect(api.written).toEqual(expect.arrayContaining(['audit.log', 'ca.crt']));
  expect(api.logged).toMatch(/"level":"(info|debug)"/);
});

test('the search finds a secret in every encoding', () => {
  const hunt = new SecretHunt();
  const secret = hunt.add('s', 'correct-horse-battery-staple-0123456789');
  const hidden = [
    secret,
    Buffer.from(secret).toString('hex'),
    encodeURIComponent(secret),
    ...['', 'x', 'xy'].map((before) => Buffer.from(`${before}${secret}tail`).toString('base64')),
    Buffer.from(`x${secret}`).toString('base64url'),
    `…${secret.slice(0, 20)}…`,
  ];
  for (const text of hidden) expect(hunt.findIn('here', `before ${text} after`)).not.toEqual([]);
  expect(hunt.findIn('here', 'correct horse, and nothing else')).toEqual([]);
});
