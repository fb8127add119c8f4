/** Secrets are write-only, and writing them again is a no-op. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { textAt } from '../../support/cases.ts';
import { at, keyOf, KEYS_PATH, MINIMAL, startKeyServer, type KeyServer } from './key-server.ts';

const SECRETS = {
  connectorData: 'Y29ubmVjdG9yLXNlY3JldA==',
  idToken: 'aWQtdG9rZW4tc2VjcmV0',
  accessToken: 'YWNjZXNzLXRva2VuLXNlY3JldA==',
  refreshToken: 'cmVmcmVzaC10b2tlbi1zZWNyZXQ=',
};
const { connectorData, idToken, accessToken, refreshToken } = SECRETS;
const TYPE = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' };
const SPEC: JsonObject = {
  identity: { userId: '1', connectorData },
  oidcLogin: { idToken, accessToken, refreshToken },
};

async function everyView(api: KeyServer): Promise<string> {
  const as = (form: string): Record<string, string> => ({
    accept: `application/json;as=${form};g=meta.k8s.io;v=v1`,
  });
  const answers = await Promise.all([
    api.send('GET', `${KEYS_PATH}/k1`),
    api.send('GET', KEYS_PATH),
    api.send('GET', `${KEYS_PATH}/k1`, undefined, as('PartialObjectMetadata')),
    api.send('GET', `${KEYS_PATH}?includeObject=Object`, undefined, as('Table')),
    api.send('GET', `${KEYS_PATH}/k1/status`),
    api.send('GET', `${KEYS_PATH}/k1`, undefined, { accept: 'application/yaml' }),
  ]);
  return answers.map(({ text, headers }) => text + JSON.stringify([...headers])).join('\n');
}

/** Those of the secrets that the text holds, as they were sent or decoded. */
function leaked(text: string, secrets: readonly string[]): string[] {
  const plain = new Map(secrets.map((secret) => [secret, Buffer.from(secret, 'base64').toString('latin1')]));
  return secrets.filter((secret) => text.includes(secret) || text.includes(plain.get(secret) ?? secret));
}

