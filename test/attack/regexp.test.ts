/** Regular expressions take time linear in the text, and mean the same as in the engine that backtracks. */

import { createContext, runInContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/base/json.ts';
import type { Program } from '../../src/expressions/types.ts';
import { LIMITS, TestSandbox, outcomeOf } from '../expressions/test-sandbox.ts';
import { costlyRuns } from '../support/costly-runs.ts';
import { REGEXPS } from './hostile-expressions.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  // All regular expressions are run by the linear engine.
  sandbox = await TestSandbox.open({
    regexpBacktracksMax: 1,
    limits: { ...LIMITS, expressionTimeoutMs: 1000, batchTimeoutMs: 20_000 },
  });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test.each(REGEXPS)('%s on a hostile text takes linear time', async (regexp, text) => {
  await using usual = await TestSandbox.open();
  expect(await usual.run(`${regexp}.test(value)`, text)).toEqual({ value: false });
});

/** All that the methods of a regular expression return for a match. */
const ASK = `(([source, flags, text]) => {
  const groups = (match) => match && [match.index, ...match];
  const make = () => new RegExp(source, flags);
  const all = new RegExp(source, flags.replace("g", "") + "g");
  return JSON.stringify([
    groups(make().exec(text)), make().test(text), text.search(make()), text.replace(make(), "<$&|$1>"), text.split(make()),
    [...text.matchAll(all)].map(groups), text.match(make()),
  ]);
})(value)`;

const character = fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', 'x');
const text = fc.string({ unit: character, maxLength: 9 });
const flags = fc.constantFrom('', 'g', 'm', 's', 'y', 'gm');
const plain = fc.constantFrom('a', 'b', 'c', '.', '[ab]', '[^a]', '\\w', '\\d', 'x');
const assertion = fc.constantFrom('$', '\\b', '\\B');
const quantifier = fc.constantFrom('', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?', '{2,}');
const { source: unanchored } = fc.letrec<{ source: string; term: string }>((tie) => ({
  term: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(plain, quantifier).map((parts) => parts.join('')),
    assertion,
    fc
      .tuple(fc.constantFrom('(', '(?:'), tie('source'), quantifier)
      .map(([open, inner, times]) => `${open}${inner})${times}`),
    fc
      .tuple(fc.constantFrom('(?=', '(?!', '(?<=', '(?<!'), tie('source'))
      .map(([open, inner]) => `${open}${inner})`),
  ),
  source: fc
    .array(
      fc.array(tie('term'), { minLength: 1, maxLength: 3 }).map((terms) => terms.join('')),
      { minLength: 1, maxLength: 3 },
    )
    .map((alternatives) => alternatives.join('|')),
}));
/**
 * `^` only at the start: after a character, where it cannot match, V8's optimizer drops other alternatives, too. `/.*?c^|./s.exec('ab')` is null,
 * and with `--no-regexp-optimization` a match.
 */
const source = fc.tuple(fc.constantFrom('', '', '', '^'), unanchored).map((parts) => parts.join(''));

describe('both engines', () => {
  let program: Program;
  beforeAll(() => {
    program = sandbox.define(ASK);
  });
  const backtracking = createContext({ value: null });
  /** Undefined: it takes too long for an engine that backtracks. */
  const expected = (value: JsonValue): string | undefined => {
    backtracking['value'] = value;
    try {
      return runInContext(ASK, backtracking, { timeout: 10 }) as string;
    } catch {
      return undefined;
    }
  };

  test('give the same matches, groups, replacements and splits on random expressions and texts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(source, flags, text), { minLength: 50, maxLength: 50 }),
        async (cases) => {
          // There is no result to compare with if the backtracking engine takes too long.
          const known = cases.flatMap((value) => {
            const wanted = expected(value);
            return wanted === undefined ? [] : [{ value, wanted }];
          });
          const { values, errors } = await sandbox.ask(
            program,
            known.map(({ value }) => value),
          );
          expect(errors).toBeUndefined();
          expect(values).toEqual(known.map(({ wanted }) => wanted));
        },
      ),
      { numRuns: costlyRuns(12) },
    );
  });

  test('differ only in time', async () => {
    const hostile = ['^(a+)+$', '', `${'a'.repeat(40)}b`];
    expect(expected(hostile)).toBeUndefined();
    expect('value' in outcomeOf(await sandbox.ask(program, [hostile]), 0)).toBe(true);
  });
});
