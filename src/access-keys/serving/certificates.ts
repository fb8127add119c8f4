/** The serving certificate: from files that may be replaced while the server runs, or self-signed. */

import { X509Certificate, createPrivateKey, KeyObject, webcrypto } from 'node:crypto';
import { readFile, chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type * as X509 from '@peculiar/x509';
import type { TlsPair } from '../../apiserver/http/http-server.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { codeOf, TerminalError, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';

export interface CertificateOptions {
  /** PEM, the chain beginning with the certificate of the server. `''` together with `keyFile`: self-signed. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Folder of the self-signed certificate and its authority (`ca.crt`). */
  readonly dataDir: string;
  /** The host that the server listens on; `''` is every address. */
  readonly host: string;
  /** Additional host names and IP addresses of the server. */
  readonly names?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Interval of reloads; the kubelet takes about a minute to update a mounted Secret. */
const RELOAD_INTERVAL_MS = 10_000;

interface Served {
  readonly pair: TlsPair;
  /** PEM of the authority that clients must trust, also in the file `ca.crt`; absent for a configured certificate. */
  readonly authority?: string;
}

/** Throws {@link TerminalError} if there is no valid certificate. */
export async function openServingCertificate(options: CertificateOptions): Promise<ServingCertificate> {
  const first = await load(options);
  warnOfValidity(first.pair, options);
  return new ServingCertificate(options, first);
}

export class ServingCertificate implements Disposable {
  /** See {@link Served}. */
  readonly authority: string | undefined;
  readonly #options: CertificateOptions;
  #pair: TlsPair;
  #listener: (pair: TlsPair) => void = () => undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  /** The last problem that was logged; it is logged once. */
  #problem = '';

  constructor(options: CertificateOptions, { pair, authority }: Served) {
    this.#options = options;
    this.#pair = pair;
    this.authority = authority;
    this.#scheduleReload();
  }

  get pair(): TlsPair {
    return this.#pair;
  }

  /** Calls the listener with every later pair; there is one listener. */
  onRenewal(listener: (pair: TlsPair) => void): void {
    this.#listener = listener;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #scheduleReload(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.schedule(RELOAD_INTERVAL_MS, () => {
      void this.#reload().finally(() => this.#scheduleReload());
    });
  }

  async #reload(): Promise<void> {
    const { logger } = this.#options;
    try {
      const { pair } = await load(this.#options);
      this.#problem = '';
      if (this.#isClosed || (pair.cert === this.#pair.cert && pair.key === this.#pair.key)) return;
      this.#listener(pair);
      this.#pair = pair;
      logger.info({ validTo: new X509Certificate(pair.cert).validTo }, 'serving with a new certificate');
      warnOfValidity(pair, this.#options);
    } catch (error) {
      const problem = messageOf(error);
      // The files of a pair are not replaced atomically; the old pair is served in the meantime.
      if (problem !== this.#problem) {
        logger.warn({ problem }, 'cannot use the new certificate, serving with the old one');
      }
      this.#problem = problem;
    }
  }
}

async function load(options: CertificateOptions): Promise<Served> {
  const { certFile, keyFile, dataDir, host, names, clock } = options;
  if (certFile === '' && keyFile === '') {
    return selfSigned(dataDir, servingNames(host, names), clock.now());
  }
  if (certFile === '' || keyFile === '') {
    throw new TerminalError('managementApi.tls needs both certFile and keyFile or neither');
  }
  const pair = { cert: await readNamed(certFile, 'certFile'), key: await readNamed(keyFile, 'keyFile') };
  const problem = checkPair(pair);
  if (problem !== undefined)
    throw new TerminalError(`managementApi.tls: ${problem} (${certFile}, ${keyFile})`);
  return { pair };
}

async function readNamed(path: string, field: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = codeOf(error) || 'unknown error';
    throw new TerminalError(
      `managementApi.tls.${field}: ${path} cannot be read (${code}): name a file that this user can read`,
      { cause: error },
    );
  }
}

function warnOfValidity({ cert }: TlsPair, { clock, logger }: CertificateOptions): void {
  const { validFrom, validTo } = new X509Certificate(cert);
  const nowMs = clock.now();
  if (Date.parse(validTo) <= nowMs) {
    logger.warn({ validTo }, 'the certificate has expired: clients will reject it');
  } else if (Date.parse(validFrom) > nowMs) {
    logger.warn({ validFrom }, 'the certificate is not valid yet: clients will reject it');
  }
}

// The self-signed serving certificate and its authority, which is kept so that clients keep their trust when the certificate is renewed.

/** Renewed this long before its expiry. */
const RENEW_BEFORE_MS = 30 * 24 * 3_600_000;

/** The certificate in `dataDir`, generated if it is missing, lacks a name, expires soon or is not valid yet. Throws {@link TerminalError}. */
export async function selfSigned(
  dataDir: string,
  names: readonly string[],
  nowMs: number,
): Promise<Required<Served>> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const authority = await openAuthority(dataDir, nowMs);
  const files = { cert: join(dataDir, 'tls.crt'), key: join(dataDir, 'tls.key') };
  const kept = { cert: await readText(files.cert), key: await readText(files.key) };
  if (isReusable(kept, authority, names, nowMs)) return { pair: kept, authority: authority.cert };
  const pair = await generateServerCertificate(authority, names, nowMs);
  await writePair(files, pair);
  return { pair, authority: authority.cert };
}

