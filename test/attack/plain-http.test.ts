/** No credential leaves over plain HTTP to another machine. A proxy that records all bytes stands in for the way there. */

import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { rmSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { hostReviews } from '../../src/access-keys/authorization/delegated-auth.ts';
import { plainAccess, takesCredentials, type ServerAccess } from '../../src/kube/access.ts';
import { kubeconfigFromSecret, loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { listen } from '../support/listen.ts';
import { base64, certificate, kubeconfig, put, ROOT } from '../kube/credentials/kubeconfig-files.ts';
import { testClient } from '../kube/test-client.ts';
import { keys } from '../cli/keys/keys-setup.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

const SECRET = 'Zqhunter2';
const ELSEWHERE = 'http://192.0.2.1:8080';

interface Recorder extends AsyncDisposable {
  readonly url: string;
  /** All that was sent, connection by connection. */
  readonly sent: string[];
}

/** Takes every connection, and answers each request in the place of the server with a 404. */
async function startRecorder(): Promise<Recorder> {
  const sent: string[] = [];
  const tunnels = new Set<Duplex>();
  const server = createServer();
  server.on('connect', (request, socket) => {
    tunnels.add(socket);
    const index = sent.push(`CONNECT ${request.url}\n`) - 1;
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      sent[index] += bytes.toString('latin1');
      socket.write('HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
    });
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    sent,
    async [Symbol.asyncDispose]() {
      for (const tunnel of tunnels) tunnel.destroy();
      await closed(server);
    },
  };
}

async function closed(server: Server | ReturnType<typeof createSecureServer>): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

const USERS = [`token: ${SECRET}`, `username: me, password: ${SECRET}`, `token: ${SECRET}, as: jane`];

/** Of a client that sends one request. */
const CLIENTS: readonly (readonly [what: string, access: (proxyUrl: string) => Promise<ServerAccess>])[] = [
  ...USERS.flatMap((user) =>
    [ELSEWHERE, '192.0.2.1:8080', 'Http://[2001:db8::1]:80/base'].map(
      (server) =>
        [
          `${user} of a kubeconfig for ${server}`,
          async (proxyUrl: string) => {
            const cluster = `server: "${server}", proxy-url: "${proxyUrl}"`;
            const source = { kubeconfig: put('plain/config', kubeconfig({ cluster, user })), context: '' };
            return loadClusterAccess(source, { clock: new FakeClock(), env: {}, warn: () => undefined });
          },
        ] as const,
    ),
  ),
  ['a token without a kubeconfig', async (proxyUrl) => ({ ...plainAccess(ELSEWHERE, SECRET), proxyUrl })],
  [
    'the token of a Secret whose server is replaced by the configuration',
    async (proxyUrl) => {
      const place = { namespace: 'ns', name: 'vc-x' };
      const data = { config: base64(kubeconfig({ user: `token: ${SECRET}` })) };
      const get = async () => ({ metadata: { ...place, resourceVersion: '1' }, data });
      const access = await kubeconfigFromSecret({ get }, place, {
        clock: new FakeClock(),
        server: ELSEWHERE,
        env: {},
      });
      return { ...access, server: access.server, proxyUrl };
    },
  ],
  [
    'a token that was read before its server changed',
    async (proxyUrl) => {
      let server = 'https://192.0.2.1';
      const headers = async () => {
        server = ELSEWHERE;
        return { authorization: `Bearer ${SECRET}` };
      };
      const { credentials, ...rest } = plainAccess(server);
      return {
        ...rest,
        get server() {
          return server;
        },
        proxyUrl,
        credentials: { ...credentials, headers },
      };
    },
  ],
];

describe('nothing of a credential is sent without TLS', () => {
  test.each(CLIENTS)('by a client: %s', async (_, access) => {
    await using recorder = await startRecorder();
    await using client = testClient(await access(recorder.url));
    await client.request('GET', '/api', undefined, { timeoutMs: 5000 }).catch(() => undefined);
    expect(recorder.sent.join(''), 'the request is sent').toContain('/api HTTP/1.1');
    expectNothingSecret(recorder);
  });

  test('in a review of the token of a caller', async () => {
    await using recorder = await startRecorder();
    await using client = testClient({ ...plainAccess(ELSEWHERE), proxyUrl: recorder.url });
    await expect(hostReviews(client).reviewToken(SECRET)).rejects.toThrow(/the host cluster did not review/);
    expect(recorder.sent).toEqual([]);
  });

  test.each(['the issuer', 'its token_endpoint'])(
    'to an identity provider, where %s is an http URL',
    async (what) => {
      await using recorder = await startRecorder();
      await using provider = await startProvider('http://192.0.2.3/token');
      vi.stubEnv('HTTP_PROXY', recorder.url);
      vi.stubEnv('NO_PROXY', '');
      const issuer = what === 'the issuer' ? 'http://192.0.2.3' : provider.url;
      const config = `idp-issuer-url: "${issuer}", client-id: me, client-secret: ${SECRET}, refresh-token: ${SECRET}, idp-certificate-authority-data: ${base64(certificate('ca.crt'))}`;
      const file = put(
        'plain/oidc',
        kubeconfig({ user: `auth-provider: {name: oidc, config: {${config}}}` }),
      );
      const { credentials } = loadClusterAccess(
        { kubeconfig: file, context: '' },
        { clock: new FakeClock(), env: {} },
      );
      await expect(credentials.headers()).rejects.toThrow(
        /192\.0\.2\.3.* its URL is not an https URL, and no credential is sent to another machine without TLS/,
      );
      expect(recorder.sent).toEqual([]);
    },
  );

  test.each([[[]], [['--token', SECRET]]])('by a command for keys: %j', async (flags) => {
    await using recorder = await startRecorder();
    const cluster = `server: "${ELSEWHERE}", proxy-url: "${recorder.url}"`;
    const file = put('plain/keys', kubeconfig({ cluster, user: `token: ${SECRET}` }));
    const { code, err } = await keys('list', '--kubeconfig', file, ...flags);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`${ELSEWHERE} is not an https URL, and no access key is sent`),
    ]);
    expect(recorder.sent).toEqual([]);
  });

  test.each([
    ['https://192.0.2.1', undefined, true],
    ['https://192.0.2.1', 'http://192.0.2.9:3128', true],
    ['http://127.0.0.1:8001', undefined, true],
    ['http://127.0.0.1:8001', 'http://127.0.0.1:3128', true],
    ['http://127.0.0.1:8001', 'http://192.0.2.9:3128', false],
    ['http://192.0.2.1', 'http://127.0.0.1:3128', false],
    ['http://127.0.0.1.example.com', undefined, false],
  ])('%s through %s takes credentials: %s', (server, proxyUrl, expected) => {
    expect(takesCredentials({ server, proxyUrl })).toBe(expected);
  });
});

function expectNothingSecret({ sent }: Recorder): void {
  const all = sent.join('');
  expect(all).not.toContain(SECRET);
  expect(all).not.toContain(base64(`me:${SECRET}`));
  expect(all.toLowerCase()).not.toContain('authorization:');
}

/** An identity provider with TLS, whose tokens are elsewhere. */
async function startProvider(tokenEndpoint: string): Promise<AsyncDisposable & { readonly url: string }> {
  const options = { cert: certificate('server.crt'), key: certificate('server.key') };
  const server = createSecureServer(options, (_, response) => {
    response.end(JSON.stringify({ token_endpoint: tokenEndpoint }));
  });
  return { url: `https://127.0.0.1:${await listen(server)}`, [Symbol.asyncDispose]: () => closed(server) };
}
