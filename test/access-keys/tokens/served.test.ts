/** Tokens over HTTP: the responses for the kind, and the public documents. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import { startServer, type RunningServer } from '../../../src/apiserver/http/api-server.ts';
import { ObjectRegistry } from '../../../src/apiserver/objects/object-registry.ts';
import { isJsonObject, type JsonObject } from '../../../src/base/json.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { noAdmission } from '../../apiserver/test-server.ts';
import { RawClient, type RawAnswer, type RawRequest } from '../../contract/raw-client.ts';
import { claimsOf, keyRecord, startTokens, tokenOf, type TokenHarness } from './token-harness.ts';

const PATH = '/apis/management.platform.sh/v1/directclusterendpointtokens';

let harness: TokenHarness;
let server: RunningServer;
let client: RawClient;

beforeAll(async () => {
  harness = await startTokens();
  const { table, store, clock, tokens } = harness;
  const key = harness.index.set(keyRecord({ expiresAtMs: clock.now() + 3_600_000 }));
  const registry = new ObjectRegistry({ store, clock, random: Math.random, admission: noAdmission });
  server = await startServer({
    table,
    logger: silentLogger,
    authorizer: allowEverything,
    authenticate: ({ authorization }) => (authorization === 'Bearer key' ? key.user : undefined),
    publicDocuments: tokens.publicDocuments,
    version: { major: '1', minor: '33', gitVersion: 'v1.33.0' },
    registry,
  });
  client = new RawClient({ url: `http://${server.address}`, token: 'key' });
});

afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await harness[Symbol.asyncDispose]();
});

function post(body: RawRequest['body'], query = '', headers = {}): Promise<RawAnswer> {
  return client.send({
    method: 'POST',
    path: PATH + query,
    headers,
    ...(body === undefined ? {} : { body }),
  });
}

describe('create', () => {
  test('of an empty spec, in JSON and in YAML: 201 with Cache-Control: no-store', async () => {
    const yaml =
      'apiVersion: management.platform.sh/v1\nkind: DirectClusterEndpointToken\nmetadata: {}\nspec: {}\n';
    const answers = [
      await post({ metadata: {}, spec: {} }),
      await post({ kind: 'DirectClusterEndpointToken', apiVersion: 'management.platform.sh/v1' }),
      await post(yaml, '', { 'content-type': 'application/yaml' }),
    ];
    for (const { status, json, headers } of answers) {
      expect(status).toBe(201);
      expect(json).toMatchObject({
        kind: 'DirectClusterEndpointToken',
        apiVersion: 'management.platform.sh/v1',
        spec: { ttl: 3600 },
      });
      expect(claimsOf(tokenOf(json ?? {})).sub).toBe('alice');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  test('ignores the status of the request, and warns about an unknown field', async () => {
    const { status, json, headers } = await post({
      metadata: {},
      spec: { ttl: 60, bogus: 1 },
      status: { token: 'mine' },
    });
    expect([status, tokenOf(json ?? {})]).toEqual([201, expect.not.stringContaining('mine')]);
    expect(headers.get('warning')).toContain('unknown field \\"spec.bogus\\"');
    const strict = await post({ metadata: {}, spec: { bogus: 1 } }, '?fieldValidation=Strict');
    expect(strict.status).toBe(400);
  });

  test('dry run: everything is checked, no token', async () => {
    const { status, json } = await post({ metadata: {}, spec: {} }, '?dryRun=All');
    expect([status, json?.['status']]).toEqual([201, {}]);
    expect((await post({ metadata: {}, spec: { ttl: -1 } }, '?dryRun=All')).status).toBe(422);
  });

  test('warnings: a reduced ttl, a deprecated field, a scope that allows nothing', async () => {
    const cut = await post({ metadata: {}, spec: { ttl: 7200 } });
    expect(cut.headers.get('warning')).toContain('spec.ttl: reduced from 7200 to 3600 seconds');
    const old = await post({ metadata: {}, spec: { scope: { allowPlatformCli: true } } });
    expect(old.headers.get('warning')).toContain('spec.scope.allowPlatformCli is deprecated');
    const none = await post({ metadata: {}, spec: { scope: {} } });
    expect(none.headers.get('warning')).toContain('spec.scope has no entries and allows nothing');
  });

  test('a wrong type: 400; a wrong value: 422 with the field', async () => {
    expect((await post({ metadata: {}, spec: { ttl: 'soon' } })).status).toBe(400);
    const { status, json } = await post({ metadata: {}, spec: { ttl: -1 } });
    expect(status).toBe(422);
    expect(json?.['details']).toMatchObject({
      group: 'management.platform.sh',
      kind: 'DirectClusterEndpointToken',
      causes: [{ reason: 'FieldValueInvalid', field: 'spec.ttl' }],
    });
  });
});

describe('everything else', () => {
  test.each([
    ['GET', PATH],
    ['DELETE', PATH],
    ['GET', `${PATH}/x`],
    ['PUT', `${PATH}/x`],
    ['PATCH', `${PATH}/x`],
    ['DELETE', `${PATH}/x`],
    ['POST', `${PATH}/x`],
  ])('%s %s: 405', async (method, path) => {
    const { status, json } = await client.send({
      method,
      path,
      ...(method === 'GET' ? {} : { headers: { 'content-type': 'application/merge-patch+json' }, body: {} }),
    });
    expect([status, json?.['reason']]).toEqual([405, 'MethodNotAllowed']);
  });

  test('OpenAPI has every field, and PATCH with fieldValidation, without which kubectl creates nothing', async () => {
    const { json } = await client.send({
      method: 'GET',
      path: '/openapi/v3/apis/management.platform.sh/v1',
    });
    const paths = json?.['paths'] as Record<string, JsonObject>; // OpenAPI
    expect(Object.keys(paths[PATH] ?? {})).toEqual(['post']);
    const patch = paths[`${PATH}/{name}`]?.['patch'];
    const parameters = isJsonObject(patch) ? patch['parameters'] : [];
    expect(parameters).toContainEqual(expect.objectContaining({ name: 'fieldValidation' }));
    expect(undescribed(json ?? {})).toEqual([]);
  });

  test('the public documents need no credentials; a token is not accepted as a credential', async () => {
    await using anonymous = new RawClient({ url: `http://${server.address}` });
    for (const path of harness.tokens.publicDocuments.keys()) {
      const { status, headers } = await anonymous.send({ method: 'GET', path });
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=3600']);
    }
    const token = tokenOf((await post({ metadata: {}, spec: {} })).json ?? {});
    await using bearer = new RawClient({ url: `http://${server.address}`, token });
    expect((await bearer.send({ method: 'POST', path: PATH, body: {} })).status).toBe(401);
  });
});

/** Fields of the kinds of this group without a description. */
function undescribed(document: JsonObject): string[] {
  const { schemas } = document['components'] as { schemas: Record<string, JsonObject> }; // OpenAPI
  return Object.entries(schemas)
    .filter(([name]) => name.includes('.management.') && !name.endsWith('List'))
    .flatMap(([name, schema]) =>
      Object.entries((schema['properties'] ?? {}) as Record<string, JsonObject>)
        .filter(([, property]) => !property['description'])
        .map(([field]) => `${name}.${field}`),
    );
}
