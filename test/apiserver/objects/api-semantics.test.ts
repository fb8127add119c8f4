/** API semantics that the cases of `test/cases` do not cover: messages of this server, races, graceful deletion, field managers, limits. */

import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { textAt } from '../../support/cases.ts';
import { WATCH_UNREAD_BYTES_MAX } from '../../../src/apiserver/limits.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { startEmbeddedCluster } from '../../../src/embedded-cluster/embedded-cluster.ts';
import { RawClient, type RawAnswer } from '../../contract/raw-client.ts';
import { accessKeyTable } from '../test-kinds.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../test-server.ts';
import { userNamed, type UserInfo } from '../../../src/apiserver/user.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { StoreError } from '../../../src/apiserver/storage/store.ts';

const KEYS = '/apis/management.platform.sh/v1/ownedaccesskeys';
const TYPE = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' };
const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const APPLY = 'application/apply-patch+yaml';

/** Short requests for keys. */
class Keys implements AsyncDisposable {
  readonly api: TestServer;

  constructor(api: TestServer) {
    this.api = api;
  }

  static async open(options: Partial<TestServerOptions> = {}): Promise<Keys> {
    return new Keys(await startTestServer({ table: accessKeyTable(), ...options }));
  }

  send(method: string, path = '', body?: JsonValue, contentType?: string): Promise<RawAnswer> {
    const headers = contentType === undefined ? {} : { 'content-type': contentType };
    const request = { method, path: KEYS + path, headers };
    return this.api.client.send(body === undefined ? request : { ...request, body });
  }

  create(name: string, more: JsonObject = {}, spec: JsonObject = {}): Promise<RawAnswer> {
    return this.send('POST', '', { metadata: { name, ...more }, spec });
  }

  apply(name: string, manager: string, spec: JsonObject, labels: JsonObject = {}): Promise<RawAnswer> {
    const metadata = Object.keys(labels).length === 0 ? { name } : { name, labels };
    return this.send('PATCH', `/${name}?fieldManager=${manager}`, { ...TYPE, metadata, spec }, APPLY);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}

function metadata(answer: RawAnswer): JsonObject {
  return (answer.json?.['metadata'] ?? {}) as JsonObject; // every answer has it
}

function names(answer: RawAnswer): unknown[] {
  const { items = [] } = answer.json as { items?: { metadata: { name: string } }[] }; // a list
  return items.map((item) => item.metadata.name);
}

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

describe('lists', () => {
  test('show one revision on all pages, despite later writes', async () => {
    await using keys = await Keys.open();
    for (const name of ['p0', 'p1', 'p2', 'p3', 'p4']) await keys.create(name);
    const first = await keys.send('GET', '?limit=2');
    await keys.create('p00');
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const second = await keys.send('GET', `?limit=2&continue=${token}`);
    expect(names(first)).toEqual(['p0', 'p1']);
    expect(metadata(first)['remainingItemCount']).toBe(3);
    expect(names(second)).toEqual(['p2', 'p3']);
    expect(metadata(second)['resourceVersion']).toBe(metadata(first)['resourceVersion']);
  });

  test('of a compacted revision are 410, with a token for the rest of the current list', async () => {
    await using keys = await Keys.open();
    for (const name of ['p0', 'p1', 'p2']) await keys.create(name);
    const first = await keys.send('GET', '?limit=2');
    await keys.create('p3');
    await keys.api.store.compact(await keys.api.store.revision());
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const gone = await keys.send('GET', `?limit=2&continue=${token}`);
    expect(gone.json).toMatchObject({ code: 410, reason: 'Expired' });
    const rest = encodeURIComponent(textAt(metadata(gone), 'continue'));
    expect(names(await keys.send('GET', `?limit=2&continue=${rest}`))).toEqual(['p2', 'p3']);
  });

  test('with a selector are limited after selecting', async () => {
    await using keys = await Keys.open();
    for (let i = 0; i < 6; i++) await keys.create(`k${i}`, { labels: { even: String(i % 2 === 0) } });
    const first = await keys.send('GET', '?limit=2&labelSelector=even%3Dtrue');
    expect(names(first)).toEqual(['k0', 'k2']);
    expect(metadata(first)).not.toHaveProperty('remainingItemCount');
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const second = await keys.send('GET', `?limit=2&labelSelector=even%3Dtrue&continue=${token}`);
    expect(names(second)).toEqual(['k4']);
    expect(metadata(second)).not.toHaveProperty('continue');
  });

  test('can show an exact resourceVersion', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('a')), 'resourceVersion');
    await keys.create('b');
    expect(names(await keys.send('GET', `?resourceVersion=${version}&resourceVersionMatch=Exact`))).toEqual([
      'a',
    ]);
    expect(names(await keys.send('GET', `?resourceVersion=${version}`))).toEqual(['a', 'b']);
  });
});

