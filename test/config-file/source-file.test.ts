/** The text of a file as YAML: syntax errors with their places, and the excerpt of a line. */

import { describe, expect, test } from 'vitest';
import { createSourceFile, excerptAt, positionOf } from '../../src/config-file/source-file.ts';
import { read } from './read-text.ts';

describe('the first syntax error, with what to do', () => {
  test.each([
    ['a tab', 'a:\n\tb: 1', ['2:1 a tab cannot indent YAML: use spaces']],
    [
      'content left of its key',
      's:\n  a: {\n  b: 1,\n  c: [1,\n  2]\n  }\nt: {\nx: 1\n}',
      ['3:3 flow map in block collection must be sufficiently indented and end with a }'],
    ],
    [
      'a quote without an end',
      'a: "b\nc: 1\nd: [',
      ['1:4 this quote is not closed: close it, and indent each of its lines more than its key'],
    ],
    [
      'a quote without an end in a flow mapping',
      "a: 1\nb: {c: 'd\ne: 1\n",
      ['2:8 this quote is not closed: close it, and indent each of its lines more than its key'],
    ],
    ['no blank after a colon', 'a: 1\nb:2\nc: 3\n', ['2:1 a key without ": " after it: write "key: value"']],
    ['no colon', 'a: 1\nb 2\n', ['2:1 a key without ": " after it: write "key: value"']],
    [
      'a second colon',
      'a: b: c',
      ['1:4 a second ": " on one line: put the value in quotes, or start a new line'],
    ],
    [
      'a reserved character',
      'a: @x',
      ['1:4 plain value cannot start with reserved character @: put it in quotes'],
    ],
  ])('%s', (_, text, problems) => {
    expect(read(text)).toEqual({ value: {}, problems, isReadable: false });
  });
});

test('Windows line ends and the end of the file', () => {
  const source = createSourceFile('f', 'a\r\nb');
  expect([excerptAt(source, 0), excerptAt(source, 99)]).toEqual(['a\n^', 'b\n ^']);
  expect(positionOf(source, 3)).toEqual({ line: 2, column: 1 });
});
