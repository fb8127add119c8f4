/** Certificates: generated, stored, renewed, reloaded, rejected; and a TLS server that serves with them. */

import { X509Certificate } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHttpServer, rejectAndClose, type TlsPair } from '../../../src/apiserver/http/http-server.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { TerminalError } from '../../../src/base/errors.ts';
import {
  openServingCertificate,
  type CertificateOptions,
  type ServingCertificate,
  generateAuthority,
  generateServerCertificate,
  selfSigned,
  servingNames,
} from '../../../src/access-keys/serving/certificates.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.now();
let folder: string;
let given: TlsPair;
let other: TlsPair;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'certificates-'));
  const authority = await generateAuthority(NOW_MS);
  given = await generateServerCertificate(authority, ['one.example'], NOW_MS);
  other = await generateServerCertificate(authority, ['two.example'], NOW_MS);
});
afterAll(() => rm(folder, { recursive: true }));

let count = 0;
const freshFolder = (): string => join(folder, `data-${count++}`);

function options(more: Partial<CertificateOptions> = {}): CertificateOptions {
  const base = { certFile: '', keyFile: '', dataDir: freshFolder(), host: '127.0.0.1' };
  return { ...base, clock: new FakeClock(NOW_MS), logger: silentLogger, ...more };
}

async function writeGiven(pair: TlsPair): Promise<{ certFile: string; keyFile: string }> {
  const at = freshFolder();
  const files = { certFile: `${at}.crt`, keyFile: `${at}.key` };
  await writeFile(files.certFile, pair.cert);
  await writeFile(files.keyFile, pair.key);
  return files;
}

/** Moves the clock until `isDone`; reading files takes turns of the event loop. */
async function advanceUntil(clock: FakeClock, isDone: () => boolean, stepMs = 10_000): Promise<void> {
  const endMs = Date.now() + 60_000;
  while (!isDone() && Date.now() < endMs) {
    // The next look is scheduled when the files of the one before have been read.
    if (clock.nextDelayMs !== undefined) clock.advance(stepMs);
    await settle();
  }
}

