/** The output of `keys create` in each format. */

import { readFileSync, closeSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseYaml } from '../../../src/base/yaml/document.ts';
import { newKeyText, printSecret } from '../../../src/cli/keys/keys-options.ts';
import { startComposed } from '../../access-keys/composed-api.ts';
import { testFolder } from '../../support/test-folder.ts';

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

test.each(['on', '1e10', '0x1F', '017', 'y'])(
  'what is printed of a key called %s is read as it is',
  (name) => {
    const key = { metadata: { name }, spec: { key: '0123456789' } };
    const connection = {
      server: 'https://a',
      trust: { kind: 'authorities', ca: undefined },
      token: () => '',
      credential: '',
    } as const;
    expect(parseYaml(newKeyText(key, 'yaml', connection)).json).toEqual(key);
    expect(parseYaml(newKeyText(key, 'kubeconfig', connection)).json).toMatchObject({
      contexts: [{ name }],
      users: [{ name, user: { token: '0123456789' } }],
    });
  },
);

// The mode of a file that a secret is redirected to.

const { folder } = testFolder();

test.each([
  [0o644, 0o600],
  [0o666, 0o600],
  [0o600, 0o600],
  [0o400, 0o400],
  [0o755, 0o700],
])('a file of mode %o: %o, before the secret is in it', (mode, expected) => {
  const file = join(folder, mode.toString(8));
  const umask = process.umask(0);
  const fd = openSync(file, 'w', mode);
  process.umask(umask);
  const modes: number[] = [];
  const write = (text: string): void => {
    modes.push(statSync(file).mode & 0o777);
    writeSync(fd, text);
  };
  printSecret('the secret', { fd, write });
  closeSync(fd);
  expect([modes, readFileSync(file, 'utf8')]).toEqual([[expected], 'the secret']);
});

test('the mode of a device is not changed', () => {
  const fd = openSync('/dev/null', 'w');
  const before = statSync('/dev/null').mode;
  const written: string[] = [];
  printSecret('the secret', { fd, write: (text) => written.push(text) });
  closeSync(fd);
  expect([written, statSync('/dev/null').mode]).toEqual([['the secret'], before]);
});
