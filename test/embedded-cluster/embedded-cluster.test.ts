/** The embedded cluster: kubeconfig, discovery, namespaces, garbage collection, limits. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { type RawAnswer, RawClient } from '../contract/raw-client.ts';
import type { UserInfo } from '../../src/apiserver/user.ts';
import { TestCluster } from './test-cluster.ts';

const EP = '/api/v1/namespaces/default/endpoints';

describe('a cluster without a token, which a browser on this machine reaches', () => {
  const BODY = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web' } };
  const JSON_BODY = { 'content-type': 'application/json' };

  test.each<[string, string, Record<string, string>, number]>([
    ['the name of another site', 'GET', { host: 'attacker.example:80' }, 403],
    ['a page of another site', 'GET', { origin: 'https://attacker.example' }, 403],
    ['a page that reads from a file', 'POST', { origin: 'null', ...JSON_BODY }, 403],
    ['a page of this machine', 'POST', { origin: 'http://127.0.0.1:8090', ...JSON_BODY }, 403],
    ['a body without a type', 'POST', {}, 415],
    ['a client', 'POST', JSON_BODY, 201],
  ])('%s: %s', async (_what, method, headers, status) => {
    await using cluster = await TestCluster.open();
    expect(await statusOf(cluster, method, headers)).toBe(status);
  });

  test('a client that uses its name', async () => {
    await using cluster = await TestCluster.open();
    const host = new URL(cluster.embedded.url).host.replace('127.0.0.1', 'localhost');
    expect(await statusOf(cluster, 'GET', { host })).toBe(200);
  });

  /** `fetch` sets Host and Content-Type itself. */
  async function statusOf(
    { embedded }: TestCluster,
    method: string,
    headers: Record<string, string>,
  ): Promise<number | undefined> {
    const asked = request(`${embedded.url}${EP}`, { method, headers });
    asked.end(method === 'GET' ? undefined : JSON.stringify(BODY));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  }
});

describe('a new cluster', () => {
  test('has a kubeconfig', async () => {
    await using cluster = await TestCluster.open({ name: 'a "name"' });
    expect(parse(cluster.embedded.kubeconfig)).toMatchObject({
      kind: 'Config',
      'current-context': 'a "name"',
      clusters: [{ name: 'a "name"', cluster: { server: cluster.embedded.url } }],
    });
    expect(cluster.embedded.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });

  test('has the namespaces and the Service that every cluster has', async () => {
    await using cluster = await TestCluster.open();
    const { items } = (await cluster.send('GET', '/api/v1/namespaces')).json as unknown as {
      items: JsonObject[];
    }; // a list
    expect(items.map((item) => (item['metadata'] as JsonObject)['name'])).toEqual([
      'default',
      'kube-node-lease',
      'kube-public',
      'kube-system',
    ]);
    expect((await cluster.send('GET', '/api/v1/namespaces/default/services/kubernetes')).status).toBe(200);
  });

  test.each(['/healthz', '/livez', '/readyz', '/readyz?verbose'])('%s responds with ok', async (path) => {
    await using cluster = await TestCluster.open();
    expect(await cluster.send('GET', path)).toMatchObject({ status: 200, text: 'ok' });
  });

  test('reports its version', async () => {
    await using cluster = await TestCluster.open();
    expect((await cluster.send('GET', '/version')).json).toMatchObject({ major: '1', minor: '37' });
  });

  test.each(['/nope', '/apis/x.y/v1', '/apis/nope', '/api/v2', '/openapi/v3/nope', '/api/v1/%zz', '//'])(
    '%s is a Status with 404',
    async (path) => {
      await using cluster = await TestCluster.open();
      expect((await cluster.send('GET', path)).json).toMatchObject({
        kind: 'Status',
        code: 404,
        reason: 'NotFound',
      });
    },
  );
});

describe('impersonation', () => {
  test.each(['impersonate-user', 'impersonate-group', 'impersonate-uid', 'impersonate-extra-scopes'])(
    '%s is rejected, not ignored: the response would exceed the rights of the impersonated user',
    async (header) => {
      await using cluster = await TestCluster.open();
      const answer = await cluster.send('GET', EP, undefined, { [header]: 'alice' });
      expect(answer.json).toMatchObject({ kind: 'Status', code: 403, reason: 'Forbidden' });
      expect(answer.text).toContain('impersonation is not supported');
      expect((await cluster.send('GET', '/apis', undefined, { [header]: 'alice' })).status).toBe(200);
    },
  );
});

describe('discovery', () => {
  test('is equal in both forms', async () => {
    await using cluster = await TestCluster.open();
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
    for (const root of ['/api', '/apis']) {
      const answer = await cluster.send('GET', root, undefined, { accept });
      expect(answer.headers.get('content-type')).toContain('as=APIGroupDiscoveryList');
      const { items } = answer.json as unknown as {
        items: {
          metadata: { name?: string };
          versions: { version: string; resources: { resource: string; verbs: string[] }[] }[];
        }[];
      }; // the aggregated document
      for (const { metadata, versions } of items) {
        for (const { version, resources } of versions) {
          const path = metadata.name === undefined ? `/api/${version}` : `/apis/${metadata.name}/${version}`;
          const plain = (await cluster.send('GET', path)).json as unknown as {
            resources: { name: string; verbs: string[] }[];
          }; // a list
          const whole = plain.resources.filter(({ name }) => !name.includes('/'));
          expect(whole.map(({ name, verbs }) => ({ resource: name, verbs }))).toEqual(
            resources.map(({ resource, verbs }) => ({ resource, verbs })),
          );
        }
      }
    }
  });
});

describe('protobuf bodies', () => {
  /** What `kubectl create namespace demo` sends: an envelope with the type, then the object. */
  const namespace = Buffer.concat([
    Buffer.from('k8s\0'),
    Buffer.from([0x0a, 0x0f, 0x0a, 0x02]),
    Buffer.from('v1'),
    Buffer.from([0x12, 0x09]),
    Buffer.from('Namespace'),
    Buffer.from([0x12, 0x08, 0x0a, 0x06, 0x0a, 0x04]),
    Buffer.from('demo'),
  ]);

  async function post(cluster: TestCluster, bytes: Buffer): Promise<Response> {
    return fetch(`${cluster.embedded.url}/api/v1/namespaces`, {
      method: 'POST',
      headers: {
        'content-type': 'application/vnd.kubernetes.protobuf',
        accept: 'application/vnd.kubernetes.protobuf,application/json',
      },
      body: new Uint8Array(bytes),
    });
  }

  test('are decoded, with responses in JSON', async () => {
    await using cluster = await TestCluster.open();
    const answer = await post(cluster, namespace);
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ kind: 'Namespace', metadata: { name: 'demo' } });
  });

  test('that are truncated or invalid are rejected', async () => {
    await using cluster = await TestCluster.open();
    for (let length = 0; length < namespace.length; length++) {
      const answer = await post(cluster, namespace.subarray(0, length));
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    }
  });
});

