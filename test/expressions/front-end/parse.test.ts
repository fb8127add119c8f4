/** What is not one expression, or too large for one. */

import { expect, test } from 'vitest';
import { placedProblem, problemOf } from './compiled.ts';

test.each([
  ['', '1:1 syntax: the expression is empty'],
  ['value +', '1:8 syntax: unexpected end of the expression'],
  ['1), (2', '1:2 syntax: unexpected token'],
  ['value)', '1:6 syntax: unexpected token'],
  ['value\n  .foo(', '2:8 syntax: unexpected end of the expression'],
  [
    'const x = 1',
    '1:1 syntax: the last statement has no value; end with an expression, if, switch, try or a loop',
  ],
  ['return value', '1:1 syntax: write the result without `return`: value.trim()'],
])('%j is refused', (expression, problem) => {
  expect(placedProblem(expression)).toBe(problem);
});

test.each([
  ['bytes', `"${'é'.repeat(9000)}"`],
  ['parts', `[${'0,'.repeat(8100)}0]`],
  ['levels', `${'['.repeat(700)}${']'.repeat(700)}`],
  ['regular expressions', Array.from({ length: 150 }, (_, i) => `/a${i}/.test(value)`).join('||')],
])('too many %s', (_what, expression) => {
  expect(problemOf(expression).kind).toBe('forbidden');
});
