/** JSON values as everything else passes them on. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalJson,
  cloneJson,
  jsonEquals,
  mergePatch,
  numberField,
  parseJson,
  textLengthOf,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json.ts';

const INT64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

test('integers of 64 bits keep their digits through everything that copies, compares or merges them', () => {
  fc.assert(
    fc.property(INT64, INT64, (a, b) => {
      const text = `{"a":${a},"list":[${b},"x:[${b}"]}`;
      const value = parseJson(text);
      for (const copy of [value, cloneJson(value), mergePatch({}, { of: value })['of'] ?? null])
        expect(JSON.stringify(copy)).toBe(text);
      expect(canonicalJson(value)).toBe(text);
      expect(jsonEquals(value, parseJson(text))).toBe(true);
      expect(jsonEquals(parseJson(`[${a}]`), parseJson(`[${b}]`))).toBe(a === b);
    }),
  );
});

test('a copy has the members that the text of the original has', () => {
  const member = fc.oneof(fc.string(), fc.integer(), fc.constantFrom(null, undefined));
  const members = fc.dictionary(fc.string(), fc.oneof(member, fc.dictionary(fc.string(), member)));
  fc.assert(
    fc.property(members, (value) => {
      const copy = cloneJson({ of: value } as unknown as JsonObject); // as a caller may build one
      expect(copy).toStrictEqual(JSON.parse(JSON.stringify({ of: value })));
    }),
  );
});

test.each(['9007199254740991', '0.1', '1e3', '"9223372036854775807"', '[ -1 ]', '9'.repeat(21)])(
  '%s is the value that JSON.parse gives',
  (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  },
);

test('text that is no JSON is a SyntaxError, with long digits too', () => {
  for (const text of ['{', '[9223372036854775807']) expect(() => parseJson(text)).toThrow(SyntaxError);
});

describe('a number among the members', () => {
  test.each<[JsonValue, number]>([
    [5, 5],
    [-0.5, -0.5],
    [parseJson('9223372036854775807'), 2 ** 63],
    [null, 7],
    ['5', NaN],
    [true, NaN],
    [[5], NaN],
    [{ toString: 1, valueOf: 1 }, NaN],
  ])('%j is %d', (value, number) => {
    expect(numberField({ of: value }, 'of', 7)).toBe(number);
  });

  test('that is missing is 0, or another that the caller names', () => {
    expect([numberField({}, 'constructor'), numberField({}, 'of', 7)]).toEqual([0, 7]);
  });
});

test('a text is never shorter than it is measured, and is measured up to the limit', () => {
  const values = fc.jsonValue().map((value) => parseJson(JSON.stringify(value)));
  fc.assert(
    fc.property(values, fc.nat(200), (value, max) => {
      const { length } = JSON.stringify(value);
      expect(textLengthOf(value, Infinity)).toBeLessThanOrEqual(length);
      expect(textLengthOf(value, max) > max).toBe(textLengthOf(value, Infinity) > max);
    }),
  );
  const text = 'x'.repeat(1000);
  expect(textLengthOf([{ [text]: text }], Infinity)).toBeGreaterThan(2000);
});
