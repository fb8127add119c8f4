/** The output of the type stripper is cached between starts. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stripTypes } from '../../src/expressions/guest-source.ts';

const TYPED = ['const a: number = 1;', "const b = 'x' as string;"];
const PLAIN = ['const a         = 1;', "const b = 'x'          ;"];
let folder = '';

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-stripped-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function onlyFile(): string {
  const [name = '', ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  return join(folder, name);
}

test('is cached and reused', () => {
  expect(stripTypes(TYPED, folder)).toEqual(PLAIN);
  const { mtimeMs } = statSync(onlyFile());
  expect(stripTypes(TYPED, folder)).toEqual(PLAIN);
  expect(statSync(onlyFile()).mtimeMs).toBe(mtimeMs);
});

test('is written again when it is incomplete', () => {
  stripTypes(TYPED, folder);
  const whole = readFileSync(onlyFile(), 'utf8');
  for (const damaged of [whole.slice(0, -3), whole.replace('const a', 'const z')]) {
    writeFileSync(onlyFile(), damaged);
    expect(stripTypes(TYPED, folder)).toEqual(PLAIN);
    expect(readFileSync(onlyFile(), 'utf8')).toBe(whole);
  }
});

test('is returned even if it cannot be cached', () => {
  expect(stripTypes(TYPED, join(folder, 'missing'))).toEqual(PLAIN);
  expect(readdirSync(folder)).toEqual([]);
});