describe('concurrent writes', () => {
  test('all succeed without a resourceVersion; with one, only the first', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const patches = Array.from({ length: 20 }, (_, i) =>
      keys.send('PATCH', '/k', { metadata: { labels: { [`l${i}`]: 'x' } } }, MERGE),
    );
    expect((await Promise.all(patches)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    const labels = metadata(await keys.send('GET', '/k'))['labels'] as JsonObject; // labels were set
    expect(Object.keys(labels)).toHaveLength(20);
    const guarded = { metadata: { resourceVersion: version, labels: { late: 'x' } } };
    expect((await keys.send('PATCH', '/k', guarded, MERGE)).status).toBe(409);
  });

  test('of the status change the resourceVersion too', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const status = { status: { lastActivity: '2024-01-01T00:00:00Z' } };
    const written = await keys.send('PATCH', '/k/status', status, MERGE);
    expect(written.json).toMatchObject({ metadata: { generation: 1 }, ...status });
    const stale = { metadata: { name: 'k', resourceVersion: version }, spec: { ttl: 9 } };
    expect((await keys.send('PUT', '/k', stale)).status).toBe(409);
  });
});

describe('field managers', () => {
  test('of updates have ten entries, then the oldest are merged', async () => {
    await using keys = await Keys.open();
    await keys.create('k', {}, { ttl: 1 });
    for (let i = 0; i < 13; i++) {
      await keys.send('PATCH', `/k?fieldManager=u${i}`, { metadata: { labels: { [`l${i}`]: 'x' } } }, MERGE);
    }
    const managed = metadata(await keys.send('GET', '/k'))['managedFields'] as JsonObject[]; // it was written
    expect(managed).toHaveLength(10);
    expect(managed.map(({ manager }) => manager)).toContain('ancient-changes');
    expect(managed.map(({ manager }) => manager)).toContain('u12');
  });

  test('that conflict are all named with their fields', async () => {
    await using keys = await Keys.open();
    await keys.create('k', { labels: { a: 'x' } }, { groups: ['a'], ttl: 1 });
    await keys.send(
      'PATCH',
      '/k',
      [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }],
      JSON_PATCH,
    );
    await keys.send(
      'PATCH',
      '/k?fieldManager=m9',
      { ...TYPE, metadata: { name: 'k' }, spec: { ttl: 1 } },
      APPLY,
    );
    const answer = await keys.apply('k', 'm10', { ttl: 2, groups: ['b'] }, { a: 'y' });
    expect(answer.json).toMatchObject({ code: 409, reason: 'Conflict' });
    expect(answer.json?.['message']).toBe(
      'Apply failed with 4 conflicts: conflicts with "before-first-apply" using management.platform.sh/v1:\n' +
        '- .metadata.labels.a\n- .spec.groups\n- .spec.ttl\nconflicts with "m9":\n- .spec.ttl',
    );
  });

  test('lose the fields that they no longer apply, unless another manager owns them too', async () => {
    await using keys = await Keys.open();
    await keys.apply('k', 'm1', { user: 'u', ttl: 1 }, { a: '1', b: '2' });
    await keys.apply('k', 'm2', { ttl: 1 }, { a: '1' });
    const answer = await keys.apply('k', 'm1', { user: 'u' });
    expect(answer.json).toMatchObject({ metadata: { labels: { a: '1' } }, spec: { user: 'u', ttl: 1 } });
    expect(metadata(answer)['labels']).toEqual({ a: '1' });
  });
});

