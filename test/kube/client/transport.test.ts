/** TLS connections: server verification, client certificates, renewal of files, and proxies. */

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { createServer as createProxy } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServerAccess } from '../../../src/kube/access.ts';
import { loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { listen } from '../../support/listen.ts';
import { testClient } from '../test-client.ts';

const CERTIFICATES = join(import.meta.dirname, '../certificates');
const ROOT = mkdtempSync(join(tmpdir(), 'tls-'));
const server: Server = createServer(
  {
    cert: readFileSync(join(CERTIFICATES, 'server.crt')),
    key: readFileSync(join(CERTIFICATES, 'server.key')),
    ca: readFileSync(join(CERTIFICATES, 'ca.crt')),
    requestCert: true,
    rejectUnauthorized: false,
  },
  (request, response) => {
    const subject = (request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? 'anonymous';
    response.end(JSON.stringify({ subject, protocol: request.httpVersion }));
  },
);

let port = 0;
beforeAll(async () => (port = await listen(server)));
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(ROOT, { recursive: true, force: true });
});

function writeKubeconfig(file: string, server: string, cluster: string, user = ''): void {
  writeFileSync(
    file,
    `clusters: [{name: c, cluster: {server: "${server}", ${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x`,
  );
}

function access(cluster: string, user = '', url = `https://127.0.0.1:${port}`): ServerAccess {
  const file = join(ROOT, 'config');
  writeKubeconfig(file, url, cluster, user);
  return loadClusterAccess({ kubeconfig: file, context: '' }, { clock: systemClock });
}

async function ask(from: ServerAccess, times = 1): Promise<unknown> {
  await using client = testClient(from);
  let answer: unknown;
  for (let i = 0; i < times; i++) answer = await client.request('GET', '/');
  return answer;
}

const TRUSTED = `certificate-authority: ${join(CERTIFICATES, 'ca.crt')}`;

describe('TLS', () => {
  test('trusts the authority of the kubeconfig, over HTTP/1.1', async () => {
    expect(await ask(access(TRUSTED), 3)).toEqual({ subject: 'anonymous', protocol: '1.1' });
  });

  test.each([
    [
      'another authority',
      `certificate-authority: ${join(CERTIFICATES, 'other-ca.crt')}`,
      /not signed by the authority in the kubeconfig/,
    ],
    ['no authority', 'a: b', /not signed by the authority in the kubeconfig/],
    ['another name', `${TRUSTED}, tls-server-name: elsewhere.test`, /certificate is for another name/],
  ])('with %s the request fails with the reason', async (_, cluster, message) => {
    await expect(ask(access(cluster))).rejects.toThrow(message);
  });

  test('trusts the certificate of the server, as an authority that another one has signed', async () => {
    const cluster = `certificate-authority: ${join(CERTIFICATES, 'server.crt')}`;
    expect(await ask(access(cluster))).toMatchObject({ subject: 'anonymous' });
  });

  test('verifies an address that is the name, which no handshake may carry', async () => {
    expect(await ask(access(`${TRUSTED}, tls-server-name: 127.0.0.1`))).toMatchObject({
      subject: 'anonymous',
    });
    await expect(ask(access(`${TRUSTED}, tls-server-name: 10.96.0.1`))).rejects.toThrow(
      /certificate is for another name/,
    );
  });

  test('is not verified with insecure-skip-tls-verify', async () => {
    expect(await ask(access('insecure-skip-tls-verify: true'))).toMatchObject({ subject: 'anonymous' });
  });

  test('sends a client certificate, and the current one on a new connection', async () => {
    const [cert, key] = [join(ROOT, 'client.crt'), join(ROOT, 'client.key')];
    const use = (name: string): void => {
      copyFileSync(join(CERTIFICATES, `${name}.crt`), cert);
      copyFileSync(join(CERTIFICATES, `${name}.key`), key);
    };
    use('client');
    const shown = access(TRUSTED, `client-certificate: ${cert}, client-key: ${key}`);
    expect(await ask(shown)).toMatchObject({ subject: 'client' });
    use('server');
    expect(await ask(shown)).toMatchObject({ subject: 'server' });
    rmSync(key);
    await expect(ask(shown)).rejects.toThrow(/client-key names a file that cannot be read/);
  });

  test('the error for a port without TLS gives the cause', async () => {
    const plain = createProxy((_, response) => response.end());
    const from = { ...access(TRUSTED), server: `https://127.0.0.1:${await listen(plain)}` };
    await expect(ask(from)).rejects.toThrow(/is this an https port|no response/);
    await new Promise((resolve) => plain.close(resolve));
  });
});

