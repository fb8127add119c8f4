/** The cases of `test/cases` about requests, against the whole API: generic ones, and those of OwnedAccessKey. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { accessKeyTable } from '../apiserver/test-kinds.ts';
import { startTestServer } from '../apiserver/test-server.ts';
import type { RawAnswer } from '../contract/raw-client.ts';
import { AUTH_CASES } from './auth-cases.ts';
import { differences, MANAGEMENT_CASES, Run, type ManagementCase } from './case-runner.ts';
import { completed, asObserved } from './complete-case.ts';
import { KEYS_PATH, startComposed, type Composed } from './composed-api.ts';
import { PLATFORM_CASES } from './platform-cases.ts';

let dataDir: string;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'endpoint-syncer-cases-'));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const OWNER_REFERENCES = 'kube-apiserver 1.37 names the place of the reference: metadata.test.ts';

/** Not as they are, each with the reason; what is done instead is asserted here or where it says. */
const NOT_AS_THEY_ARE: Record<string, string> = {
  'create-generate-name-conflict':
    'a generated suffix has no vowel, unlike "fixed": object-registry.test.ts has one',
  'create-malformed-json': 'the body is not printed: an error names fields, never the whole object',
  'create-json-array': 'the body is not printed: an error names fields, never the whole object',
  'create-ownerref-no-uid': OWNER_REFERENCES,
  'create-ownerref-no-name': OWNER_REFERENCES,
  'create-ownerref-no-apiversion': OWNER_REFERENCES,
  'create-ownerref-bad-apiversion': OWNER_REFERENCES,
  'get-accept-protobuf-only': 'the 406 comes as JSON: nothing here writes protobuf',
  'put-deletion-timestamp': 'kube-apiserver 1.37 prints the time as JSON',
  'json-patch-add-annotation-no-parent': 'the map of annotations is created: the documented example must run',
  'json-patch-status-ignored': 'nothing changes here, so nothing is written and the version stays',
};

/** As they are on a kind that asks for less, and what is done with a key instead is asserted below. */
const ON_ANOTHER_KIND: Record<string, string> = {
  'create-null-spec': 'a create without the required fields is 422',
  'create-json-null': 'every missing field is named, not the name alone',
  'json-patch-copy-move': 'the owner of a key cannot change: between fields that can',
  'foreground-finish': 'there is no controller: the server removes its own finalizer',
  'put-dry-run': 'an update keeps what a create demands',
  'json-patch-remove-ok': 'an update keeps what a create demands',
  'apply-remove-field': 'an update keeps what a create demands',
};

/** Cases whose steps are described in words, and the test that runs them on any kind. */
const IN_WORDS: Record<string, string> = {
  'list-continue-expired': 'list-objects.test.ts',
  'list-continue-snapshot': 'list-objects.test.ts',
  'watch-lifecycle': 'watch-contract.ts',
  'watch-selector-leave-enter': 'watch-contract.ts',
  'watch-timeout': 'watch-contract.ts',
  'watch-table': 'watch-contract.ts',
  'managedfields-cap': 'managed-fields.test.ts',
  'apply-multi-conflict': 'managed-fields.test.ts',
  'grace-shorten': 'the deletion of a key does not wait; of other kinds: object-registry.test.ts',
  'grace-lengthen-ignored': 'the same',
  'grace-zero-removes': 'the same',
  'grace-finalizer-removed-before-deadline': 'the same',
};

/** The server removes its own finalizers: objects that wait for them are deleted soon. */
const GONE_AFTER = ['delete-foreground', 'delete-orphan', 'delete-policy-query'];

const TESTED_APART = { ...AUTH_CASES, ...PLATFORM_CASES };
const leftOut = { ...NOT_AS_THEY_ARE, ...IN_WORDS };
const notOfKeys = { ...leftOut, ...ON_ANOTHER_KIND, ...TESTED_APART };
const running = MANAGEMENT_CASES.filter(({ id }) => !Object.hasOwn(notOfKeys, id));

test('every case is run, has a separate test, or is excluded with a reason', () => {
  const known = new Set(MANAGEMENT_CASES.map(({ id }) => id));
  expect(Object.keys(notOfKeys).filter((id) => !known.has(id))).toEqual([]);
  expect(running.length + Object.keys(notOfKeys).length).toBe(known.size);
  expect(running.filter(({ given = [] }) => given.some(({ state }) => state !== undefined))).toEqual([]);
});

test('core v1 is served for kubectl, and has no resources', async () => {
  await using api = await startComposed({ dataDir });
  const send = async (path: string, accept = 'application/json'): Promise<unknown> =>
    (await api.administrator.send({ method: 'GET', path, headers: { accept } })).json;
  expect(await send('/api/v1')).toEqual({ kind: 'APIResourceList', groupVersion: 'v1', resources: [] });
  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  expect(await send('/api', aggregated)).toMatchObject({ items: [{ versions: [{ resources: [] }] }] });
  expect(await send('/api')).toMatchObject({ code: 404 });
  expect(await send('/api/v1/pods')).toMatchObject({ code: 404 });
});

