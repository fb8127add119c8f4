/** What V8's linear engine does not take, compared with V8's own answers. */

import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mayBacktrackOften, notLinear } from '../../../src/expressions/front-end/linear-regexp.ts';

type Sample = readonly [pattern: string, flags: string];

/** In a process with the flag, the flag `l` is an error for other expressions. */
const ASK = `
  const isLinear = ([pattern, flags]) => {
    try { return new RegExp(pattern, flags + 'l') !== undefined; } catch { return false; }
  };
  let text = '';
  process.stdin.on('data', (chunk) => { text += chunk; });
  process.stdin.on('end', () => console.log(JSON.stringify(JSON.parse(text).map(isLinear))));
`;

function answersOfV8(samples: readonly Sample[]): readonly boolean[] {
  const args = ['--enable-experimental-regexp-engine', '-e', ASK];
  const output = execFileSync(process.execPath, args, { input: JSON.stringify(samples), encoding: 'utf8' });
  return JSON.parse(output) as boolean[];
}

const CASES: readonly Sample[] = [
  ['(a+)+', ''],
  ['(a+)+', 'gmsy'],
  ...['d', 'i', 'u', 'v'].map((flag): Sample => ['(a+)+', flag]),
  ['(?i:a)+', ''],
  ['(a)\\1', ''],
  ['(?<n>a)\\k<n>', ''],
  ['(?=a)b', ''],
  ['(?!a)b', ''],
  ['a{16}', ''],
  ['a{17}', ''],
  ['a{0,17}', ''],
  ['a{17,}', ''],
  ['(a{1,12}){1,12}b', ''],
  ['(a{2}){8}', ''],
  ['(a{3}){6}', ''],
  ['((a{4})+){5}', ''],
  ['(?:a{4}|b{5}){4}', ''],
  ['[{}(]{3}\\{20\\}', ''],
  ['(a?){16}', ''],
  ['(a?){16,}', ''],
  ['(a?){15,}', ''],
  ['((a?){16})*', ''],
  ['((a?){8}){2,}', ''],
  ['((a?){5}){2,}', ''],
  ['((?:|a){16})+', ''],
  ['(\\b|a{9})+', ''],
];

test('the known ones', () => {
  expect(CASES.map(([pattern, flags]) => notLinear(pattern, flags) === undefined)).toEqual(
    answersOfV8(CASES),
  );
});

test('generated ones', () => {
  const quantifier = fc.oneof(
    fc.constantFrom('', '', '*', '+', '?', '*?', '+?'),
    fc
      .tuple(fc.integer({ min: 1, max: 20 }), fc.constantFrom('', ',', ',0'))
      .map(([n, more]) => (more === ',0' ? `{${n},${n + (n % 5)}}` : `{${n}${more}}`)),
  );
  const atom = fc.constantFrom(
    'a',
    'b',
    '.',
    '[a-z]',
    '[^\\]{}]',
    '\\d',
    '\\(',
    '\\{',
    '[(){9}]',
    '\\\\',
    '\\bx',
    'x$',
  );
  const { pattern } = fc.letrec<{ pattern: string; part: string; group: string }>((tie) => ({
    pattern: fc.array(tie('part'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    part: fc.oneof(
      { maxDepth: 4 },
      fc.tuple(atom, quantifier).map((parts) => parts.join('')),
      fc.tuple(tie('group'), quantifier).map((parts) => parts.join('')),
    ),
    group: fc
      .tuple(
        fc.constantFrom('(', '(?:', '(?<name>', '(?s:'),
        tie('pattern'),
        fc.constantFrom('', '|a', '|b{2}'),
      )
      .map(([open, inner, other]) => `${open}${inner}${other})`),
  }));
  const isValid = (text: string): boolean => {
    try {
      return new RegExp(text) instanceof RegExp;
    } catch {
      return false; // two groups of one name
    }
  };
  const flags = fc.constantFrom('', '', '', 'g', 'ms', 'i', 'u');
  const samples = fc.sample(fc.tuple(pattern.filter(isValid), flags), 2000);
  const expected = answersOfV8(samples);
  const differing = samples.filter(
    ([text, flag], at) => (notLinear(text, flag) === undefined) !== expected[at],
  );
  expect(differing).toEqual([]);
});

describe('a group that can match the same text in several ways', () => {
  test.each([
    '(a+)+',
    '(a?){30}',
    '(a{1,12}){1,12}',
    '((a|b)*c)*',
    '(a|a)*',
    '(?:a{2})*',
    '(\\)*x)+',
    '([)]*)*',
  ])('%s', (pattern) => {
    expect(mayBacktrackOften(pattern)).toBe(true);
  });
  test.each(['a+b+', '(ab)+', '\\(a+\\)+', '[(a+)]+', '(a+)b', '(?:a)?', '(a|b)', '(?<n>a)+', '(?:a+)?'])(
    '%s is none',
    (pattern) => {
      expect(mayBacktrackOften(pattern)).toBe(false);
    },
  );
});
