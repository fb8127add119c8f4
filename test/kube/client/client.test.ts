/** The requests that the client sends, and its results for each kind of response. */

import { afterEach, describe, expect, test } from 'vitest';
import { plainAccess, type RequestHeaders, type ServerAccess } from '../../../src/kube/access.ts';
import { TransportError, type WatchClient } from '../../../src/kube/types.ts';
import { ENDPOINT_SLICES, ENDPOINTS, NAMESPACES } from '../../../src/kube/object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet, until } from '../informer-harness.ts';
import { Wire, refusal, KEY, OBJECT, type Reply, type Seen } from './wire.ts';

describe('requests', () => {
  const opened: Wire[] = [];
  afterEach(async () => {
    for (const wire of opened.splice(0)) await wire[Symbol.asyncDispose]();
  });

  async function sent(act: (client: WatchClient) => Promise<unknown>, reply: Reply = {}): Promise<Seen> {
    const wire = await Wire.open(reply);
    opened.push(wire);
    await act(wire.client());
    const [seen] = wire.seen;
    if (seen === undefined) throw new Error('nothing was sent');
    return seen;
  }

  test('have a user agent and credentials', async () => {
    const { headers } = await sent((client) => client.get(ENDPOINTS, KEY));
    expect(headers).toMatchObject({
      authorization: 'Bearer secret',
      accept: 'application/json',
      'user-agent': 'endpoint-syncer/test',
    });
    expect(headers, 'compressed on the same machine').not.toHaveProperty('accept-encoding');
  });

  test.each<[string, (client: WatchClient) => Promise<unknown>, string]>([
    [
      'get of a group',
      (client) => client.get(ENDPOINT_SLICES, KEY),
      'GET /apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/a',
    ],
    [
      'get of a cluster-scoped object',
      (client) => client.get(NAMESPACES, { namespace: '', name: 'n' }),
      'GET /api/v1/namespaces/n',
    ],
    [
      'create',
      (client) => client.create(ENDPOINTS, OBJECT, { fieldManager: 'm m' }),
      'POST /api/v1/namespaces/ns/endpoints?fieldManager=m%20m',
    ],
    [
      'an unusual name',
      (client) => client.get(ENDPOINTS, { namespace: 'ns', name: 'a:b c' }),
      'GET /api/v1/namespaces/ns/endpoints/a%3Ab%20c',
    ],
    ['any path', (client) => client.request('GET', '/version'), 'GET /version'],
  ])('%s', async (_, act, line) => {
    const { method, url } = await sent(act);
    expect(`${method} ${url}`).toBe(line);
  });

  test('a list with all options', async () => {
    const body =
      '{"metadata":{"resourceVersion":"9","continue":"next"},"items":[{"metadata":{"name":"a"},"extra":1}]}';
    let listed: unknown;
    const act = async (client: WatchClient): Promise<void> => {
      listed = await client.list(ENDPOINTS, {
        namespace: 'ns',
        labelSelector: 'a=b',
        limit: 2,
        continueToken: 't/+',
      });
    };
    expect((await sent(act, { body })).url).toBe(
      '/api/v1/namespaces/ns/endpoints?limit=2&continue=t%2F%2B&labelSelector=a%3Db',
    );
    expect(listed).toEqual({
      resourceVersion: '9',
      continueToken: 'next',
      items: [{ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' }, extra: 1 }],
    });
  });

  test('a deletion has its preconditions in the body', async () => {
    const { method, body } = await sent((client) =>
      client.delete(ENDPOINTS, KEY, { uid: 'u', resourceVersion: '7' }),
    );
    expect(method).toBe('DELETE');
    expect(JSON.parse(body)).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'u', resourceVersion: '7' },
    });
  });

  test.each([
    ['an empty name', { namespace: 'ns', name: '' }],
    ['a name that climbs', { namespace: 'ns', name: '..' }],
    ['a name with a path', { namespace: 'ns', name: 'a/../../secrets/b' }],
    ['a namespace that climbs', { namespace: '..', name: 'a' }],
    ['no namespace', { namespace: '', name: 'a' }],
    ['an encoded slash', { namespace: 'ns', name: 'a%2fb' }],
  ])('%s is never sent', async (_, key) => {
    const wire = await Wire.open();
    opened.push(wire);
    const client = wire.client();
    expect((await refusal(client.get(ENDPOINTS, key))).code).toBe(400);
    expect((await refusal(client.delete(ENDPOINTS, key, {}))).code).toBe(400);
    expect(wire.seen).toEqual([]);
  });

  test('are sent below the path of the server', async () => {
    const wire = await Wire.open();
    opened.push(wire);
    await wire.client({ access: plainAccess(`${wire.url}/k8s/clusters/c-1/`) }).request('GET', '/version');
    expect(wire.seen[0]?.url).toBe('/k8s/clusters/c-1/version');
  });
});

