/** What is not one expression, or too large for one. */

import { expect, test } from 'vitest';
import { placedProblem, problemOf } from './compiled.ts';

test.each([
  ['', 'syntax', 'the expression is empty', 1, 1],
  ['value +', 'syntax', 'unexpected end of the expression', 1, 8],
  ['1), (2', 'syntax', 'unexpected token', 1, 2],
  ['value)', 'syntax', 'unexpected token', 1, 6],
  ['value\n  .foo(', 'syntax', 'unexpected end of the expression', 2, 8],
  [
    'const x = 1',
    'syntax',
    'the last statement has no value; end with an expression, if, switch, try or a loop',
    1,
    1,
  ],
  ['return value', 'syntax', 'write the result without `return`: value.trim()', 1, 1],
])('%j is refused', (expression, ...expected) => {
  expect(placedProblem(expression)).toEqual(expected);
});

test.each([
  ['bytes', `"${'é'.repeat(9000)}"`],
  ['parts', `[${'0,'.repeat(8100)}0]`],
  ['levels', `${'['.repeat(700)}${']'.repeat(700)}`],
  ['regular expressions', Array.from({ length: 150 }, (_, i) => `/a${i}/.test(value)`).join('||')],
])('too many %s', (_what, expression) => {
  expect(problemOf(expression).kind).toBe('forbidden');
});