test('a scope with resourceNames allows list and watch of these names, as kubectl get NAME --watch requests them', async () => {
  await using api = await startComposed({ dataDir });
  const keys = { group: 'management.platform.sh', resources: ['ownedaccesskeys'], resourceNames: ['k1'] };
  const { client } = await api.key('k1', { scope: { rules: [{ resources: [keys] }] } });
  await api.key('k2');
  const list = (query: string): Promise<RawAnswer> =>
    client.send({ method: 'GET', path: `${KEYS_PATH}?${query}` });
  const one = await list('fieldSelector=metadata.name%3Dk1');
  expect(one.json).toMatchObject({ items: [{ metadata: { name: 'k1' } }] });
  // Allowed, and rejected for another reason, so that the test waits for no event.
  const watch = await list('watch=1&resourceVersion=x&fieldSelector=metadata.name%3Dk1');
  expect(watch.json).toMatchObject({ code: 400 });
  const other = await list('fieldSelector=metadata.name%3Dk2');
  expect(other.json).toMatchObject({ code: 403, details: { name: 'k2' } });
  expect((await list('')).status).toBe(403);
  expect((await list('fieldSelector=metadata.name!%3Dk2')).status).toBe(403);
});

test('the deletion of a collection ends with the key of the caller, and deletes all of it', async () => {
  await using api = await startComposed({ dataDir });
  const admin = { user: 'root', groups: ['platform:admins'] };
  for (const name of ['a-first', 'z-last']) await api.key(name, admin);
  const { client } = await api.key('m-own', admin);
  expect((await client.send({ method: 'DELETE', path: KEYS_PATH })).status).toBe(200);
  const left = await api.administrator.send({ method: 'GET', path: KEYS_PATH });
  expect(
    (left.json as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name),
  ).toEqual([]);
  expect((await client.send({ method: 'GET', path: KEYS_PATH })).status).toBe(401);
});

test('public documents are also served below the prefix of the platform', async () => {
  await using api = await startComposed({ dataDir });
  const anonymous = api.as(undefined);
  const paths = ['/version', '/healthz', '/readyz', '/livez', '/openid/v1/jwks'];
  for (const path of [...paths, '/.well-known/openid-configuration']) {
    const answers = [path, `/kubernetes/management${path}`].map((each) =>
      anonymous.send({ method: 'GET', path: each }),
    );
    const [here, below] = await Promise.all(answers);
    expect([below?.status, below?.text]).toEqual([200, here?.text]);
  }
  const elsewhere = { method: 'GET', path: '/kubernetes/cluster/a/version' };
  expect((await anonymous.send(elsewhere)).status).toBe(401);
});

describe('cases that are run as written', () => {
  let api: Composed;
  beforeAll(async () => {
    api = await startComposed({ dataDir });
  });
  afterAll(() => api[Symbol.asyncDispose]());
  afterEach(() => deleteKeys(api));

  test.each(running.map((item) => [item.id, item] as const))('%s', async (_id, item) => {
    const { answer, run } = await play(api, item);
    expect(differences(answer, item, run)).toEqual([]);
    for (const [what, status] of Object.entries(item.ours ? {} : (item.after ?? {}))) {
      await expectAfter(api, what.split(' ')[1] ?? '', GONE_AFTER.includes(item.id) ? 404 : status);
    }
  });
});

/** The cases share a server: each finds it without keys. */
async function deleteKeys({ administrator }: Composed): Promise<void> {
  const { json } = await administrator.send({ method: 'GET', path: KEYS_PATH });
  const items = (json?.['items'] ?? []) as { metadata: { name: string; finalizers?: string[] } }[]; // a list of keys
  for (const { metadata } of items) {
    const key = `${KEYS_PATH}/${metadata.name}`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = { metadata: { finalizers: null } };
    if (metadata.finalizers) await administrator.send({ method: 'PATCH', path: key, headers, body });
    await administrator.send({ method: 'DELETE', path: `${key}?gracePeriodSeconds=0` });
  }
}

test.each(Object.keys(ON_ANOTHER_KIND))('%s, as it is on a kind that asks for less', async (id) => {
  const item = caseCalled(id);
  await using machinery = await startTestServer({ table: accessKeyTable() });
  const run = new Run(machinery.client);
  for (const step of item.given ?? []) await run.send(step);
  expect(differences(await run.send(item.request), item, run)).toEqual([]);
});

function caseCalled(id: string): ManagementCase {
  const item = MANAGEMENT_CASES.find((candidate) => candidate.id === id);
  if (item === undefined) throw new Error(`there is no case ${id}`);
  return item;
}

