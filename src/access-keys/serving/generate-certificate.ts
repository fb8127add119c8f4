/** Generates an authority and the serving certificate that it signs. ECDSA on P-256, which every client supports. */

import { createPrivateKey, createPublicKey, KeyObject, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import type * as X509 from '@peculiar/x509';
import type { TlsPair } from '../../apiserver/http/http-server.ts';

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

/** `previous`: the authority whose key and end of validity the new certificate has. */
export async function generateAuthority(nowMs: number, previous?: TlsPair): Promise<TlsPair> {
  const x509 = await loadX509();
  const keys = previous
    ? keyPair(previous.key)
    : await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=endpoint-syncer management API CA',
    keys,
    signingAlgorithm: SIGNING,
    ...validity(nowMs, AUTHORITY_DAYS),
    ...(previous ? { notAfter: new x509.X509Certificate(previous.cert).notAfter } : {}),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usages, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(certificate), key: privateKeyPem(keys.privateKey) };
}

function keyPair(key: string): webcrypto.CryptoKeyPair {
  return {
    privateKey: createPrivateKey(key).toCryptoKey(CURVE, true, ['sign']),
    publicKey: createPublicKey(key).toCryptoKey(CURVE, true, ['verify']),
  };
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
    ...validity(nowMs, SERVER_DAYS),
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

/** Starts an hour ago, because the clocks of clients differ. */
function validity(nowMs: number, days: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(nowMs - HOUR_MS), notAfter: new Date(nowMs + days * DAY_MS) };
}

function pem(certificate: { toString(format: 'pem'): string }): string {
  return `${certificate.toString('pem').trim()}\n`;
}

function privateKeyPem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString();
}
