/** Source excerpts with a caret below the error position. */

import { describe, expect, test } from 'vitest';
import { caretLine, excerptOf, oneLine, placeOf, plainText } from '../../src/base/excerpt.ts';

describe('caret lines', () => {
  test('a tab before the position is kept', () => {
    expect(caretLine('\ta: b', 4)).toBe('\ta: b\n\t   ^');
  });

  test('a long line is truncated around the position', () => {
    const [line = '', caret = ''] = caretLine(`${'x'.repeat(500)}!${'y'.repeat(500)}`, 500).split('\n');
    expect(line.length).toBeLessThan(125);
    expect(line[caret.length - 1]).toBe('!');
    expect(line.startsWith('…') && line.endsWith('…')).toBe(true);
  });

  test('the caret is below its character when escapes make the line longer', () => {
    expect(caretLine('\u202e\u0007+', 2)).toBe(`\\u202e\\u0007+\n${' '.repeat(12)}^`);
  });
});

test('a position is determined from an offset, and an excerpt from line and column', () => {
  expect(placeOf('a\r\nbc', 4)).toEqual({ line: 2, column: 2, excerpt: 'bc\n ^' });
  expect([excerptOf('a\nbc', 2, 2), excerptOf('a', 2), excerptOf('a', undefined)]).toEqual([
    'bc\n ^',
    '',
    '',
  ]);
});

test('unprintable characters are escaped, and text is truncated to one line', () => {
  expect(plainText('\u001b[31mred\u202e\u2028')).toBe('\\u001b[31mred\\u202e\\u2028');
  expect(oneLine('a\nb', 10)).toBe('a\\u000ab');
  expect(oneLine('x'.repeat(20), 5)).toBe('xxxx…');
});
