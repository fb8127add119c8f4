/** What the check forbids, with the reason and the place, and what it leaves alone. */

import { expect, test } from 'vitest';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { placedProblem } from './compiled.ts';

test.each([
  [
    '1 +\n  Date.now()',
    '2:3 forbidden: `Date.now` is not allowed in an expression: there is no clock: a result depends only on the inputs',
  ],
  [
    'value["constructor"]',
    '1:7 forbidden: the member `constructor` is not allowed in an expression: it gives access to prototypes and to functions that compile text',
  ],
  [
    'value[`__proto__`]',
    '1:7 forbidden: the member `__proto__` is not allowed in an expression: it gives access to prototypes',
  ],
  [
    '({ constructor: c }) => c',
    '1:4 forbidden: the member `constructor` is not allowed in an expression: it gives access to prototypes and to functions that compile text',
  ],
  [
    '(async () => 1)()',
    '1:2 forbidden: `async` is not allowed in an expression: expressions are synchronous',
  ],
  ['import("fs")', '1:1 forbidden: `import` is not allowed in an expression: there is nothing to import'],
  [
    'this',
    '1:1 forbidden: `this` outside of classes and methods is not allowed in an expression: it gives access to code outside of the expression',
  ],
  ['1n', '1:1 forbidden: BigInt is not allowed in an expression: its values are not JSON'],
  [
    'class { static {} }',
    '1:9 forbidden: `static {}` is not allowed in an expression: a static field does the same',
  ],
  ['Math.random()', '1:1 forbidden: `Math.random` is not allowed in an expression: there is no randomness'],
  [
    'value + Math["random"]()',
    '1:9 forbidden: `Math.random` is not allowed in an expression: there is no randomness',
  ],
  [
    'const { random } = Math; random()',
    '1:9 forbidden: `Math.random` is not allowed in an expression: there is no randomness',
  ],
  [
    'new Date(value).getHours()',
    '1:17 forbidden: the method `getHours` is not allowed in an expression: there is no time zone; `getUTCHours` works',
  ],
  [
    'value?.["toLocaleUpperCase"]()',
    '1:9 forbidden: the method `toLocaleUpperCase` is not allowed in an expression: there is no locale data',
  ],
  [
    'value.map(String.prototype.toLocaleUpperCase.call)',
    '1:11 forbidden: `String.prototype.toLocaleUpperCase` is not allowed in an expression: there is no locale data',
  ],
  [
    'Symbol.for("a")',
    '1:1 forbidden: `Symbol.for` is not allowed in an expression: it would last beyond the expression',
  ],
  ['debugger; 1', '1:1 forbidden: `debugger` is not allowed in an expression: there is no debugger'],
])('%j is refused', (expression, problem) => {
  expect(placedProblem(expression)).toBe(problem);
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
