/** Errors of many fields and of values that no message may quote as they are. */

import { describe, expect, test } from 'vitest';
import { FIELD_PROBLEMS_MAX } from '../../src/apiserver/limits.ts';
import {
  forbidden,
  invalid,
  invalidValue,
  notFound,
  requiredValue,
  shortened,
  type FieldError,
} from '../../src/apiserver/status.ts';

const POD = { group: '', resource: 'Pod' };

describe('an invalid object', () => {
  test('with one problem has its text alone, with several a list without repetitions and a cause for each', () => {
    const [one, two] = [requiredValue('spec.a'), requiredValue('spec.b', 'or spec.c')];
    expect(invalid(POD, 'p', [one]).message).toBe('Pod "p" is invalid: spec.a: Required value');
    const { message, status } = invalid(POD, 'p', [one, two, one]);
    expect(message).toBe('Pod "p" is invalid: [spec.a: Required value, spec.b: Required value: or spec.c]');
    expect(status.details?.causes?.map(({ field }) => field)).toEqual(['spec.a', 'spec.b', 'spec.a']);
  });

  test('with very many problems names a limited number, and how many are left out', () => {
    const errors: FieldError[] = Array.from({ length: FIELD_PROBLEMS_MAX + 2 }, (_, at) =>
      requiredValue(`f${at}`),
    );
    const { message, status } = invalid(POD, 'p', errors);
    expect(status.details?.causes).toHaveLength(FIELD_PROBLEMS_MAX);
    expect(message).toMatch(/f99: Required value, and 2 more\]$/u);
    expect(invalid(POD, 'p', errors.slice(0, FIELD_PROBLEMS_MAX)).message).not.toContain('more]');
  });
});

describe('a value', () => {
  test.each<[unknown, string]>([
    ['a "b"', '"a \\"b\\""'],
    ['\u0001\u007f', '"\\x01\u007f"'],
    ['\n', '"\\n"'],
    [undefined, 'null'],
    [null, 'null'],
    [{ a: ['\u0001'] }, '{"a":["\\u0001"]}'],
  ])('%j is quoted as Go does', (value, shown) => {
    expect(invalidValue('f', value, 'why').message).toBe(`Invalid value: ${shown}: why`);
  });

  test('that is long is cut, in strings and in other values', () => {
    expect(shortened('x'.repeat(1024))).toBe('x'.repeat(1024));
    expect(shortened('x'.repeat(1025))).toBe(`${'x'.repeat(1024)}…`);
    for (const value of ['x'.repeat(5000), ['x'.repeat(5000)]])
      expect(invalidValue('f', value, 'why').message.length).toBeLessThan(1100);
  });
});

test.each([
  [
    notFound({ group: 'a.example', resource: 'things' }, 'x'),
    'things.a.example "x" not found',
    { name: 'x', group: 'a.example', kind: 'things' },
  ],
  [notFound({ group: '', resource: 'pods' }, 'x'), 'pods "x" not found', { name: 'x', kind: 'pods' }],
  [forbidden({ group: '', resource: 'pods' }, '', 'why'), 'pods is forbidden: why', { kind: 'pods' }],
  [
    forbidden({ group: '', resource: 'pods' }, 'x', 'why'),
    'pods "x" is forbidden: why',
    { name: 'x', kind: 'pods' },
  ],
])('%s names the object as far as there is one', ({ message, status }, text, details) => {
  expect(message).toBe(text);
  expect(status.details).toEqual(details);
});