describe('rights', () => {
  test('are those of the authorizer, for requests and for reviews', async () => {
    const authorizer = {
      authorize: (_user: UserInfo, request: { verb: string; resource: string }) => ({
        isAllowed: request.verb !== 'delete' || request.resource !== 'endpoints',
        reason: '',
      }),
    };
    await using cluster = await TestCluster.open({ authorizer });
    expect((await cluster.send('DELETE', `${EP}/x`)).json).toMatchObject({ code: 403, reason: 'Forbidden' });
    const review = (verb: string): Promise<RawAnswer> =>
      cluster.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        spec: { resourceAttributes: { verb, resource: 'endpoints', namespace: 'default' } },
      });
    expect((await review('delete')).json).toMatchObject({ status: { allowed: false } });
    expect((await review('get')).json).toMatchObject({ status: { allowed: true } });
  });

  test('require the token if there is one', async () => {
    await using cluster = await TestCluster.open({ token: 'right' }, 'wrong');
    expect((await cluster.send('GET', '/api/v1/namespaces')).json).toMatchObject({
      code: 401,
      reason: 'Unauthorized',
    });
    await using client = new RawClient({ url: cluster.embedded.url, token: 'right' });
    expect((await client.send({ method: 'GET', path: '/api/v1/namespaces' })).status).toBe(200);
  });
});

test('a compacted history is expired', async () => {
  await using cluster = await TestCluster.open();
  const list = await cluster.send('GET', EP);
  const { resourceVersion } = (list.json ?? {})['metadata'] as { resourceVersion: string }; // a list
  await cluster.send('POST', EP, { metadata: { name: 'x' } });
  await cluster.embedded.expireHistory();
  await using watch = await cluster.client.watch(`${EP}?watch=1&resourceVersion=${resourceVersion}`);
  expect(await watch.next()).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
});

describe('hostile requests', () => {
  test('with a body above 3 MiB are rejected', async () => {
    await using cluster = await TestCluster.open();
    const answer = await cluster.send('POST', EP, {
      metadata: { name: 'x', annotations: { a: 'x'.repeat(3 * 1024 * 1024) } },
    });
    expect(answer.json).toMatchObject({
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: limit is 3145728',
    });
  });

  test.each([
    ['nested too deep', `{"metadata":{"name":"x"},"subsets":${'['.repeat(5000)}${']'.repeat(5000)}}`],
    ['with a key called __proto__', '{"metadata":{"name":"x"},"__proto__":{"polluted":1},"subsets":"x"}'],
    ['that is no object', '"x"'],
    ['with null bytes', '{"metadata":{"name":"a\\u0000b"}}'],
    ['with a huge number', '{"metadata":{"name":"x"},"subsets":[{"ports":[{"port":1e400}]}]}'],
  ])('%s are an error of the client', async (_what, body) => {
    await using cluster = await TestCluster.open();
    const answer = await cluster.send('POST', EP, body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(answer.json?.['kind']).toBe('Status');
    expect(answer.text).not.toContain('at ');
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  test('with a YAML bomb are an error of the client', async () => {
    await using cluster = await TestCluster.open();
    const lines = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
    for (const [name, of] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf', 'hg'].map((pair) => pair.split(''))) {
      lines.push(`${name}: &${name} [${Array(10).fill(`*${of}`).join(',')}]`);
    }
    const answer = await cluster.send('POST', EP, lines.join('\n'), { 'content-type': 'application/yaml' });
    expect(answer.json).toMatchObject({ kind: 'Status', code: 400 });
  });

  test('that are not HTTP do not disturb other connections', async () => {
    await using cluster = await TestCluster.open();
    const { port } = new URL(cluster.embedded.url);
    const closed = new Promise((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('\0\0\0nonsense\r\n\r\n'));
      socket
        .on('close', resolve)
        .on('error', () => undefined)
        .resume();
    });
    await closed;
    expect((await cluster.send('GET', '/healthz')).status).toBe(200);
  });

  test('with headers above the limit are rejected', async () => {
    await using cluster = await TestCluster.open();
    const answer = await cluster.send('GET', '/healthz', undefined, { 'x-big': 'x'.repeat(40_000) });
    expect(answer.status).toBe(431);
  });
});
