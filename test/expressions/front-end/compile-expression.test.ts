/** A compiled expression: its constant, or its problem with the place. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { anyText } from '../../support/any-text.ts';
import { programOf } from '../test-sandbox.ts';
import { problemOf } from './compiled.ts';

describe('constants', () => {
  test.each([
    ['"my-value"', 'my-value'],
    ['`plain`', 'plain'],
    ['null', null],
    ['true', true],
    ['-5.5', -5.5],
    ['0x10', 16],
  ])('%s needs no sandbox', (expression, value) => {
    expect(programOf(compileExpression(expression, 0)).constant).toEqual({ value });
  });

  test.each(['1e999', '"\\ud800"', '/a/', '`${value}`', 'undefined', '-"a"', '"a"; "b"'])(
    '%s does',
    (expression) => {
      expect(programOf(compileExpression(expression, 0)).constant).toBeUndefined();
    },
  );
});

test('the caret is below the error position, in a truncated line', () => {
  const { excerpt } = problemOf(`${'value + '.repeat(100)}Date.now() + ${'value + '.repeat(100)}1`);
  const [line = '', caret = ''] = excerpt.split('\n');
  expect(line.length).toBeLessThanOrEqual(122);
  expect(line.slice(caret.indexOf('^'))).toMatch(/^Date/);
  expect(problemOf('"\u202e\u0007" + Intl').excerpt).toBe(`"\\u202e\\u0007" + Intl\n${' '.repeat(17)}^`);
});

test('arbitrary text compiles or returns a problem with its place and an excerpt', () => {
  fc.assert(
    fc.property(anyText(200), (text) => {
      const outcome = compileExpression(text, 0);
      if (outcome.ok) return;
      const { line, offset, excerpt } = outcome.problem;
      expect([line > 0, offset <= text.length, excerpt.split('\n').length]).toEqual([true, true, 2]);
    }),
    { numRuns: 300 },
  );
});
