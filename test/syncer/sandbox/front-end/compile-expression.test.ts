/** Parsing, analysis and regeneration of expressions. */

import { runInThisContext } from 'node:vm';
import fc from 'fast-check';
import { parse } from 'acorn';
import { describe, expect, test } from 'vitest';
import {
  compileExpression,
  type ExpressionProblem,
} from '../../../../src/syncer/sandbox/front-end/compile-expression.ts';
import { anyText } from '../../../support/any-text.ts';
import { compileUnchecked, programOf } from '../test-sandbox.ts';

function problemOf(expression: string): ExpressionProblem {
  const outcome = compileExpression(expression, 0);
  if (outcome.ok) throw new Error(`${expression} compiles`);
  return outcome.problem;
}

/** The program as a function, in this process: for expressions that this test has written itself. */
function call(expression: string, value: unknown, context: Record<string, unknown> = {}): unknown {
  const { source } = programOf(compileExpression(expression, 0));
  const program = runInThisContext(source) as (...inputs: unknown[]) => unknown;
  return program(value, value !== undefined, context);
}

describe('what an expression may be', () => {
  test.each([
    ['value + 1', 2],
    ['value // and a comment', 1],
    ['{}', {}],
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

  test.each([
    ['', 'syntax', 'the expression is empty', 1, 1],
    ['value +', 'syntax', 'unexpected end of the expression', 1, 8],
    ['1), (2', 'syntax', 'unexpected token', 1, 2],
    ['value\n  .foo(', 'syntax', 'unexpected end of the expression', 2, 8],
    [
      'const x = 1',
      'syntax',
      'the last statement has no value; end with an expression, if, switch, try or a loop',
      1,
      1,
    ],
    ['return value', 'syntax', 'write the result without `return`: value.trim()', 1, 1],
    [
      '1 +\n  Date.now()',
      'forbidden',
      '`Date.now` is not allowed in an expression: there is no clock: a result depends only on the inputs',
      2,
      3,
    ],
    ['vlaue', 'forbidden', '`vlaue` is not available here; did you mean `value`?', 1, 1],
    ['Value', 'forbidden', '`Value` is not available here; did you mean `value`?', 1, 1],
    [
      'x.y',
      'forbidden',
      '`x` is not available here; in scope are value, valueExists and context, and text needs quotes inside the expression',
      1,
      1,
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
    [
      'import("fs")',
      'forbidden',
      '`import` is not allowed in an expression: there is nothing to import',
      1,
      1,
    ],
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
    [
      'context.vObject.metadata.name',
      'forbidden',
      '`context.vObject` does not exist; did you mean `context.virtualObject`?',
      1,
      1,
    ],
    [
      '({ ...context.pObject })',
      'forbidden',
      '`context.pObject` does not exist; did you mean `context.hostObject`?',
      1,
      7,
    ],
    [
      'const { hostobject } = context; hostobject',
      'forbidden',
      '`context.hostobject` does not exist; did you mean `context.hostObject`?',
      1,
      9,
    ],
    [
      'context.object',
      'forbidden',
      '`context.object` does not exist; it has vcluster, hostObject, virtualObject, path',
      1,
      1,
    ],
    [
      'base64.encod(value)',
      'forbidden',
      '`base64.encod` does not exist; did you mean `base64.encode`?',
      1,
      1,
    ],
    [
      'const { parse } = base64; parse(value)',
      'forbidden',
      '`base64.parse` does not exist; it has encode, decode',
      1,
      9,
    ],
    [
      'context.vcluster.names',
      'forbidden',
      '`context.vcluster.names` does not exist; did you mean `context.vcluster.name`?',
      1,
      1,
    ],
    ['debugger; 1', 'forbidden', '`debugger` is not allowed in an expression: there is no debugger', 1, 1],
  ])('%j is refused', (expression, ...expected) => {
    const { excerpt, offset, kind, message, line, column } = problemOf(expression);
    expect([kind, message, line, column]).toEqual(expected);
    expect(offset).toBeLessThanOrEqual(expression.length);
    expect(excerpt.split('\n')).toHaveLength(2);
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

  test('the caret is below the error position, in a truncated line', () => {
    const { excerpt } = problemOf(`${'value + '.repeat(100)}Date.now() + ${'value + '.repeat(100)}1`);
    const [line = '', caret = ''] = excerpt.split('\n');
    expect(line.length).toBeLessThanOrEqual(122);
    expect(line.slice(caret.indexOf('^'))).toMatch(/^Date/);
    expect(problemOf('"\u202e\u0007" + Intl').excerpt).toBe(`"\\u202e\\u0007" + Intl\n${' '.repeat(17)}^`);
  });

  test.each([
    ['bytes', `"${'é'.repeat(9000)}"`],
    ['parts', `[${'0,'.repeat(8100)}0]`],
    ['levels', `${'['.repeat(700)}${']'.repeat(700)}`],
    ['regular expressions', Array.from({ length: 150 }, (_, i) => `/a${i}/.test(value)`).join('||')],
  ])('too many %s', (_what, expression) => {
    expect(problemOf(expression).kind).toBe('forbidden');
  });
});

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

describe('what is read', () => {
  const none = { value: false, path: false, hostObject: [], virtualObject: [] };
  const all = { value: false, path: true, hostObject: [[]], virtualObject: [[]] };

  test.each([
    ['1 + 1', none],
    ['value', { ...none, value: true }],
    ['valueExists', { ...none, value: true }],
    ['((value) => value)(1)', { ...none, value: true }],
    ['context.vcluster.name', none],
    ['context["path"]', { ...none, path: true }],
    ['context.virtualObject.metadata.name', { ...none, virtualObject: [['metadata', 'name']] }],
    ['context?.path', { ...none, path: true }],
    ['context?.["path"]?.length', { ...none, path: true }],
    ['(context?.virtualObject.metadata).name', { ...none, virtualObject: [['metadata', 'name']] }],
    ['context?.virtualObject?.metadata?.["name"]', { ...none, virtualObject: [['metadata', 'name']] }],
    [
      'context.hostObject.metadata.labels[value]',
      { ...none, value: true, hostObject: [['metadata', 'labels']] },
    ],
    ['context.virtualObject.metadata.name.split("-")', { ...none, virtualObject: [['metadata', 'name']] }],
    ['context.virtualObject', { ...none, virtualObject: [[]] }],
    ['"a" in context.virtualObject.metadata', { ...none, virtualObject: [['metadata']] }],
    [
      'context.virtualObject.metadata.name + context.virtualObject.metadata',
      { ...none, virtualObject: [['metadata']] },
    ],
    ['const { metadata } = context.virtualObject; metadata.name', { ...none, virtualObject: [[]] }],
    ['(context.virtualObject.metadata.name = 1)', { ...none, virtualObject: [['metadata']] }],
    ['context', all],
    ['const { path } = context; path', all],
    ['context[value]', { ...all, value: true }],
    ['delete context.path', all],
    ['((context) => context.path)({})', all],
    ['[context.path] = [1]', all],
    ['typeof context.nothing', all],
  ])('%s', (expression, reads) => {
    expect(programOf(compileExpression(expression, 0)).reads).toEqual(reads);
  });

  test('names of the expression cannot clash with the members of context', () => {
    const expression = '((context_path) => context_path + context.path)("a")';
    expect(call(expression, 0, { path: 'b' })).toBe('ab');
    expect(programOf(compileExpression(expression, 0)).reads).toEqual({ ...none, path: true });
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

  test('arbitrary text compiles or returns a problem with its line', () => {
    fc.assert(
      fc.property(anyText(200), (text) => {
        const outcome = compileExpression(text, 0);
        expect(outcome.ok || outcome.problem.line > 0).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('comments and spaces are removed, positions are kept', () => {
    const { source, mappings } = programOf(compileExpression('value /* a */\n  . b // c', 0));
    expect(source).not.toContain('/*');
    expect(() => parse(source, { ecmaVersion: 2025 })).not.toThrow();
    expect(mappings).toContainEqual({ line: 3, column: 14, toLine: 2, toColumn: 5 });
  });
});