describe('self-signed', () => {
  test('an authority of ten years signs for every name of the machine', async () => {
    using certificate = await openServingCertificate(
      options({ host: '10.1.2.3', names: ['api.example.com'] }),
    );
    const authority = new X509Certificate(certificate.authority ?? '');
    const server = new X509Certificate(certificate.pair.cert);
    expect(authority.ca).toBe(true);
    expect(server.ca).toBe(false);
    expect(server.verify(authority.publicKey)).toBe(true);
    expect(server.checkIssued(authority)).toBe(true);
    expect(Date.parse(authority.validTo) - NOW_MS).toBeGreaterThan(3640 * DAY_MS);
    expect(Date.parse(server.validTo) - NOW_MS).toBeLessThan(400 * DAY_MS);
    for (const name of ['localhost', 'api.example.com']) expect(server.checkHost(name)).toBe(name);
    for (const ip of ['127.0.0.1', '::1', '10.1.2.3']) expect(server.checkIP(ip)).toBe(ip);
    expect(authority.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  test('keys are readable by their owner only', async () => {
    const dataDir = freshFolder();
    await selfSigned(dataDir, ['localhost'], NOW_MS);
    for (const key of ['ca.key', 'tls.key']) {
      expect((await stat(join(dataDir, key))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
  });

  test('an existing certificate is kept; other names, an imminent expiry and a lost file cause a new one of the same authority', async () => {
    const dataDir = freshFolder();
    const first = await selfSigned(dataDir, ['localhost'], NOW_MS);
    const again = await selfSigned(dataDir, ['localhost'], NOW_MS + 300 * DAY_MS);
    expect(again).toEqual(first);
    const named = await selfSigned(dataDir, ['localhost', 'api.example.com'], NOW_MS);
    const late = await selfSigned(dataDir, ['localhost'], NOW_MS + 340 * DAY_MS);
    await rm(join(dataDir, 'tls.key'));
    const lost = await selfSigned(dataDir, ['localhost'], NOW_MS);
    const certs = [first, named, late, lost].map(({ pair }) => pair.cert);
    expect(new Set(certs).size).toBe(4);
    expect([named, late, lost].every(({ authority }) => authority === first.authority)).toBe(true);
  });

  test('a certificate is renewed before it expires, and listeners are notified', async () => {
    const clock = new FakeClock(NOW_MS);
    const dataDir = freshFolder();
    using certificate = await openServingCertificate(options({ clock, dataDir }));
    const renewed: TlsPair[] = [];
    certificate.onRenewal((pair) => renewed.push(pair));
    await advanceUntil(clock, () => renewed.length > 0, DAY_MS);
    expect(clock.now() - NOW_MS).toBeLessThan(365 * DAY_MS);
    expect(renewed).toEqual([certificate.pair]);
    const latest = new X509Certificate(certificate.pair.cert);
    expect(Date.parse(latest.validTo)).toBeGreaterThan(clock.now() + 300 * DAY_MS);
  });

  test('of a clock that was ahead, the authority stays valid and the certificate is replaced', async () => {
    const dataDir = freshFolder();
    const ahead = await selfSigned(dataDir, ['localhost'], NOW_MS + 400 * DAY_MS);
    using certificate = await openServingCertificate(options({ dataDir }));
    const server = new X509Certificate(certificate.pair.cert);
    const authority = new X509Certificate(ahead.authority);
    for (const { validFrom } of [server, authority]) expect(Date.parse(validFrom)).toBeLessThan(NOW_MS);
    expect(certificate.authority).toBe(ahead.authority);
    expect(server.checkIssued(authority)).toBe(true);
    expect(server.verify(authority.publicKey)).toBe(true);
  });

  test.each(['ca.crt', 'ca.key'])('half an authority (no %s) is not silently replaced', async (file) => {
    const dataDir = freshFolder();
    await selfSigned(dataDir, ['localhost'], NOW_MS);
    await rm(join(dataDir, file));
    const failed = selfSigned(dataDir, ['localhost'], NOW_MS);
    await expect(failed).rejects.toThrow(new RegExp(`${file} is missing, .* remove both`));
    await expect(failed).rejects.toBeInstanceOf(TerminalError);
  });

  test('an authority that has expired or does not match its key is not silently replaced', async () => {
    const dataDir = freshFolder();
    await selfSigned(dataDir, ['localhost'], NOW_MS);
    await expect(selfSigned(dataDir, ['localhost'], NOW_MS + 3651 * DAY_MS)).rejects.toThrow(/has expired/);
    await writeFile(join(dataDir, 'ca.key'), given.key);
    await expect(selfSigned(dataDir, ['localhost'], NOW_MS)).rejects.toThrow(
      /does not match the certificate/,
    );
  });

  test('the certificate of a server on every address names every address', () => {
    expect(servingNames('0.0.0.0')).toEqual(expect.arrayContaining(['localhost', '127.0.0.1', '::1']));
    expect(servingNames('', ['Api.Example.com', 'not a name'])).toContain('api.example.com');
    expect(servingNames('', ['not a name'])).not.toContain('not a name');
  });
});

describe('files', () => {
  test('are reloaded: listeners are notified of a new pair, half a pair is ignored', async () => {
    const clock = new FakeClock(NOW_MS);
    const files = await writeGiven(given);
    using certificate = await openServingCertificate(options({ ...files, clock }));
    const renewed: TlsPair[] = [];
    certificate.onRenewal((pair) => renewed.push(pair));
    expect(certificate.pair).toEqual(given);
    expect(certificate.authority).toBeUndefined();
    await writeFile(files.certFile, other.cert);
    clock.advance(10_000);
    await advanceUntil(clock, () => clock.nextDelayMs !== undefined);
    expect(certificate.pair).toEqual(given);
    await writeFile(files.keyFile, other.key);
    await advanceUntil(clock, () => renewed.length > 0);
    expect(renewed).toEqual([other]);
    expect(certificate.pair).toEqual(other);
  });

  test.each([
    [
      'no such file',
      async () => ({ ...(await writeGiven(given)), certFile: '/nowhere/tls.crt' }),
      /tls\.certFile: \/nowhere\/tls\.crt cannot be read \(ENOENT\)/,
    ],
    ['no certificate', async () => writeGiven({ ...given, cert: 'x' }), /contains no PEM certificate/],
    ['no key', async () => writeGiven({ ...given, key: 'x' }), /contains no PEM private key/],
    ['another key', async () => writeGiven({ ...given, key: other.key }), /does not match the certificate/],
    [
      'an encrypted key',
      async () =>
        writeGiven({
          ...given,
          key: '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n',
        }),
      /without a passphrase/,
    ],
    ['one of two', async () => ({ ...(await writeGiven(given)), keyFile: '' }), /both certFile and keyFile/],
  ])('%s: an error that names the file', async (_name, files, message) => {
    const failed = openServingCertificate(options(await files()));
    await expect(failed).rejects.toBeInstanceOf(TerminalError);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow(/PRIVATE/);
  });
});

describe('a TLS server', () => {
  test('serves 1.2 and 1.3, nothing older, and a new pair to new connections', async () => {
    using certificate: ServingCertificate = await openServingCertificate(options());
    const server = await openHttpServer(
      (_request, response) => rejectAndClose(response, failure(404, 'NotFound', 'no')),
      {
        tls: certificate.pair,
      },
    );
    const ca = certificate.authority ?? '';
    expect(await handshake(server.address, { ca, maxVersion: 'TLSv1.2' })).toMatchObject({
      protocol: 'TLSv1.2',
    });
    const first = await handshake(server.address, { ca });
    expect(first).toMatchObject({ protocol: 'TLSv1.3', isTrusted: true });
    await expect(
      handshake(server.address, {
        ca,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT:@SECLEVEL=0',
      }),
    ).rejects.toThrow(/alert|protocol|version|reset/i);
    // Without authentication of the ciphertext, and without forward secrecy.
    for (const ciphers of ['ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA', 'AES128-GCM-SHA256']) {
      const old = handshake(server.address, { ca, maxVersion: 'TLSv1.2', ciphers });
      await expect(old).rejects.toThrow(/alert|handshake|reset/i);
    }
    server.renewTls(given);
    expect((await handshake(server.address, { ca, servername: 'one.example' })).fingerprint).toBe(
      new X509Certificate(given.cert).fingerprint256,
    );
    await server.close();
  });

  test.each<[string, boolean]>([
    ['rejects the certificate', true],
    ['ends without a handshake', false],
  ])('forgets a client that %s', async (_what, isTls) => {
    const server = await openHttpServer(() => undefined, { tls: given });
    const port = Number(server.address.split(':')[1]);
    const client = isTls ? connect({ host: '127.0.0.1', port }) : connectPlain({ host: '127.0.0.1', port });
    await new Promise((resolve) => client.once(isTls ? 'error' : 'connect', resolve));
    client.end();
    await expect.poll(() => server.connections).toBe(0);
    await server.close();
  });

  test('does not wait for a handshake when it closes, but for a response to a client that has ended its side', async () => {
    const pending: ServerResponse[] = [];
    const server = await openHttpServer((_request, response) => void pending.push(response), {
      tls: given,
      drainMs: 3_600_000,
    });
    const port = Number(server.address.split(':')[1]);
    const silent = connectPlain({ host: '127.0.0.1', port });
    const socket = connectPlain({ host: '127.0.0.1', port, allowHalfOpen: true });
    const asking = connect({ socket, rejectUnauthorized: false });
    const received: string[] = [];
    asking.setEncoding('utf8').on('data', (piece: string) => received.push(piece));
    asking.end('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await expect.poll(() => [server.connections, pending.length]).toEqual([2, 1]);
    const closing = server.close();
    await new Promise((resolve) => silent.once('close', resolve));
    pending[0]?.end('late');
    await closing;
    await expect.poll(() => received.join('')).toContain('late');
  });
});

interface Handshake {
  readonly protocol: string | null;
  readonly fingerprint: string;
  readonly isTrusted: boolean;
}

function handshake(address: string, more: object): Promise<Handshake> {
  const [host, port] = address.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ...more });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const { fingerprint256 }: DetailedPeerCertificate = socket.getPeerCertificate(true);
      resolve({ protocol: socket.getProtocol(), fingerprint: fingerprint256, isTrusted: socket.authorized });
      socket.destroy();
    });
  });
}
