/** Requests for resources: bodies that do not decode, kinds that are only created, permission. */

import { describe, expect, test } from 'vitest';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import { APPLY, Keys, TYPE } from '../key-requests.ts';

describe('errors', () => {
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