describe('secrets', () => {
  test('are in no representation, watch event, error or stored text, except for the key in the response to the create', async () => {
    await using api = await startKeyServer();
    await using watch = await api.client.watch(`${KEYS_PATH}?watch=true&resourceVersion=1`);
    const created = await api.create('k1', SPEC);
    const key = keyOf(created);
    expect(key).not.toBe('');
    expect(leaked(JSON.stringify(created), Object.values(SECRETS))).toEqual([]);
    const dry = await api.send('POST', `${KEYS_PATH}?dryRun=All`, {
      metadata: { name: 'k2' },
      spec: { ...MINIMAL, ...SPEC },
    });
    expect(dry.status).toBe(201);
    expect(keyOf(dry.json ?? {})).toBe('');
    const writes = await Promise.all([
      api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { ...SPEC, key, description: 'x' } }),
      api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { key: `${key}x` } }),
      api.send('POST', KEYS_PATH, { metadata: { name: 'K' }, spec: { ...MINIMAL, key, ...SPEC } }),
      api.send('PATCH', `${KEYS_PATH}/k1?fieldValidation=Strict`, { spec: { ...SPEC, key, bogus: 1 } }),
    ]);
    expect(writes.map(({ status }) => status)).toEqual([200, 422, 422, 422]);
    const events = [await watch.next(), await watch.next()];
    expect(events.map((event) => event?.type)).toEqual(['ADDED', 'MODIFIED']);
    const stored = JSON.stringify(await api.store.list({ resource: KEY_STORAGE }));
    const answers = [dry, ...writes].map((answer) => answer.text);
    const text = [...answers, await everyView(api), JSON.stringify(events)].join('\n');
    const deleted = await api.send('DELETE', `${KEYS_PATH}/k1?propagationPolicy=Foreground`);
    expect(leaked(text + stored + deleted.text, [key, key.slice(17), ...Object.values(SECRETS)])).toEqual([]);
    expect(text).not.toMatch(/credential|digest|sealed|f:key|f:connectorData|f:idToken/);
  });

  test('writing the same object again is a no-op, with or without the secrets', async () => {
    await using api = await startKeyServer();
    const created = await api.create('k1', SPEC);
    const version = (): Promise<unknown> =>
      api.send('GET', `${KEYS_PATH}/k1`).then(({ json }) => at(json, 'metadata.resourceVersion'));
    const before = await version();
    const shown = (await api.send('GET', `${KEYS_PATH}/k1`)).json ?? {};
    expect((await api.send('PUT', `${KEYS_PATH}/k1`, shown)).status).toBe(200);
    const whole = { ...shown, spec: { ...MINIMAL, ...SPEC, key: keyOf(created) } };
    const put = await api.send('PUT', `${KEYS_PATH}/k1`, whole);
    expect([put.status, at(put.json, 'metadata.generation')]).toEqual([200, 1]);
    expect(
      (await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { ...SPEC, key: keyOf(created) } })).status,
    ).toBe(200);
    expect(await version()).toBe(before);
  });

  test('an apply that repeats its secrets is a no-op', async () => {
    await using api = await startKeyServer();
    const body = {
      ...TYPE,
      metadata: { name: 'k1' },
      spec: { ...MINIMAL, ...SPEC, key: 'S3cret!S3cret-0123456789abcdefghij' },
    };
    const apply = async (manager = 'm'): Promise<JsonObject> => {
      const headers = { 'content-type': 'application/apply-patch+yaml' };
      const answer = await api.send('PATCH', `${KEYS_PATH}/k1?fieldManager=${manager}`, body, headers);
      expect(answer.status).toBeLessThan(300);
      return answer.json ?? {};
    };
    const first = await apply();
    expect(keyOf(first)).toBe(body.spec.key);
    expect(at(await apply(), 'metadata.resourceVersion')).toBe(at(first, 'metadata.resourceVersion'));
    expect(keyOf(await apply('other'))).toBe('');
  });

  test('are removed from the annotation of kubectl apply', async () => {
    await using api = await startKeyServer();
    const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
    const key = 'S3cret!S3cret-0123456789abcdefghij';
    const body = { ...TYPE, metadata: { name: 'k1' }, spec: { ...MINIMAL, ...SPEC, key } };
    const manifest = (description: string): JsonObject => {
      const text = `${JSON.stringify({ ...body, spec: { ...body.spec, description } })}\n`;
      return { annotations: { [annotation]: text } };
    };
    const write = { ...body, metadata: { name: 'k1', ...manifest('a') } };
    expect((await api.send('POST', `${KEYS_PATH}?dryRun=All`, write)).text).not.toContain(key);
    expect((await api.send('POST', KEYS_PATH, write)).status).toBe(201);
    const again = await api.send('PATCH', `${KEYS_PATH}/k1`, { metadata: manifest('a'), spec: { key } });
    expect(at(again.json, 'metadata.resourceVersion')).toBe(
      at((await api.send('GET', `${KEYS_PATH}/k1`)).json, 'metadata.resourceVersion'),
    );
    await api.send('PATCH', `${KEYS_PATH}/k1`, { metadata: manifest('b'), spec: { description: 'b' } });
    const stored = JSON.stringify(await api.store.list({ resource: KEY_STORAGE }));
    const secrets = [key, ...Object.values(SECRETS)];
    expect(leaked(stored + again.text + (await everyView(api)), secrets)).toEqual([]);
    const { json } = await api.send('GET', `${KEYS_PATH}/k1`);
    const kept = textAt(at(json, 'metadata.annotations') as JsonObject, annotation); // it was written
    const spec = { ...MINIMAL, identity: { userId: '1' }, oidcLogin: {}, description: 'b' };
    expect(JSON.parse(kept)).toEqual({ ...body, spec });
  });

  test('a secret is kept until it is set to the empty string, or its object is removed', async () => {
    await using api = await startKeyServer();
    await api.create('k1', SPEC);
    const sealed = async (): Promise<string[]> => {
      const entry = await api.store.get({
        resource: KEY_STORAGE,
        namespace: '',
        name: 'k1',
      });
      return Object.keys((entry?.value['sealed'] ?? {}) as JsonObject).toSorted(); // ours
    };
    const all = [
      'identity.connectorData',
      'oidcLogin.accessToken',
      'oidcLogin.idToken',
      'oidcLogin.refreshToken',
    ];
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { identity: { email: 'a@b' }, displayName: 'E' } });
    expect(await sealed()).toEqual(all);
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { oidcLogin: { idToken: '' } } });
    expect(await sealed()).toEqual(all.filter((name) => name !== 'oidcLogin.idToken'));
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { oidcLogin: null } });
    expect(await sealed()).toEqual(['identity.connectorData']);
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { identity: null } });
    expect(await sealed()).toEqual([]);
  });

  test('after any writes in any order no secret is returned except the key in the response to the create', async () => {
    await using api = await startKeyServer();
    let count = 0;
    const secret = fc.constantFrom('', ...Object.values(SECRETS));
    const identity = fc.option(
      fc.record({ username: fc.constantFrom('', 'ada'), connectorData: secret }, { requiredKeys: [] }),
    );
    const login = fc.option(fc.record({ idToken: secret, refreshToken: secret }, { requiredKeys: [] }));
    const write = fc.record(
      { displayName: fc.constantFrom('D', 'E'), ttl: fc.constantFrom(0, 60), identity, oidcLogin: login },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(write, fc.array(write, { maxLength: 4 }), async (first, writes) => {
        const name = `p${count++}`;
        const created = await api.create(name, first as JsonObject);
        const texts: string[] = [];
        for (const spec of writes) {
          const answer = await api.send('PATCH', `${KEYS_PATH}/${name}`, {
            spec: { ...spec, key: keyOf(created) },
          });
          expect(answer.status).toBe(200);
          const version = at(answer.json, 'metadata.resourceVersion');
          const again = await api.send('PATCH', `${KEYS_PATH}/${name}`, { spec });
          expect(at(again.json, 'metadata.resourceVersion')).toBe(version);
          const round = await api.send('PUT', `${KEYS_PATH}/${name}`, again.json ?? {});
          expect(at(round.json, 'metadata.resourceVersion')).toBe(version);
          texts.push(answer.text, again.text, round.text);
        }
        texts.push((await api.send('GET', `${KEYS_PATH}/${name}`)).text);
        expect(leaked(texts.join(), [keyOf(created), ...Object.values(SECRETS)])).toEqual([]);
        expect(await api.keys.authenticator.authenticate(keyOf(created))).toBeDefined();
      }),
      { numRuns: 25 },
    );
  });
});
