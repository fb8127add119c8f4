/** OpenSSL, another TLS implementation than the one that generates them, verifies the self-signed certificates. */

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { selfSigned, servingNames } from '../../src/access-keys/serving/certificates.ts';

test('openssl verifies the chain', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'endpoint-syncer-chain-'));
  try {
    await selfSigned(dataDir, servingNames('127.0.0.1'), Date.now());
    const verify = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', join(dataDir, 'ca.crt')];
    const output = execFileSync('openssl', [...verify, join(dataDir, 'tls.crt')], { encoding: 'utf8' });
    expect(output).toContain('OK');
  } finally {
    await rm(dataDir, { recursive: true });
  }
});
