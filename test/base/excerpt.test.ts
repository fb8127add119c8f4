/** Source excerpts with a caret below the error position. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { caretLine, excerptOf, oneLine, placeOf, plainText, printableJson } from '../../src/base/excerpt.ts';
import { parseYaml } from '../../src/base/yaml/document.ts';
import { writeYaml } from '../../src/base/yaml/write.ts';

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

test('printed JSON and YAML are the same value, and no character of theirs misleads its reader', () => {
  const misleading = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;
  const character = fc.constantFrom(
    'a',
    '"',
    '\\',
    '\n',
    '\u001b',
    '\u0085',
    '\u009b',
    '\u202e',
    '\u2067',
    '\u{1f600}',
  );
  const value = fc.dictionary(fc.string({ unit: character }), fc.string({ unit: character }));
  fc.assert(
    fc.property(value, (texts) => {
      const json = printableJson(texts);
      expect(JSON.parse(json)).toEqual(texts);
      const yaml = writeYaml(texts);
      expect(parseYaml(yaml).json).toEqual(texts);
      expect([json, yaml].some((text) => misleading.test(text))).toBe(false);
    }),
  );
});