/** All names of this machine when it listens on `host`; `''` is every address. */
export function servingNames(host: string, more: readonly string[] = []): string[] {
  const names = new Set(['localhost', '127.0.0.1', '::1', hostname().toLowerCase()]);
  if (['', '0.0.0.0', '::'].includes(host)) {
    for (const addresses of Object.values(networkInterfaces())) {
      // A link-local address is ambiguous without its interface.
      for (const { address } of addresses ?? []) if (!address.startsWith('fe80:')) names.add(address);
    }
  } else {
    names.add(host.toLowerCase());
  }
  for (const name of more) names.add(name.toLowerCase());
  return [...names]
    .filter((name) => isIP(name) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name))
    .sort();
}

async function openAuthority(dataDir: string, nowMs: number): Promise<TlsPair> {
  const files = { cert: join(dataDir, 'ca.crt'), key: join(dataDir, 'ca.key') };
  const [cert, key] = [await readText(files.cert), await readText(files.key)];
  if (cert === '' && key === '') {
    const authority = await generateAuthority(nowMs);
    await writePair(files, authority);
    return authority;
  }
  const remedy =
    'restore both files from a backup, or remove both to generate a new authority, which every client must then trust';
  if (cert === '' || key === '') {
    const missing = cert === '' ? files.cert : files.key;
    throw new TerminalError(`${missing} is missing, but the other file of the authority exists: ${remedy}`);
  }
  const problem = checkPair({ cert, key });
  if (problem !== undefined) throw new TerminalError(`${files.cert}, ${files.key}: ${problem}: ${remedy}`);
  if (Date.parse(new X509Certificate(cert).validTo) <= nowMs) {
    throw new TerminalError(`${files.cert}: the authority has expired: ${remedy}`);
  }
  return { cert, key };
}

function isReusable(pair: TlsPair, authority: TlsPair, names: readonly string[], nowMs: number): boolean {
  if (checkPair(pair) !== undefined) return false;
  const certificate = new X509Certificate(pair.cert);
  const isFor = (name: string): boolean =>
    (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
  return (
    Date.parse(certificate.validTo) - RENEW_BEFORE_MS > nowMs &&
    Date.parse(certificate.validFrom) <= nowMs &&
    certificate.verify(new X509Certificate(authority.cert).publicKey) &&
    names.every(isFor)
  );
}

/** '' for a missing file. */
async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw new TerminalError(`${path} cannot be read: make it readable for this user`, { cause: error });
  }
}

/** The key first, because a certificate without its key is an error at the next start. */
async function writePair(files: TlsPair, pair: TlsPair): Promise<void> {
  try {
    await replaceFile(files.key, pair.key, 0o600);
    await replaceFile(files.cert, pair.cert, 0o644);
  } catch (error) {
    throw new TerminalError(
      `${files.cert} cannot be written (${messageOf(error)}): managementApi.dataDir must be writable`,
      { cause: error },
    );
  }
}

async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const next = `${path}.next`;
  await writeFile(next, text, { mode });
  await chmod(next, mode);
  await rename(next, path);
}

// Validation of a certificate and its key.

/** The problem with the pair, without its content; undefined: none. */
function checkPair({ cert, key }: TlsPair): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    return 'the certificate file contains no PEM certificate';
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    return key.includes('ENCRYPTED')
      ? 'the key is encrypted: store it without a passphrase'
      : 'the key file contains no PEM private key';
  }
  if (!certificate.checkPrivateKey(privateKey)) return 'the key does not match the certificate';
  return undefined;
}

// Generates an authority and the serving certificate that it signs. ECDSA on P-256, which every client supports.

const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_DAYS = 3650;
/** Browsers and Apple's libraries reject more than 825. */
const SERVER_DAYS = 365;

/** Loaded on demand: it takes a third of a second, and a server with a configured certificate does not need it. */
async function loadX509(): Promise<typeof X509> {
  // Its container reads type metadata of a polyfill, which it never writes, so returning none is correct.
  if (!('getMetadata' in Reflect)) {
    const nothing = (): undefined => undefined;
    Object.assign(Reflect, {
      getMetadata: nothing,
      getOwnMetadata: nothing,
      hasOwnMetadata: () => false,
      defineMetadata: nothing,
    });
  }
  return import('@peculiar/x509');
}

/** Valid from 1970 on: its beginning protects nothing, and a clock that was ahead would make it useless until then. */
export async function generateAuthority(nowMs: number): Promise<TlsPair> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=endpoint-syncer management API CA',
    keys,
    signingAlgorithm: SIGNING,
    notBefore: new Date(0),
    notAfter: new Date(nowMs + AUTHORITY_DAYS * DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usages, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(certificate), key: privateKeyPem(keys.privateKey) };
}

/** A certificate for these host names and IP addresses, signed by `authority`. */
export async function generateServerCertificate(
  authority: TlsPair,
  names: readonly string[],
  nowMs: number,
): Promise<TlsPair> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.cert);
  const signingKey = createPrivateKey(authority.key).toCryptoKey(CURVE, false, ['sign']);
  const keys = await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=endpoint-syncer management API',
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: SIGNING,
    // The clocks of clients differ.
    notBefore: new Date(nowMs - HOUR_MS),
    notAfter: new Date(nowMs + SERVER_DAYS * DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(certificate), key: privateKeyPem(keys.privateKey) };
}

function pem(certificate: { toString(format: 'pem'): string }): string {
  return `${certificate.toString('pem').trim()}\n`;
}

function privateKeyPem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString();
}