describe('a proxy', () => {
  test('gets a CONNECT request with its password', async () => {
    await using proxy = await startConnectProxy(port);
    const url = `http://me:p%40ss@127.0.0.1:${proxy.port}`;
    expect(await ask(access(`${TRUSTED}, proxy-url: "${url}"`))).toMatchObject({ subject: 'anonymous' });
    const password = Buffer.from('me:p@ss').toString('base64');
    expect(proxy.requests).toEqual([`127.0.0.1:${port} Basic ${password}`]);
  });

  test('is asked for an IPv6 address in brackets', async () => {
    await using proxy = await startConnectProxy(port);
    const cluster = `insecure-skip-tls-verify: true, proxy-url: "http://127.0.0.1:${proxy.port}"`;
    expect(await ask(access(cluster, '', 'https://[fd00::1]:6443'))).toMatchObject({ subject: 'anonymous' });
    expect(proxy.requests).toEqual(['[fd00::1]:6443']);
  });

  test('leads to a server without TLS', async () => {
    const plain = createProxy((_, response) => response.end('{"is":"plain"}'));
    await using proxy = await startConnectProxy(await listen(plain));
    const cluster = `proxy-url: "http://127.0.0.1:${proxy.port}"`;
    expect(await ask(access(cluster, '', 'http://api.test:8080'))).toEqual({ is: 'plain' });
    expect(proxy.requests).toEqual(['api.test:8080']);
    await new Promise((resolve) => plain.close(resolve));
  });

  test('that refuses the connection, and keeps its own open, is an error with the reason and leaves none open here', async () => {
    const proxy = createProxy();
    const closed = Promise.withResolvers<void>();
    proxy.on('connect', (_, client: Socket) => {
      client.on('end', () => client.destroy()).on('close', closed.resolve);
      client.resume().write('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n');
    });
    const refusing = access(`${TRUSTED}, proxy-url: "http://127.0.0.1:${await listen(proxy)}"`);
    await expect(ask(refusing)).rejects.toThrow(
      /proxy 127\.0\.0\.1:\d+ refused to connect to 127\.0\.0\.1:\d+: 407: correct proxy-url/,
    );
    await closed.promise;
    await new Promise((resolve) => proxy.close(resolve));
  });

  test.each([
    ['line feeds', '\r\n', /sent too long an answer/],
    ['a status line', 'HTTP/1.1 200 ', /cannot be reached \(HPE_HEADER_OVERFLOW\)/, 'x'],
    ['headers', 'HTTP/1.1 200 OK\r\n', /cannot be reached \(HPE_HEADER_OVERFLOW\)/, 'a: b\r\n'],
    ['informational responses', 'HTTP/1.1 103 Early Hints\r\n\r\n', /refused to connect to .*: 103/],
  ])('that answers with endless %s is left', async (_, first, message, more = first) => {
    const closed = Promise.withResolvers<void>();
    const proxy = createTcpServer((client) => {
      client.on('close', closed.resolve).on('error', () => undefined);
      client.write(first);
      const push = (): void => {
        while (!client.destroyed)
          if (!client.write(more.repeat(1000))) return void client.once('drain', push);
      };
      push();
    });
    const flooding = access(`${TRUSTED}, proxy-url: "http://127.0.0.1:${await listen(proxy)}"`);
    await expect(ask(flooding)).rejects.toThrow(message);
    await closed.promise;
    await new Promise((resolve) => proxy.close(resolve));
  });

  test('that is dead is not taken for a dead API server', async () => {
    await expect(ask(access(`${TRUSTED}, proxy-url: "http://127.0.0.1:1"`))).rejects.toThrow(
      /the proxy 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\): correct proxy-url in the kubeconfig or HTTPS_PROXY, or name the API server in NO_PROXY/,
    );
  });
});

test('a kubeconfig file that names another server, another authority or another user is followed', async () => {
  const clock = new FakeClock();
  const file = join(ROOT, 'followed');
  writeKubeconfig(file, 'https://127.0.0.1:1', TRUSTED);
  const followed = loadClusterAccess({ kubeconfig: file, context: '' }, { clock });
  await using client = testClient(followed);
  const asked = (): Promise<unknown> => client.request('GET', '/x');
  await expect(asked()).rejects.toThrow('connection refused');
  const wrong = `certificate-authority: ${join(CERTIFICATES, 'client.crt')}`;
  writeKubeconfig(file, `https://127.0.0.1:${port}`, wrong);
  clock.advance(2000);
  await expect(asked(), 'the next request reads the file').rejects.toThrow('connection refused');
  await expect(asked()).rejects.toThrow('not signed by the authority');
  writeKubeconfig(file, `https://127.0.0.1:${port}`, TRUSTED);
  clock.advance(2000);
  await asked().catch(() => undefined);
  expect(await asked()).toMatchObject({ subject: 'anonymous' });
  expect(followed.server).toBe(`https://127.0.0.1:${port}`);
});
