/** Mapping of characters of a YAML scalar to positions in the file. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Document, isMap, isScalar, parseDocument, Scalar, stringify } from 'yaml';
import { textAt } from '../../src/base/json.ts';
import { offsetInScalar } from '../../src/base/yaml/scalar-offset.ts';
import { readDocument } from '../../src/config-file/document.ts';

const STYLES = ['PLAIN', 'QUOTE_SINGLE', 'QUOTE_DOUBLE', 'BLOCK_LITERAL', 'BLOCK_FOLDED'] as const;

const WORDS = ['value', '🐟', '  ', '\n\n', '\n  ', ': ', '- ', 'x'.repeat(30)];

/** Text as an expression may hold it: words, quotes, brackets, escapes, blanks, line breaks, emoji. */
const expressionText = fc
  .array(fc.constantFrom(...' \n\'"\\#{}\tü'.split(''), ...WORDS), { minLength: 1, maxLength: 30 })
  .map((parts) => `v${parts.join('')}v`);

function scalarOf(document: Document.Parsed): Scalar.Parsed {
  const root = document.contents;
  const value = isMap(root) ? root.items[0]?.value : undefined;
  if (!isScalar(value)) throw new Error('not a scalar');
  return value as Scalar.Parsed; // parsed from text
}

describe('the position of a character of a scalar', () => {
  test.each(STYLES)('%s: every visible character is found in the source', (style) => {
    fc.assert(
      fc.property(expressionText, fc.integer({ min: 20, max: 90 }), (value, lineWidth) => {
        const scalar = new Scalar(value);
        scalar.type = style;
        const text = stringify({ key: scalar }, { lineWidth });
        const parsed = scalarOf(parseDocument(text));
        const read = String(parsed.value); // folded text does not always read back as it was
        for (let index = 0; index < read.length; index += 1) {
          const character = read[index] ?? '';
          if (character.trim() === '') continue;
          const at = offsetInScalar(text, parsed, index);
          const isSame = text[at] === character || (parsed.type === 'QUOTE_DOUBLE' && text[at] === '\\');
          expect(
            isSame,
            `${JSON.stringify(character)} at ${index} found at ${at} of ${JSON.stringify(text)}`,
          ).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  test.each(STYLES)('%s: offsets never decrease and stay inside the scalar', (style) => {
    fc.assert(
      fc.property(expressionText, (value) => {
        const scalar = new Scalar(value);
        scalar.type = style;
        const text = stringify({ key: scalar }, { lineWidth: 40 });
        const parsed = scalarOf(parseDocument(text));
        let before = parsed.range[0];
        for (let index = 0; index <= String(parsed.value).length; index += 1) {
          const at = offsetInScalar(text, parsed, index);
          expect(at).toBeGreaterThanOrEqual(before);
          expect(at).toBeLessThanOrEqual(parsed.range[1]);
          before = at;
        }
      }),
      { numRuns: 100 },
    );
  });

  test.each(['a', '"', "'"])('a long run of blanks is read once, after %s', (start) => {
    const end = start === 'a' ? 'b' : `b${start}`;
    const text = `key: ${start}${' '.repeat(1_000_000)}${end}`;
    const document = readDocument('f', text);
    const index = textAt(document.value, 'key').indexOf('b');
    expect(text[document.offsetOfValue(['key'], index)]).toBe('b');
  });

  test.each([
    ['plain', 'key: value + foo(', 17, '1:18'],
    ['literal, second line', 'key: |\n  value +\n    foo(\n', 14, '3:9'],
    ['literal with an indentation indicator', 'key: |2-\n    a\n   b!\n', 6, '3:5'],
    ['literal with Windows line ends', 'key: |\r\n  a\r\n  b!\r\n', 3, '3:4'],
    ['literal that begins with empty lines', 'key: |\n\n\n  a!\n', 3, '4:4'],
    ['folded', 'key: >\n  value\n  + foo(\n', 12, '3:9'],
    ['double quotes with escapes', 'key: "\\u0041\\n\\"b!"', 4, '1:18'],
    ['double quotes over lines', 'key: "a\n  b!"', 3, '2:4'],
    ['double quotes with a continued line', 'key: "a\\\n  b!"', 2, '2:4'],
    ['single quotes', "key: 'it''s!'", 4, '1:12'],
    ['plain over lines', 'key: a\n  b\n\n  c!', 5, '4:4'],
    ['beyond the end', 'key: |\n  a\n  b\n', 4, '3:4'],
  ])('%s', (_, text, index, place) => {
    const document = readDocument('f', text);
    const before = text.slice(0, document.offsetOfValue(['key'], index));
    const lines = before.split('\n');
    expect(`${lines.length}:${(lines.at(-1) ?? '').length + 1}`).toBe(place);
  });
});
