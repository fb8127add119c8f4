/** Tokens over HTTP: the responses for the kind. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '../../../src/base/json.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import type { RawAnswer } from '../../contract/raw-client.ts';
import { startComposed, TOKENS_PATH, type Composed, type MadeKey } from '../composed-api.ts';
import { claimsOf, tokenOf } from './token-harness.ts';

let api: Composed;
let key: MadeKey;
beforeAll(async () => {
  // At a full second, at which the key is created and expires.
  const clock = new FakeClock(Math.floor(Date.now() / 1000) * 1000);
  api = await startComposed({ clock });
  key = await api.key('maker', { user: 'alice', ttl: 3600 });
});
afterAll(() => api[Symbol.asyncDispose]());

function post(body: JsonValue, query = '', headers = {}): Promise<RawAnswer> {
  return key.client.send({ method: 'POST', path: TOKENS_PATH + query, headers, body });
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
    const long = await post(parseJson('{"metadata":{},"spec":{"ttl":9007199254740995}}'));
    expect([long.status, long.text]).toEqual([422, expect.stringContaining('9007199254740995')]);
  });
});

test('OpenAPI has PATCH with fieldValidation, without which kubectl creates nothing', async () => {
  const path = '/openapi/v3/apis/management.platform.sh/v1';
  const { json } = await key.client.send({ method: 'GET', path });
  const paths = json?.['paths'] as Record<string, JsonObject>; // OpenAPI
  expect(Object.keys(paths[TOKENS_PATH] ?? {})).toEqual(['post']);
  const patch = paths[`${TOKENS_PATH}/{name}`]?.['patch'];
  const parameters = isJsonObject(patch) ? patch['parameters'] : [];
  expect(parameters).toContainEqual(expect.objectContaining({ name: 'fieldValidation' }));
});
