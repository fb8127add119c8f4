/** API semantics that the cases of `test/cases` do not cover: names, messages of this server, kinds that are only created, permission. */

import { describe, expect, test } from 'vitest';
import { textAt } from '../../support/cases.ts';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import { APPLY, JSON_PATCH, Keys, MERGE, TYPE, metadata } from '../key-requests.ts';

describe('names', () => {
  test('that are generated are retried a limited number of times', async () => {
    await using keys = await Keys.open({ random: () => 0 });
    expect((await keys.create('ci-bbbbb')).status).toBe(201);
    const answer = await keys.send('POST', '', { metadata: { generateName: 'ci-' } });
    expect(answer.json).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message:
        'ownedaccesskeys.management.platform.sh "ci-bbbbb" already exists, the server was not able to generate a unique name for the object',
      details: { retryAfterSeconds: 1 },
    });
  });
});

describe('errors', () => {
  test('of a patch name the field and never quote the object', async () => {
    await using keys = await Keys.open();
    await keys.create('k', {}, { user: 'SECRET', ttl: 1 });
    const wrongType = await keys.send(
      'PATCH',
      '/k',
      [{ op: 'replace', path: '/spec/ttl', value: 'x' }],
      JSON_PATCH,
    );
    expect(wrongType.json).toMatchObject({
      code: 422,
      message:
        ' "" is invalid: patch: Invalid value: json: cannot unmarshal string into Go struct field OwnedAccessKeySpec.spec.ttl of type int64',
      details: { causes: [{ reason: 'FieldValueInvalid', field: 'patch' }] },
    });
    const kind = await keys.send('PATCH', '/k', { kind: 'Other' }, MERGE);
    const unknown = await keys.send('PATCH', '/k?fieldValidation=Strict', { spec: { bogus: 1 } }, MERGE);
    expect([kind.status, unknown.status]).toEqual([422, 422]);
    expect(unknown.json?.['message']).toContain('unknown field "spec.bogus"');
    expect(wrongType.text + kind.text + unknown.text).not.toContain('SECRET');
  });

  test('of a JSON Patch name the operation and never quote a value', async () => {
    await using keys = await Keys.open();
    await keys.create('k', { labels: { a: 'b' } });
    const patch = [
      { op: 'test', path: '/metadata/labels/a', value: 'b' },
      { op: 'test', path: '/metadata/labels/a', value: 'guess' },
    ];
    const { json } = await keys.send('PATCH', '/k', patch, JSON_PATCH);
    expect(json?.['details']).toEqual({
      causes: [
        {
          reason: 'FieldValueInvalid',
          field: '[1]',
          message: 'operation 1 (test /metadata/labels/a): the value differs',
        },
      ],
    });
  });

  test('name an invalid namespace of a cluster-scoped object; a valid one is ignored', async () => {
    await using keys = await Keys.open();
    const wrong = await keys.create('k', { namespace: 'Bad_NS' });
    expect(wrong.status).toBe(400);
    expect(textAt(wrong.json ?? {}, 'message')).toMatch(/^metadata\.namespace: Invalid value: "Bad_NS": /);
    expect((await keys.create('k', { namespace: 'default' })).status).toBe(201);
  });

  test('of a uid precondition name both uids', async () => {
    await using keys = await Keys.open();
    const created = await keys.create('k');
    const [uid, resourceVersion] = [
      textAt(metadata(created), 'uid'),
      textAt(metadata(created), 'resourceVersion'),
    ];
    const answer = await keys.send('PUT', '/k', {
      metadata: { name: 'k', uid: 'x', resourceVersion },
    });
    expect(answer.json).toMatchObject({
      code: 409,
      message: `Operation cannot be fulfilled on ownedaccesskeys.management.platform.sh "k": Precondition failed: UID in precondition: x, UID in object meta: ${uid}`,
    });
  });

  test('name duplicate keys of YAML as kube-apiserver does, on create and on apply', async () => {
    await using keys = await Keys.open();
    const yaml = 'metadata: {name: k}\nspec:\n  ttl: 5\n  user: u\n  ttl: 6\n';
    const applied = `apiVersion: ${TYPE.apiVersion}\nkind: ${TYPE.kind}\n${yaml}`;
    const strict = await keys.send('POST', '?fieldValidation=Strict', yaml, 'application/yaml');
    expect(strict.json).toMatchObject({ code: 400 });
    expect(strict.json?.['message']).toContain('strict decoding error: line 5: key "ttl" already set in map');
    const refused = await keys.send('PATCH', '/k?fieldManager=m&fieldValidation=Strict', applied, APPLY);
    expect(refused.json).toMatchObject({ code: 400 });
    const warned = await keys.send('POST', '', yaml, 'application/yaml');
    expect(warned.headers.get('warning')).toBe('299 - "line 5: key \\"ttl\\" already set in map"');
    expect(warned.json).toMatchObject({ spec: { ttl: 6 } });
    const ignored = await keys.send('PATCH', '/k?fieldManager=m&fieldValidation=Ignore', applied, APPLY);
    expect([ignored.status, ignored.headers.get('warning')]).toEqual([200, null]);
  });

  test('of a malformed body do not quote it', async () => {
    await using keys = await Keys.open();
    const answer = await keys.send('POST', '', '{"spec":{"key":"SECRET');
    expect(answer.json).toMatchObject({ code: 400, reason: 'BadRequest' });
    expect(answer.text).not.toContain('SECRET');
  });
});

describe('a kind that is only created', () => {
  const TOKENS = '/apis/management.platform.sh/v1/directclusterendpointtokens';

  test('is returned and not stored, and supports no other verb', async () => {
    await using keys = await Keys.open();
    const { client, store } = keys.api;
    const answer = await client.send({ method: 'POST', path: TOKENS, body: { spec: { ttl: 5 } } });
    expect(answer.status).toBe(201);
    expect(answer.json).toMatchObject({
      kind: 'DirectClusterEndpointToken',
      status: { token: 'for nobody' },
    });
    expect(
      (await store.list({ resource: 'directclusterendpointtokens.management.platform.sh' })).entries,
    ).toEqual([]);
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const refused = await client.send({
        method,
        path: `${TOKENS}/x`,
        ...(method === 'GET' ? {} : { body: {} }),
      });
      expect(refused.json).toMatchObject({ code: 405, reason: 'MethodNotAllowed' });
    }
  });
});

describe('permission', () => {
  test('is checked before the request is validated', async () => {
    const authorizer = {
      authorize: (_user: UserInfo, { verb }: { verb: string }) => ({
        isAllowed: verb === 'get',
        reason: 'scope',
      }),
    };
    await using keys = await Keys.open({ authorizer });
    expect((await keys.send('DELETE', '/nope')).json).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message:
        'ownedaccesskeys.management.platform.sh "nope" is forbidden: User "nobody" cannot delete resource "ownedaccesskeys" ' +
        'in API group "management.platform.sh" at the cluster scope: scope',
      details: { name: 'nope', group: 'management.platform.sh', kind: 'ownedaccesskeys' },
    });
    expect((await keys.send('GET', '/nope')).status).toBe(404);
    expect((await keys.send('GET', '?watch=1')).status).toBe(403);
  });
});
