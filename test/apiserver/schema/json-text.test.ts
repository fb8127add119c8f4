/** Fields that are named twice, in any JSON; and texts that are no JSON, which the scan must end for. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DecodeError } from '../../../src/apiserver/schema/decode.ts';
import { parseJsonText } from '../../../src/apiserver/schema/json-text.ts';

function duplicates(text: string): readonly string[] {
  return parseJsonText(text).duplicates;
}

test('fields that are named twice are found, and no others', () => {
  fc.assert(fc.property(fc.json({ maxDepth: 4 }), (text) => duplicates(text).length === 0));
  expect(duplicates('{"a":1, "b":{"c":[{"d":1,"d":2}]}, "a":{}}')).toEqual([
    'duplicate field "b.c[0].d"',
    'duplicate field "a"',
  ]);
  expect(duplicates('{"a\\"b":1,"a\\"b":2,"\\u0061":1,"a":2}')).toEqual([
    'duplicate field "a\\"b"',
    'duplicate field "a"',
  ]);
});

test('what JSON.parse reads is read, and all else is an error', () => {
  const parsed = (parse: () => unknown): unknown => {
    try {
      return { value: parse() };
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof DecodeError) return 'no JSON';
      throw error;
    }
  };
  const parts = '{ } [ ] : , " \\ u 0 1 a null "k":'.split(' ');
  const texts = fc.string({ unit: fc.constantFrom(...parts, ' ', '\t'), maxLength: 14 });
  fc.assert(
    fc.property(texts, (text) => {
      expect(parsed(() => parseJsonText(text).value)).toEqual(parsed(() => JSON.parse(text)));
    }),
    { numRuns: 20_000 },
  );
});
