/** The requests that the client sends, and its results for each kind of response. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { plainAccess, type ServerAccess } from '../../../src/kube/access.ts';
import { createClient, type ClientOptions } from '../../../src/kube/client/client.ts';
import { MalformedResponseError, TransportError, type WatchClient } from '../../../src/kube/types.ts';
import {
  ENDPOINTS,
  ENDPOINT_SLICES,
  NAMESPACES,
  type KubeObject,
  type Resource,
} from '../../../src/kube/object.ts';
import { TokenBucket } from '../../../src/base/token-bucket.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet, until } from '../informer-harness.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

interface Reply {
  readonly code?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Never answered. */
  readonly isSilent?: boolean;
}

class Wire implements AsyncDisposable {
  readonly seen: Seen[] = [];
  readonly requested: string[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #clients: WatchClient[] = [];

  private constructor(replies: readonly Reply[]) {
    const queue = [...replies];
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        this.seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
        const reply = queue.shift() ?? {};
        if (reply.isSilent === true) return;
        response
          .writeHead(reply.code ?? 200, reply.headers ?? {})
          .end(reply.body ?? JSON.stringify(objectAt(url)));
      });
    });
    this.#server.on('connection', () => (this.connections += 1));
  }

  static async open(...replies: Reply[]): Promise<Wire> {
    const wire = new Wire(replies);
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    return wire;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  client(options: Partial<ClientOptions> = {}): WatchClient {
    const client = createClient({
      cluster: 'host',
      access: plainAccess(this.url, 'secret'),
      clock: systemClock,
      metrics: { requested: (method, code) => this.requested.push(`${method} ${code}`) },
      userAgent: 'endpoint-syncer/test',
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

const KINDS: Readonly<Record<string, string>> = {
  endpoints: 'Endpoints',
  endpointslices: 'EndpointSlice',
  namespaces: 'Namespace',
};

/** The object that an API server holds at a path; at that of a collection, the object `a`. */
function objectAt(url: string): KubeObject {
  const parts = new URL(url, 'http://wire').pathname.split('/').map(decodeURIComponent);
  const [, root = '', ...rest] = parts;
  const apiVersion = root === 'api' ? rest.shift() : `${rest.shift()}/${rest.shift()}`;
  const namespace = rest.length > 2 ? rest[1] : undefined;
  const [plural = '', name = 'a'] = namespace === undefined ? rest : rest.slice(2);
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    kind: KINDS[plural] ?? plural,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid: 'u', resourceVersion: '7' },
  };
}

const KEY = { namespace: 'ns', name: 'a' };
const OBJECT: KubeObject = {
  metadata: { name: 'a', namespace: 'ns', resourceVersion: '7' },
  unknownField: { ä: [1] },
};
const SLICES: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  isNamespaced: true,
};

async function refusal(promise: Promise<unknown>): Promise<StatusError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StatusError)) throw new Error(`not a StatusError: ${String(error)}`);
  return error;
}

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
    ['get', (client) => client.get(ENDPOINTS, KEY), 'GET /api/v1/namespaces/ns/endpoints/a'],
    [
      'get of a group',
      (client) => client.get(SLICES, KEY),
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
    ['update', (client) => client.update(ENDPOINTS, OBJECT), 'PUT /api/v1/namespaces/ns/endpoints/a'],
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

  test('bodies are the unchanged objects', async () => {
    expect(JSON.parse((await sent((client) => client.update(ENDPOINTS, OBJECT))).body)).toEqual(OBJECT);
  });

  test.each([
    ['merge', 'application/merge-patch+json'],
    ['json', 'application/json-patch+json'],
  ] as const)('a %s patch says so', async (type, contentType) => {
    const { method, headers, body } = await sent((client) =>
      client.patch(ENDPOINTS, KEY, { type, body: { a: null } }),
    );
    expect([method, headers['content-type'], body]).toEqual(['PATCH', contentType, '{"a":null}']);
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

describe('error responses', () => {
  test('contain the Status of the server', async () => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'no',
      reason: 'Conflict',
      code: 409,
      details: { name: 'a', kind: 'endpoints' },
    };
    await using wire = await Wire.open({ code: 409, body: JSON.stringify(status) });
    const error = await refusal(wire.client().update(ENDPOINTS, OBJECT));
    expect(error.status).toEqual(status);
    expect([error.message, error.code, error.reason]).toEqual(['no', 409, 'Conflict']);
  });

  test.each([
    [
      'HTML',
      502,
      '<html><script>evil()</script><body><b>Bad</b> gateway</body>',
      'InternalError',
      'Bad gateway',
    ],
    ['text', 403, 'go away', 'Forbidden', 'go away'],
    ['nothing', 404, '', 'NotFound', 'without a Kubernetes Status'],
    ['JSON of something else', 418, '{"error":"teapot"}', 'Unknown', 'teapot'],
    ['broken JSON', 500, '{"kind":"Stat', 'InternalError', 'Stat'],
    ['a flood', 503, `<p>${'x'.repeat(200_000)}`, 'ServiceUnavailable', 'xxx'],
  ])('that are %s are described', async (...row) => {
    const [, code, body, reason, excerpt] = row;
    await using wire = await Wire.open({ code, body });
    const error = await refusal(wire.client().get(ENDPOINTS, KEY, { isRetried: false }));
    expect([error.code, error.reason]).toEqual([code, reason]);
    expect(error.message).toContain(
      `the response to GET ${new URL(wire.url).host}/api/v1/namespaces/ns/endpoints/a is ${code}`,
    );
    expect(error.message).toContain(excerpt);
    expect(error.message).not.toContain('evil');
    expect(error.message.length).toBeLessThan(600);
  });

  test.each([
    ['seconds', () => '7', 7000],
    ['a date', () => new Date(Date.now() + 9500).toUTCString(), 9000],
    ['a date in the past', () => new Date(0).toUTCString(), 0],
    ['nonsense', () => 'soon', undefined],
    ['a negative number', () => '-5', undefined],
    ['a fraction', () => '1.5', undefined],
    ['an enormous number', () => '999999999999', 999_999_999_999_000],
  ])('with Retry-After as %s', async (_, header, expected) => {
    await using wire = await Wire.open({ code: 429, headers: { 'retry-after': header() } });
    const { retryAfterMs } = await refusal(wire.client().update(ENDPOINTS, OBJECT));
    expect(retryAfterMs === undefined ? undefined : Math.round(retryAfterMs / 3000)).toBe(
      expected === undefined ? undefined : Math.round(expected / 3000),
    );
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

describe('no response', () => {
  test('the error for a refused connection gives the cause', async () => {
    const wire = await Wire.open();
    const client = wire.client();
    const access = plainAccess(wire.url);
    await wire[Symbol.asyncDispose]();
    const gone = createClient({
      cluster: 'host',
      access,
      clock: systemClock,
      metrics: { requested: () => undefined },
      userAgent: 't',
    });
    await expect(gone.get(ENDPOINTS, KEY)).rejects.toThrow(
      /no response to GET 127.0.0.1:\d+\/api.*connection refused.*ECONNREFUSED/,
    );
    await expect(client.get(ENDPOINTS, KEY), 'closed').rejects.toBeInstanceOf(TransportError);
    await gone[Symbol.asyncDispose]();
  });

  test('a deadline', async () => {
    await using wire = await Wire.open({ isSilent: true });
    const clock = new FakeClock();
    const writing = wire.client({ clock }).update(ENDPOINTS, OBJECT);
    writing.catch(() => undefined);
    await until(() => wire.seen.length === 1);
    clock.advance(30_000);
    await expect(writing).rejects.toBeInstanceOf(TransportError);
    await expect(writing).rejects.toThrow(/^PUT .* took more than 30000 ms$/);
    expect(wire.requested).toEqual(['PUT <error>']);
  });

  test('a signal, before and while', async () => {
    await using wire = await Wire.open({ isSilent: true });
    const client = wire.client();
    const reason = new Error('stop');
    await expect(client.get(ENDPOINTS, KEY, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const stop = new AbortController();
    const reading = client.get(ENDPOINTS, KEY, { signal: stop.signal });
    await until(() => wire.seen.length === 1);
    stop.abort(reason);
    await expect(reading).rejects.toBe(reason);
  });

  test('a redirect, which is not followed', async () => {
    await using wire = await Wire.open({ code: 302, headers: { location: '/elsewhere' } });
    expect((await refusal(wire.client().get(ENDPOINTS, KEY))).code).toBe(302);
    expect(wire.seen).toHaveLength(1);
  });

  test('a name that no server has to give', async () => {
    const uid = 'u'.repeat(513);
    const item = { metadata: { name: 'a', namespace: 'x', uid, resourceVersion: '1' } };
    const body = JSON.stringify({ metadata: { resourceVersion: '1' }, items: [item] });
    await using wire = await Wire.open({ body });
    await expect(wire.client().list(ENDPOINTS)).rejects.toThrow('metadata.uid has more than 512 characters');
  });

  test('a response above the limit', async () => {
    await using wire = await Wire.open({
      body: JSON.stringify({ metadata: { name: 'a', annotations: { a: 'x'.repeat(5000) } } }),
    });
    await expect(wire.client({ responseBytesMax: 4000 }).get(ENDPOINTS, KEY)).rejects.toThrow(
      /larger than 4000 bytes/,
    );
  });

  test.each([
    ['no JSON', 'hello'],
    ['cut JSON', '{"metadata":{'],
    ['no object', '[]'],
    ['an object without metadata', '{}'],
  ])('a success that is %s', async (_, body) => {
    await using wire = await Wire.open({ body });
    await expect(wire.client().get(ENDPOINTS, KEY)).rejects.toBeInstanceOf(MalformedResponseError);
  });

  const stored = objectAt('/api/v1/namespaces/ns/endpoints/a');
  const foreign: [string, unknown][] = [
    ['of another kind', { ...stored, kind: 'Service' }],
    ['of another apiVersion', { ...stored, apiVersion: 'v2' }],
    ['without a kind', { ...stored, kind: undefined }],
    ['of another name', { ...stored, metadata: { ...stored.metadata, name: 'b' } }],
    ['of another namespace', { ...stored, metadata: { ...stored.metadata, namespace: 'other' } }],
    ['without a namespace', { ...stored, metadata: { ...stored.metadata, namespace: undefined } }],
    ['without a uid', { ...stored, metadata: { ...stored.metadata, uid: undefined } }],
    ['without a resourceVersion', { ...stored, metadata: { ...stored.metadata, resourceVersion: '' } }],
    ['with a version that is no text', { ...stored, metadata: { ...stored.metadata, resourceVersion: 7 } }],
    ['that is a Status of failure', { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' }],
  ];
  const requests: Record<string, (client: WatchClient) => Promise<unknown>> = {
    get: (client) => client.get(ENDPOINTS, KEY),
    create: (client) => client.create(ENDPOINTS, OBJECT),
    update: (client) => client.update(ENDPOINTS, OBJECT),
    patch: (client) => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} }),
    delete: (client) => client.delete(ENDPOINTS, KEY, {}),
  };

  test.each(foreign)('to any request about an object is rejected when it is an object %s', async (...row) => {
    const body = JSON.stringify(row[1]);
    for (const [verb, act] of Object.entries(requests)) {
      await using wire = await Wire.open({ body });
      const error = await act(wire.client()).catch((reason: unknown) => reason);
      expect([verb, error]).toEqual([verb, expect.any(MalformedResponseError)]);
    }
  });

  test('to a deletion is a Status of success, or the object', async () => {
    const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
    for (const answer of [success, stored]) {
      await using wire = await Wire.open({ body: JSON.stringify(answer) });
      expect(await wire.client().delete(ENDPOINTS, KEY, {})).toBeUndefined();
    }
  });

  test('to a dry run needs no resourceVersion', async () => {
    const unstored = {
      ...stored,
      metadata: { ...stored.metadata, uid: undefined, resourceVersion: undefined },
    };
    for (const verb of ['create', 'update', 'patch'] as const) {
      await using wire = await Wire.open({ body: JSON.stringify(unstored) });
      const client = wire.client();
      const options = { isDryRun: true };
      const dryRuns = {
        create: () => client.create(ENDPOINTS, OBJECT, options),
        update: () => client.update(ENDPOINTS, OBJECT, options),
        patch: () => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} }, options),
      };
      expect((await dryRuns[verb]()).metadata.name).toBe('a');
      expect(wire.seen[0]?.url).toMatch(/\?dryRun=All$/);
    }
  });

  test('to a dry run of a deletion has the option in its body, from which kube-apiserver reads it', async () => {
    await using wire = await Wire.open({ body: JSON.stringify(stored) });
    await wire.client().delete(ENDPOINTS, KEY, { uid: 'u' }, { isDryRun: true });
    expect(JSON.parse(String(wire.seen[0]?.body))).toMatchObject({
      kind: 'DeleteOptions',
      dryRun: ['All'],
      preconditions: { uid: 'u' },
    });
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
    let generation = 1;
    const access: ServerAccess = {
      ...plainAccess(url),
      credentials: {
        headers: () => ({ authorization: `Bearer t${generation}` }),
        certificate: () => undefined,
        invalidate: () => (generation += 1) <= 2,
      },
    };
    return { access, renewals: () => generation - 1 };
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

describe('a body in many chunks', () => {
  const annotations = { text: '€'.repeat(400_000) };
  const body = JSON.stringify({ items: [{ metadata: { name: 'a', annotations } }], metadata: {} });

  test.each([
    ['plain', { body }],
    ['compressed', { body: gzipSync(body), headers: { 'content-encoding': 'gzip' } }],
  ])('%s, is decoded across the characters that chunks cut', async (_, reply) => {
    await using wire = await Wire.open(reply);
    const { items } = await wire.client().list(ENDPOINTS);
    expect(items.map(({ metadata }) => metadata.annotations)).toEqual([annotations]);
  });
});

test('null for an empty list, as a kube-apiserver returns it, is the empty list', async () => {
  const metadata = { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1' };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    endpoints: null,
    ports: null,
  };
  const list = { metadata: { resourceVersion: '1' }, items: [{ metadata, endpoints: null, ports: [] }] };
  await using wire = await Wire.open({ body: JSON.stringify(slice) }, { body: JSON.stringify(list) });
  const client = wire.client();
  const empty = { endpoints: [], ports: [] };
  expect(await client.get(ENDPOINT_SLICES, { namespace: 'default', name: 'a' })).toMatchObject(empty);
  expect((await client.list(ENDPOINT_SLICES)).items).toMatchObject([empty]);
});

describe('compression', () => {
  test('is supported, with the limit applied to the decompressed body', async () => {
    const body = gzipSync(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
    const bomb = gzipSync(`{"metadata":{"resourceVersion":"${'1'.repeat(100_000)}"},"items":[]}`);
    const headers = { 'content-encoding': 'gzip' };
    await using wire = await Wire.open({ headers, body }, { headers, body: bomb });
    const client = wire.client({ responseBytesMax: 10_000 });
    expect(await client.list(ENDPOINTS)).toEqual({ resourceVersion: '1', continueToken: '', items: [] });
    await expect(client.list(ENDPOINTS)).rejects.toBeInstanceOf(TransportError);
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

test('a client with a rate reads no faster, whatever the server sends', async () => {
  const object = objectAt('/api/v1/namespaces/ns/endpoints/a');
  const body = JSON.stringify({ ...object, padding: 'x'.repeat(1_000_000) });
  await using wire = await Wire.open({ body });
  const clock = new FakeClock();
  const client = wire.client({ clock, pace: new TokenBucket({ burst: 100_000, perSecond: 100_000 }, clock) });
  let isRead = false;
  const reading = client.get(ENDPOINTS, KEY).finally(() => (isRead = true));
  while (!isRead) {
    await quiet();
    clock.advance(100);
  }
  await reading;
  expect(clock.monotonicMs()).toBeGreaterThan(8000);
});
