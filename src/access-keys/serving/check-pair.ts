/** Validation of a certificate and its key. */

import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import type { TlsPair } from '../../apiserver/http/http-server.ts';

/** The problem with the pair, without its content; undefined: none. */
export function checkPair({ cert, key }: TlsPair): string | undefined {
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
