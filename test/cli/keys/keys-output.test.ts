/** The output of `keys create` in each format. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { newKeyText } from '../../../src/cli/keys/keys-output.ts';
import { startComposed } from '../../access-keys/composed-api.ts';

test('a kubeconfig sets a tls-server-name that the certificate contains', async () => {
  await using api = await startComposed();
  const certificate = readFileSync(join(api.dataDir, 'tls.crt'), 'utf8'); // of localhost and this machine
  const nameFor = (server: string): unknown => {
    const key = { metadata: { name: 'k' }, spec: { key: 'x' } };
    const text = newKeyText(key, 'kubeconfig', {
      server,
      trust: { kind: 'certificate', certificate },
      token: () => '',
      credential: '',
    });
    return (parse(text) as { clusters: [{ cluster: Record<string, unknown> }] }).clusters[0].cluster[
      'tls-server-name'
    ]; // just written
  };
  expect(nameFor('https://keys.internal.example.com:8443')).toMatch(/^[a-z]/u);
  expect(nameFor('https://127.0.0.1:8443')).toBeUndefined();
  expect(nameFor('https://localhost:8443')).toBeUndefined();
});