describe('retries', () => {
  const busy: Reply = { code: 429, headers: { 'retry-after': '3' } };

  test('a read is retried after the delay of the server', async () => {
    await using wire = await Wire.open(busy, { code: 503 });
    const clock = new FakeClock();
    const reading = wire.client({ clock }).get(ENDPOINTS, KEY);
    await until(() => wire.seen.length === 1 && clock.nextDelayMs === 3000);
    clock.advance(3000);
    await until(() => wire.seen.length === 2 && clock.nextDelayMs === 1000);
    clock.advance(1000);
    expect((await reading).metadata.name).toBe('a');
    expect(clock.monotonicMs()).toBe(4000);
  });

  test.each(['0', '-1', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'Retry-After: %s does not shorten the back-off',
    async (header) => {
      const reply: Reply = { code: 429, headers: { 'retry-after': header } };
      await using wire = await Wire.open(reply, reply);
      const clock = new FakeClock();
      const reading = wire.client({ clock }).get(ENDPOINTS, KEY);
      await until(() => wire.seen.length === 1 && clock.nextDelayMs === 500);
      clock.advance(500);
      await until(() => wire.seen.length === 2 && clock.nextDelayMs === 1000);
      clock.advance(1000);
      expect((await reading).metadata.name).toBe('a');
    },
  );

  test('at most four times', async () => {
    await using wire = await Wire.open(...Array.from({ length: 9 }, (): Reply => ({ code: 503 })));
    const clock = new FakeClock();
    const reading = refusal(wire.client({ clock }).get(ENDPOINTS, KEY));
    for (const round of [1, 2, 3]) {
      const delayMs = 500 * 2 ** (round - 1);
      await until(() => wire.seen.length === round && clock.nextDelayMs === delayMs);
      clock.advance(delayMs);
    }
    expect((await reading).code).toBe(503);
    expect(wire.seen).toHaveLength(4);
  });

  test('not after the deadline', async () => {
    await using wire = await Wire.open(busy);
    expect((await refusal(wire.client().get(ENDPOINTS, KEY, { timeoutMs: 2000 }))).code).toBe(429);
    expect(wire.seen).toHaveLength(1);
  });

  test.each<[string, (client: WatchClient) => Promise<unknown>]>([
    ['create', (client) => client.create(ENDPOINTS, OBJECT)],
    ['update', (client) => client.update(ENDPOINTS, OBJECT)],
    ['patch', (client) => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} })],
    ['delete', (client) => client.delete(ENDPOINTS, KEY, {})],
    ['a read that asks for it', (client) => client.get(ENDPOINTS, KEY, { isRetried: false })],
  ])('%s leaves the retry to the caller', async (_, act) => {
    await using wire = await Wire.open(busy);
    expect((await refusal(act(wire.client()))).retryAfterMs).toBe(3000);
    expect(wire.seen).toHaveLength(1);
  });

  test('ends with the signal', async () => {
    await using wire = await Wire.open(busy);
    const clock = new FakeClock();
    const stop = new AbortController();
    const reading = wire.client({ clock }).get(ENDPOINTS, KEY, { signal: stop.signal });
    await until(() => clock.nextDelayMs === 3000);
    stop.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
  });
});

describe('connections', () => {
  test('are kept and bounded', async () => {
    await using wire = await Wire.open();
    const client = wire.client({ connections: 3 });
    for (let i = 0; i < 3; i++)
      await Promise.all(Array.from({ length: 20 }, () => client.update(ENDPOINTS, OBJECT)));
    expect(wire.seen).toHaveLength(60);
    expect(wire.connections).toBe(3);
  });

  test('the pages of a list are read on one connection', async () => {
    const page = { body: '{"metadata":{"continue":"next"},"items":[]}' };
    const last = { body: '{"metadata":{},"items":[]}' };
    await using wire = await Wire.open(page, page, last);
    const client = wire.client();
    for (let token = 'first'; token !== '';)
      token = (await client.list(ENDPOINTS, { continueToken: token })).continueToken;
    expect(wire.seen.length).toBe(3);
    expect(wire.connections).toBe(1);
  });

  test('a request that waits for a connection can be cancelled, and is not sent', async () => {
    await using wire = await Wire.open({ isSilent: true });
    const client = wire.client({ connections: 1 });
    const first = new AbortController();
    const hanging = client.get(ENDPOINTS, KEY, { signal: first.signal }).catch(() => 'given up');
    await until(() => wire.seen.length === 1);
    const stop = new AbortController();
    const waiting = client.update(ENDPOINTS, OBJECT, { signal: stop.signal });
    stop.abort(new Error('changed my mind'));
    await expect(waiting).rejects.toThrow('changed my mind');
    first.abort();
    expect(await hanging).toBe('given up');
    await client.request('GET', '/version');
    expect(wire.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /api/v1/namespaces/ns/endpoints/a',
      'GET /version',
    ]);
  });
});

