/** The comparison of command output with console blocks of the documentation. */

import { describe, expect, test } from 'vitest';
import { isAsDocumented } from './output.ts';
import { commandsIn } from './page.ts';

describe('output is as documented', () => {
  test.each([
    ['a\nb\n', 'a\nb', true],
    ['a\nb', 'a', false],
    ['a', 'a\nb', false],
    ['', '', true],
    ['took 12.5 ms', 'took 3 ms', true],
    ['NAME   AGE\nx      1m2s', 'NAME  AGE\nx     3s', true],
    ['a.b', 'a+b', false],
    ['one two three', 'one … three', true],
    ['a\nb\nc\nd', 'a\n…\nd', true],
    ['a\nb\nc', '…\nb\n…', true],
    ['a', '…\nb\n…', false],
    [`${'x\n'.repeat(5000)}`, `${'…\nx\n'.repeat(20)}y`, false],
  ])('%#', (printed, documented, expected) => {
    expect(isAsDocumented(printed, documented)).toBe(expected);
  });
});

test('commands continue after backslashes and in here-documents; ^C and & set how they end', () => {
  const session = '$ a \\\n  b\nout\n$ cat <<EOF\nx\nEOF\n$ run\nready\n^C\n$ api &\nserver\n';
  expect(commandsIn(session)).toEqual([
    { command: 'a \\\n  b', output: 'out\n', kind: 'foreground' },
    { command: 'cat <<EOF\nx\nEOF', output: '', kind: 'foreground' },
    { command: 'run', output: 'ready\n', kind: 'interrupted' },
    { command: 'api &', output: 'server\n', kind: 'background' },
  ]);
});
