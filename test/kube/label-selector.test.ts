/** The text of label selectors: what it parses to, and what is refused. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  printSelector,
  selectorRequirements,
  UnexpectedToken,
  type SelectorRequirement,
} from '../../src/kube/label-selector.ts';

describe('selector text', () => {
  test.each([
    ['a', 'a'],
    [' ! a ', '!a'],
    ['a = b', 'a=b'],
    ['a == b , c != d', 'a==b,c!=d'],
    ['a=,b', 'a=,b'],
    ['a>1,b < 2', 'a>1,b<2'],
    ['a in (x,y)', 'a in (x,y)'],
    ['a notin ( x , , y )', 'a notin (x,,y)'],
    ['a in ()', 'a in ()'],
    ['in in (in,notin)', 'in in (in,notin)'],
    ['notin', 'notin'],
    ['example.com/a\t=\nb', 'example.com/a=b'],
    ['   ', ''],
  ])('%j → %j', (text, printed) => {
    expect(printSelector([...selectorRequirements(text)])).toBe(printed);
  });

  test.each([
    ',a',
    'a,,b',
    'a b',
    '=a',
    '!',
    '!!a',
    'a in',
    'a in (',
    'a in (x',
    'a in (x y)',
    'a=b=c',
    '(a)',
    'a!b',
    'a=(b)',
  ])('refuses %j', (text) => {
    expect(() => [...selectorRequirements(text)]).toThrow(UnexpectedToken);
  });

  test('a printed selector parses to the same selector', () => {
    const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,6}$/);
    const requirement: fc.Arbitrary<SelectorRequirement> = fc.oneof(
      fc.record({
        key: word,
        operator: fc.constantFrom('exists' as const, '!' as const),
        values: fc.constant([]),
      }),
      fc.record({
        key: word,
        operator: fc.constantFrom('=' as const, '==' as const, '!=' as const, '>' as const, '<' as const),
        values: fc.tuple(fc.oneof(word, fc.constant(''))),
      }),
      fc.record({
        key: word,
        operator: fc.constantFrom('in' as const, 'notin' as const),
        values: fc.array(fc.oneof(word, fc.constant('')), { minLength: 1, maxLength: 3 }),
      }),
    );
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
        expect([...selectorRequirements(printSelector(requirements))]).toEqual(requirements);
      }),
    );
  });

  test('any text is a selector or does not follow the grammar', () => {
    const piece = fc.constantFrom('in', 'notin', ...Array.from('a ,()=!><\né🦀'));
    fc.assert(
      fc.property(
        fc.array(piece).map((pieces) => pieces.join('')),
        (text) => {
          const parsed = requirementsIn(text);
          expect(parsed && requirementsIn(printSelector(parsed))).toEqual(parsed);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** Undefined for a text that does not follow the grammar; any other error fails the test. */
function requirementsIn(text: string): SelectorRequirement[] | undefined {
  try {
    return [...selectorRequirements(text)];
  } catch (error) {
    if (!(error instanceof UnexpectedToken)) throw error;
    return undefined;
  }
}
