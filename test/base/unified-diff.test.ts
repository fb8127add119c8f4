/** Unified diffs: what `diff -u` prints, and `patch` understands. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { unifiedHunks } from '../../src/base/unified-diff.ts';
import { costlyRuns } from '../support/costly-runs.ts';

const lines = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd: 1', ''), { maxLength: 25 })
  .map((list) => list.map((line) => `${line}\n`).join(''));

/** Applies hunks the way `patch` does, without any leniency. */
function applied(before: string, hunks: string): string {
  const source = before.split('\n').slice(0, -1);
  const result: string[] = [];
  let at = 0;
  for (const line of hunks.split('\n').slice(0, -1)) {
    const header = /^@@ -(\d+)(?:,(\d+))? \+/.exec(line);
    if (header !== null) {
      const first = Number(header[1]) - (header[2] === '0' ? 0 : 1);
      while (at < first) result.push(source[at++] ?? '');
    } else if (line.startsWith('+')) result.push(line.slice(1));
    else {
      if (source[at] !== line.slice(1)) throw new Error(`line ${at} is not ${line}`);
      if (line.startsWith(' ')) result.push(line.slice(1));
      at++;
    }
  }
  result.push(...source.slice(at));
  return result.map((line) => `${line}\n`).join('');
}

describe('unified diff', () => {
  test('of equal texts is empty', () => {
    expect(unifiedHunks('a\n', 'a\n')).toBe('');
  });

  test('distant changes are separate hunks with three lines of context', () => {
    const numbered = Array.from({ length: 20 }, (_, i) => `${i}\n`);
    const changed = numbered.with(2, 'x\n').with(17, 'y\n').join('');
    expect(unifiedHunks(numbered.join(''), changed)).toBe(
      '@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+x\n 3\n 4\n 5\n@@ -15,6 +15,6 @@\n 14\n 15\n 16\n-17\n+y\n 18\n 19\n',
    );
  });

  test('a text that appears or disappears', () => {
    expect(unifiedHunks('', 'a\nb\n')).toBe('@@ -0,0 +1,2 @@\n+a\n+b\n');
    expect(unifiedHunks('a\n', '')).toBe('@@ -1 +0,0 @@\n-a\n');
  });

  test('a last line without a line break is marked as one', () => {
    const mark = '\\ No newline at end of file';
    expect(unifiedHunks('a\nb', 'a\nc\n')).toBe(`@@ -1,2 +1,2 @@\n a\n-b\n${mark}\n+c\n`);
    expect(unifiedHunks('a\nb', 'c\nb')).toBe(`@@ -1,2 +1,2 @@\n-a\n+c\n b\n${mark}\n`);
  });

  test('applied to the first text, it results in the second', () => {
    fc.assert(
      fc.property(lines, lines, (a, b) => {
        expect(applied(a, unifiedHunks(a, b))).toBe(b);
      }),
      { numRuns: 500 },
    );
  });

  test('thousands of changed lines are shown as replaced, without a quadratic comparison', () => {
    const numbered = (from: number): string =>
      Array.from({ length: 6000 }, (_, i) => `${from + i}\n`).join('');
    const before = process.threadCpuUsage().user;
    const hunks = unifiedHunks(numbered(0), numbered(100_000));
    expect(applied(numbered(0), hunks)).toBe(numbered(100_000));
    // Microseconds of processor time; a quadratic comparison takes minutes.
    expect(process.threadCpuUsage().user - before).toBeLessThan(20e6);
  });

  test('diff -u counts the same changed lines', () => {
    const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-diff-'));
    const [one, two] = [join(folder, 'one'), join(folder, 'two')];
    fc.assert(
      fc.property(lines, lines, (a, b) => {
        writeFileSync(one, a);
        writeFileSync(two, b);
        const output = execFileSync('sh', ['-c', `diff -d -u "${one}" "${two}" || true`], {
          encoding: 'utf8',
        });
        const count = (text: string): number =>
          text.split('\n').filter((line) => /^[-+](?![-+]{2} )/.test(line)).length;
        expect(count(unifiedHunks(a, b))).toBe(count(output));
      }),
      { numRuns: costlyRuns(40) },
    );
    rmSync(folder, { recursive: true });
  });
});