/** Plays the steps of a case; tokens are created with a key, everything else by an administrator. */
async function play(api: Composed, item: ManagementCase): Promise<{ answer: RawAnswer; run: Run }> {
  const isToken = item.request.path.includes('directclusterendpointtokens');
  const admin = { user: 'root', groups: ['platform:admins'] };
  const run = new Run(isToken ? (await api.key('root', admin)).client : api.administrator);
  const dropped = ['key'];
  for (const [index, step] of (item.given ?? []).entries()) {
    const { request, added } = completed(step, index === 0);
    dropped.push(...added);
    await run.send(request);
  }
  const { request, added } = completed(item.request, (item.given ?? []).length === 0);
  const answer = await run.send(request);
  const isKeyCase = item.id === 'platform-key-generated';
  return { answer: asObserved(answer, isKeyCase ? [] : [...dropped, ...added]), run };
}

async function expectAfter(api: Composed, name: string, status: number): Promise<void> {
  const path = `${KEYS_PATH}/${name}`;
  await expect
    .poll(async () => (await api.administrator.send({ method: 'GET', path })).status, { interval: 5 })
    .toBe(status);
}

describe('cases that are described as text', () => {
  test.each(Object.entries(TESTED_APART))('%s', async (id, runCase) => {
    expect.hasAssertions();
    await runCase(caseCalled(id), dataDir);
  });
});

describe('intentional differences of this API', () => {
  const required = ['spec.displayName', 'spec.ttl', 'spec.type', 'spec.user'];

  test.each([
    ['a null spec', '{"metadata":{"name":"k1"},"spec":null}', required],
    ['no body at all', 'null', ['metadata.name', ...required]],
  ])('%s: every field that is missing is named', async (_what, body, fields) => {
    await using api = await startComposed({ dataDir });
    const headers = { 'content-type': 'application/json' };
    const { status, json } = await api.administrator.send({ method: 'POST', path: KEYS_PATH, headers, body });
    const { details } = json as { details?: { causes?: { field: string }[] } }; // a Status
    expect([status, details?.causes?.map(({ field }) => field).toSorted()]).toEqual([422, fields]);
  });

  const spec = { displayName: 'D', ttl: 60, type: 'User', user: 'u' };
  test.each([
    ['PUT', 'application/json', { spec: {} }, required],
    [
      'merge patch',
      'application/merge-patch+json',
      { spec: { ttl: null, displayName: '' } },
      required.slice(0, 2),
    ],
    [
      'merge patch of the owner',
      'application/merge-patch+json',
      { spec: { user: null, type: null } },
      required.slice(2),
    ],
    ['JSON Patch', 'application/json-patch+json', [{ op: 'remove', path: '/spec/ttl' }], ['spec.ttl']],
    ['apply', 'application/apply-patch+yaml', { spec: { ...spec, ttl: undefined } }, ['spec.ttl']],
  ])('%s: an update keeps what a create demands', async (what, contentType, change, fields) => {
    await using api = await startComposed({ dataDir });
    const object = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      metadata: { name: 'k1' },
    };
    const applied = { 'content-type': 'application/apply-patch+yaml' };
    const target = `${KEYS_PATH}/k1?fieldManager=m`;
    const create = JSON.stringify({ ...object, spec });
    await api.administrator.send({ method: 'PATCH', path: target, headers: applied, body: create });
    const { status, json } = await api.administrator.send({
      method: what === 'PUT' ? 'PUT' : 'PATCH',
      path: target,
      headers: { 'content-type': contentType },
      body: JSON.stringify(Array.isArray(change) ? change : { ...object, ...change }),
    });
    const { details } = json as { details?: { causes?: { field: string; reason: string }[] } }; // a Status
    expect([status, details?.causes?.map(({ field }) => field).toSorted()]).toEqual([422, fields]);
    const after = await api.administrator.send({ method: 'GET', path: `${KEYS_PATH}/k1` });
    expect(after.json).toMatchObject({ spec });
  });

  test('copy and move, between fields that may change', async () => {
    await using api = await startComposed({ dataDir });
    await api.key('k1', { user: 'u', description: 'D' });
    const { status, json } = await api.administrator.send({
      method: 'PATCH',
      path: `${KEYS_PATH}/k1`,
      headers: { 'content-type': 'application/json-patch+json' },
      body: JSON.stringify([
        { op: 'copy', from: '/spec/description', path: '/spec/displayName' },
        { op: 'move', from: '/spec/description', path: '/spec/parent' },
      ]),
    });
    expect([status, json?.['spec']]).toEqual([
      200,
      { displayName: 'D', parent: 'D', user: 'u', ttl: 0, type: 'User' },
    ]);
  });

  test('a foreground deletion of an object without dependents completes without a controller', async () => {
    await using api = await startComposed({ dataDir });
    await api.key('k1');
    const headers = { 'content-type': 'application/json' };
    const body = { propagationPolicy: 'Foreground' };
    const answer = await api.administrator.send({ method: 'DELETE', path: `${KEYS_PATH}/k1`, headers, body });
    expect(answer.status).toBe(200);
    await expectAfter(api, 'k1', 404);
  });
});