describe('credentials', () => {
  function renewable(url: string): { access: ServerAccess; renewals: () => number } {
    let [generation, renewals] = [1, 0];
    const access: ServerAccess = {
      ...plainAccess(url),
      credentials: {
        headers: () => ({ authorization: `Bearer t${generation}` }),
        certificate: () => undefined,
        invalidate() {
          renewals += 1;
          const mayDiffer = generation < 2;
          if (mayDiffer) generation += 1;
          return mayDiffer;
        },
      },
    };
    return { access, renewals: () => renewals };
  }

  test('that are rejected are renewed once, for writes too', async () => {
    await using wire = await Wire.open({ code: 401 }, {});
    const { access } = renewable(wire.url);
    await wire.client({ access }).update(ENDPOINTS, OBJECT);
    expect(wire.seen.map(({ headers }) => headers['authorization'])).toEqual(['Bearer t1', 'Bearer t2']);
    expect(wire.seen[1]?.body).toBe(JSON.stringify(OBJECT));
  });

  test('that are rejected again are not retried', async () => {
    await using wire = await Wire.open({ code: 401 }, { code: 401 }, { code: 401 });
    const { access, renewals } = renewable(wire.url);
    const description = 'context a of Secret team-a/vc-a';
    const client = wire.client({ access: { ...access, description } });
    expect((await refusal(client.get(ENDPOINTS, KEY))).code).toBe(401);
    expect(await refusal(client.get(ENDPOINTS, KEY))).toMatchObject({
      code: 401,
      message: expect.stringMatching(
        /: the credentials of context a of Secret team-a\/vc-a are not accepted$/u,
      ) as string,
    });
    expect(wire.seen).toHaveLength(3);
    expect(renewals()).toBe(2);
  });

  test('that another request has renewed in the meantime are used', async () => {
    await using wire = await Wire.open({ code: 401 }, {});
    let token = 'old';
    const headers = (): RequestHeaders => ({ authorization: `Bearer ${token}` });
    // As of a token file: only the first of several rejections finds another token in it.
    const credentials = { headers, certificate: () => undefined, invalidate: () => false };
    const client = wire.client({ access: { ...plainAccess(wire.url), credentials } });
    const sent = client.update(ENDPOINTS, OBJECT);
    token = 'new';
    await sent;
    expect(wire.seen.map((seen) => seen.headers['authorization'])).toEqual(['Bearer old', 'Bearer new']);
  });

  test('that are renewed: disposing of the client ends what was sent before, too', async () => {
    await using wire = await Wire.open({ isSilent: true }, { code: 401 }, {});
    const { access } = renewable(wire.url);
    const client = wire.client({ access });
    const hanging = client.get(ENDPOINTS, KEY).catch((error: unknown) => error);
    await until(() => wire.seen.length === 1);
    await client.request('GET', '/version');
    await client[Symbol.asyncDispose]();
    expect(await hanging).toBeInstanceOf(TransportError);
  });

  test('name each group to impersonate in a header of its own', async () => {
    await using wire = await Wire.open();
    const access = plainAccess(wire.url);
    const headers = (): RequestHeaders => ({ 'impersonate-group': ['a,b', 'c'] });
    const client = wire.client({ access: { ...access, credentials: { ...access.credentials, headers } } });
    await client.get(ENDPOINTS, KEY);
    expect(wire.seen[0]?.headers['impersonate-group']).toBe('a,b, c');
    expect(wire.rawHeaders.filter((text) => text === 'impersonate-group')).toHaveLength(2);
  });

  test('that cannot be fetched are transport errors', async () => {
    await using wire = await Wire.open();
    const access: ServerAccess = {
      ...plainAccess(wire.url),
      credentials: {
        headers: () => Promise.reject(new TransportError('the plugin is missing')),
        certificate: () => undefined,
        invalidate: () => false,
      },
    };
    await expect(wire.client({ access }).get(ENDPOINTS, KEY)).rejects.toThrow('the plugin is missing');
    expect(wire.seen).toEqual([]);
  });
});

describe('metrics', () => {
  test('count every response, and a watch when it starts', async () => {
    await using wire = await Wire.open({ code: 201 }, { code: 404 });
    const client = wire.client();
    await client.create(ENDPOINTS, OBJECT);
    await client.get(ENDPOINTS, KEY).catch(() => undefined);
    const handler = { started: () => undefined, dataReceived: () => undefined, event: () => undefined };
    await client.watch(ENDPOINTS, { resourceVersion: '1' }, handler).catch(() => undefined);
    await quiet(1);
    expect(wire.requested).toEqual(['POST 201', 'GET 404', 'GET 200']);
  });
});
