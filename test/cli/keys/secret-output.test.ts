/** The mode of a file that a secret is redirected to. */

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { printSecret } from '../../../src/cli/keys/keys-output.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-secret-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

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
