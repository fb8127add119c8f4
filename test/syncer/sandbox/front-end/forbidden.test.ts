/** What the check forbids, with the reason and the place, and what it leaves alone. */

import { expect, test } from 'vitest';
import { compileExpression } from '../../../../src/syncer/sandbox/front-end/compile-expression.ts';
import { placedProblem } from './compiled.ts';

test.each([
  [
    '1 +\n  Date.now()',
    'forbidden',
    '`Date.now` is not allowed in an expression: there is no clock: a result depends only on the inputs',
    2,
    3,
  ],
  [
    'value["constructor"]',
    'forbidden',
    'the member `constructor` is not allowed in an expression: it gives access to prototypes and to functions that compile text',
    1,
    7,
  ],
  [
    'value[`__proto__`]',
    'forbidden',
    'the member `__proto__` is not allowed in an expression: it gives access to prototypes',
    1,
    7,
  ],
  [
    '({ constructor: c }) => c',
    'forbidden',
    'the member `constructor` is not allowed in an expression: it gives access to prototypes and to functions that compile text',
    1,
    4,
  ],
  [
    '(async () => 1)()',
    'forbidden',
    '`async` is not allowed in an expression: expressions are synchronous',
    1,
    2,
  ],
  ['import("fs")', 'forbidden', '`import` is not allowed in an expression: there is nothing to import', 1, 1],
  [
    'this',
    'forbidden',
    '`this` outside of classes and methods is not allowed in an expression: it gives access to code outside of the expression',
    1,
    1,
  ],
  ['1n', 'forbidden', 'BigInt is not allowed in an expression: its values are not JSON', 1, 1],
  [
    'class { static {} }',
    'forbidden',
    '`static {}` is not allowed in an expression: a static field does the same',
    1,
    9,
  ],
  [
    'Math.random()',
    'forbidden',
    '`Math.random` is not allowed in an expression: there is no randomness',
    1,
    1,
  ],
  [
    'value + Math["random"]()',
    'forbidden',
    '`Math.random` is not allowed in an expression: there is no randomness',
    1,
    9,
  ],
  [
    'const { random } = Math; random()',
    'forbidden',
    '`Math.random` is not allowed in an expression: there is no randomness',
    1,
    9,
  ],
  [
    'new Date(value).getHours()',
    'forbidden',
    'the method `getHours` is not allowed in an expression: there is no time zone; `getUTCHours` works',
    1,
    17,
  ],
  [
    'value?.["toLocaleUpperCase"]()',
    'forbidden',
    'the method `toLocaleUpperCase` is not allowed in an expression: there is no locale data',
    1,
    9,
  ],
  [
    'value.map(String.prototype.toLocaleUpperCase.call)',
    'forbidden',
    '`String.prototype.toLocaleUpperCase` is not allowed in an expression: there is no locale data',
    1,
    11,
  ],
  [
    'Symbol.for("a")',
    'forbidden',
    '`Symbol.for` is not allowed in an expression: it would last beyond the expression',
    1,
    1,
  ],
  ['debugger; 1', 'forbidden', '`debugger` is not allowed in an expression: there is no debugger', 1, 1],
])('%j is refused', (expression, ...expected) => {
  expect(placedProblem(expression)).toEqual(expected);
});

test.each([
  'value.link',
  'value["getHours"] ?? 1',
  '({ link: (text) => text }).link(value)',
  'class A { getHours() { return 1; } } new A().getHours()',
  'value.toBase64?.()',
  'typeof Math.random',
  'Math.hasOwnProperty("random")',
  'Uint8Array.from([1]).length + Error.prototype.message + TypeError.name',
  '((Math) => Math.random)({ random: 1 })',
  '((context) => context.object)({ object: 1 })',
  'context.hasOwnProperty("path")',
  'context.virtualObject.random',
])('%j is allowed', (expression) => {
  expect(compileExpression(expression, 0)).toMatchObject({ ok: true });
});
