/** The generated program: its result, and that it parses to the tree of the expression. */

import fc from 'fast-check';
import { parse } from 'acorn';
import { describe, expect, test } from 'vitest';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { compileUnchecked, programOf } from '../test-sandbox.ts';
import { call } from './compiled.ts';

describe('the value of a program', () => {
  test.each([
    ['value + 1', 2],
    ['value // and a comment', 1],
    ['{}', {}],
    ['{ a: 1 }/1/value', NaN],
    ['value ? {} : { a: 1 }/1/value', {}],
    ['"text"', 'text'],
    ['const x = value; x + x', 2],
    ['function f(x) { return x * 3 }\nf(value)', 3],
    ['let s = 0; for (let i = 0; i < 3; i++) s += i; s', 3],
    ['value, 7', 7],
    ['\uFEFFvalue', 1],
    ['value;', 1],
    ['if (value > 0) "up"; else "down"', 'up'],
    ['if (value < 0) { value; "down" }', undefined],
    ['switch (value) { case 1: "one"; break; default: "more" }', 'one'],
    ['for (const x of [1, 2, 3]) { if (x < 3) x * 10 }', 20],
    ['try { null.x } catch { "caught" } finally { "not this" }', 'caught'],
    ['outer: for (;;) { value + 1; break outer; }', 2],
    ['{ const x = value; x + 1 }', 2],
    ['const result = value; if (result) result', 1],
    [
      'class Pair { #a = 1; constructor(b) { this.b = b; } sum() { return this.#a + this.b; } } new Pair(2).sum()',
      3,
    ],
    ['[...(function* () { yield value; yield 2; })()]', [1, 2]],
    ['({ n: value, twice() { return this.n * 2; } }).twice()', 2],
    ['(a?.b).c', 'thrown'],
  ])('%s', (expression, expected) => {
    let result: unknown = 'thrown';
    try {
      result = call(expression.replace('a?.b', 'value?.b'), 1);
    } catch {
      // As `(undefined).c` does; without the parentheses it would be undefined.
    }
    expect(result).toEqual(expected);
  });
});

describe('regeneration', () => {
  const leaf = fc.constantFrom(
    'value',
    '1',
    '"a"',
    'context.path',
    'undefined',
    '/x/g',
    '`t`',
    '[]',
    '({})',
    'null',
    '.5',
    '-1',
  );
  const expressions = fc.letrec<{ tree: string }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc
        .tuple(
          tie('tree'),
          fc.constantFrom('+', '-', '*', '**', '??', '||', '&&', '<', '===', 'in', ',', '%'),
          tie('tree'),
        )
        .map(([a, operator, b]) => `(${a}) ${operator} (${b})`),
      tie('tree').map((a) => `(${a})?.b`),
      tie('tree').map((a) => `((${a})?.b).c`),
      tie('tree').map((a) => `!(${a})`),
      tie('tree').map((a) => `- -(${a})`),
      tie('tree').map((a) => `typeof (${a})`),
      tie('tree').map((a) => `(x => (${a}))`),
      tie('tree').map((a) => `(({ a = (${a}), ...rest }, [b]) => { return (${a}); })`),
      tie('tree').map((a) => `[...(${a}), , 1]`),
      tie('tree').map((a) => `({ a: (${a}), "b-c": 1, [(${a})]: 2, get d() { return (${a}); }, ...(${a}) })`),
      tie('tree').map((a) => `\`x\${(${a})}y\``),
      tie('tree').map((a) => `new ((${a}))`),
      tie('tree').map((a) => `((${a}))\`t\``),
      fc.tuple(tie('tree'), tie('tree'), tie('tree')).map(([a, b, c]) => `(${a}) ? (${b}) : (${c})`),
    ),
  }));

  // Branches that are there twice make trees that are over a limit now and then, which is another test's.
  const isWithinLimits = (expression: string): boolean => expression.split('/x/g').length <= 101;

  test('regenerated source parses to the same tree', () => {
    fc.assert(
      fc.property(expressions.tree.filter(isWithinLimits), (expression) => {
        const outcome = compileUnchecked(expression);
        if (!outcome.ok && outcome.problem.kind === 'syntax') return;
        expect(outcome.ok ? '' : `${outcome.problem.message}: ${expression}`).toBe('');
      }),
      { numRuns: 500 },
    );
    expect.hasAssertions();
  });

  test('comments and spaces are removed, positions are kept', () => {
    const { source, mappings } = programOf(compileExpression('value /* a */\n  . b // c', 0));
    expect(source).not.toContain('/*');
    expect(() => parse(source, { ecmaVersion: 2025 })).not.toThrow();
    expect(mappings).toContainEqual({ line: 3, column: 14, toLine: 2, toColumn: 5 });
  });
});
