/** Can a server serve with this certificate and key? */

import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import type { TlsPair } from '../../apiserver/http/http-server.ts';

/** What is wrong with the pair, without a word of its content; undefined: nothing. */
export function checkPair({ cert, key }: TlsPair): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    return 'the certificate file holds no PEM certificate';
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    return key.includes('ENCRYPTED')
      ? 'the key is encrypted: give it without a passphrase'
      : 'the key file holds no PEM private key';
  }
  if (!certificate.checkPrivateKey(privateKey)) return 'the key is not the one of the certificate';
  return undefined;
}