describe('graceful deletion', () => {
  test('waits, can be shortened but not extended, and ends at the deadline', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1');
    const first = await keys.send('DELETE', '/g1?gracePeriodSeconds=30');
    expect(metadata(first)).toMatchObject({
      generation: 2,
      deletionGracePeriodSeconds: 30,
      deletionTimestamp: '2026-01-01T00:00:30Z',
    });
    const shorter = await keys.send('DELETE', '/g1?gracePeriodSeconds=10');
    expect(metadata(shorter)).toMatchObject({
      generation: 2,
      deletionGracePeriodSeconds: 10,
      deletionTimestamp: '2026-01-01T00:00:10Z',
    });
    const longer = await keys.send('DELETE', '/g1?gracePeriodSeconds=60');
    expect(longer.json).toMatchObject({ kind: 'Status', status: 'Success' });
    expect(metadata(await keys.send('GET', '/g1'))).toMatchObject({ deletionGracePeriodSeconds: 10 });
    clock.advance(10_000);
    await settle();
    expect((await keys.send('GET', '/g1')).status).toBe(404);
  });

  test('leaves no timer behind for an object that is removed earlier', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1');
    // The timer of unread responses.
    expect(clock.nextDelayMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(30_000);
    await keys.send('DELETE', '/g1?gracePeriodSeconds=30');
    await keys.send('DELETE', '/g1?gracePeriodSeconds=20');
    expect(clock.nextDelayMs).toBe(20_000);
    await keys.send('DELETE', '/g1?gracePeriodSeconds=0');
    expect((await keys.send('GET', '/g1')).status).toBe(404);
    expect(clock.nextDelayMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(30_000);
  });

  test('of 0 seconds removes immediately', async () => {
    await using keys = await Keys.open({ clock: new FakeClock() });
    await keys.create('g1');
    await keys.send('DELETE', '/g1');
    expect((await keys.send('DELETE', '/g1?gracePeriodSeconds=0')).json).toMatchObject({ status: 'Success' });
    expect((await keys.send('GET', '/g1')).status).toBe(404);
  });

  test('waits for the deadline without finalizers, and for finalizers after the deadline', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1', { finalizers: ['a.b/c'] });
    await keys.create('g2', { finalizers: ['a.b/c'] });
    await keys.send('DELETE', '/g1?gracePeriodSeconds=5');
    await keys.send('DELETE', '/g2?gracePeriodSeconds=5');
    await keys.send('PATCH', '/g1', { metadata: { finalizers: null } }, MERGE);
    expect((await keys.send('GET', '/g1')).status).toBe(200);
    clock.advance(5000);
    await settle();
    expect((await keys.send('GET', '/g1')).status).toBe(404);
    expect((await keys.send('GET', '/g2')).status).toBe(200);
    await keys.send('PATCH', '/g2', { metadata: { finalizers: null } }, MERGE);
    expect((await keys.send('GET', '/g2')).status).toBe(404);
  });
});

describe('the caller of a write', () => {
  const sends = async (
    users: readonly string[],
    allows: (user: UserInfo, count: number) => boolean = () => true,
  ): Promise<{ answer: RawAnswer; authorized: readonly string[]; stored: number }> => {
    const authorized: string[] = [];
    let authenticated = 0;
    await using keys = await Keys.open({
      authenticate: () => userNamed(users[authenticated++] ?? users.at(-1) ?? ''),
      authorizer: {
        authorize: (user) => ({ isAllowed: allows(user, authorized.push(user.name)), reason: '' }),
      },
    });
    const answer = await keys.create('k');
    const { entries } = await keys.api.store.list({ resource: 'ownedaccesskeys.management.platform.sh' });
    return { answer, authorized, stored: entries.length };
  };

  test('is authorized again before the store is written', async () => {
    const { answer, authorized, stored } = await sends(['u']);
    expect([answer.status, authorized, stored]).toEqual([201, ['u', 'u'], 1]);
    const denied = await sends(['u'], (_user, count) => count === 1);
    expect([denied.answer.status, denied.stored]).toEqual([403, 0]);
  });

  test('whose rights have changed is another user, for which the request is processed again', async () => {
    const { answer, authorized, stored } = await sends(['u', 'u2']);
    expect([answer.status, authorized, stored]).toEqual([201, ['u', 'u2', 'u2'], 1]);
    const twice = await sends(['u', 'u2', 'u3']);
    expect([twice.answer.status, twice.stored]).toEqual([409, 0]);
  });
});

describe('watches', () => {
  test('send bookmarks regularly and before they end', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const query = `?watch=1&resourceVersion=${version}&allowWatchBookmarks=true&timeoutSeconds=90`;
    await using watch = await keys.api.client.watch(KEYS + query);
    clock.advance(60_000);
    expect(await watch.next()).toEqual({
      type: 'BOOKMARK',
      object: { ...TYPE, metadata: { resourceVersion: version } },
    });
    clock.advance(30_000);
    expect((await watch.next())?.type).toBe('BOOKMARK');
    expect(await watch.next()).toBeUndefined();
  });

  test('send more current objects than a slow client may leave unread', async () => {
    await using keys = await Keys.open();
    const description = 'd'.repeat(1024 * 1024);
    const count = (2 * WATCH_UNREAD_BYTES_MAX) / description.length;
    for (let n = 0; n < count; n++) {
      const key = { resource: 'ownedaccesskeys.management.platform.sh', namespace: '', name: `k-${n}` };
      await keys.api.store.create(key, { metadata: { name: key.name }, spec: { description } });
    }
    await using watch = await keys.api.client.watch(`${KEYS}?watch=1&resourceVersion=0`);
    const events = await watch.summary(count);
    expect(events).toHaveLength(count);
    expect(events.every((event) => event.startsWith('ADDED k-'))).toBe(true);
    // The watch continues with changes.
    await keys.send('DELETE', '/k-0');
    expect(await watch.summary(1)).toEqual(['DELETED k-0']);
  });

  test('of a compacted resourceVersion get an error event', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('a')), 'resourceVersion');
    await keys.create('b');
    await keys.api.store.compact(await keys.api.store.revision());
    await using watch = await keys.api.client.watch(`${KEYS}?watch=1&resourceVersion=${version}`);
    expect(watch.status).toBe(200);
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    });
    expect(await watch.next()).toBeUndefined();
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

describe('an unavailable store', () => {
  class AwayStore extends MemoryStore {
    override create(): Promise<never> {
      return Promise.reject(new StoreError('unavailable', 'the disk is full'));
    }
  }

  test('is 503: the request had no effect and may be retried', async () => {
    await using keys = await Keys.open({ store: new AwayStore() });
    const answer = await keys.create('k1');
    expect(answer.json).toMatchObject({
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the store cannot be used: the disk is full',
      details: { retryAfterSeconds: 1 },
    });
    expect(answer.headers.get('retry-after')).toBe('1');
  });
});

describe('an apply that changes nothing', () => {
  test('writes nothing, at any later time', async () => {
    const clock = new FakeClock(Date.parse('2026-01-01T00:00:00Z'));
    await using cluster = await startEmbeddedCluster({ name: 'later', clock });
    await using client = new RawClient({ url: cluster.url });
    const apply = (): Promise<RawAnswer> =>
      client.send({
        method: 'PATCH',
        path: '/api/v1/namespaces/default/endpoints/web?fieldManager=m',
        headers: { 'content-type': APPLY },
        body: {
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: { name: 'web' },
          // Without the protocol, which the kind fills in.
          subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
        },
      });
    const first = await apply();
    clock.advance(60_000);
    const second = await apply();
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.json).toEqual(first.json);
  });
});
