/** Translation of label keys and selectors, in both directions. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import { labelsToHost, labelsToVirtual, stringMapOf } from '../../../src/syncer/translate/labels.ts';
import {
  printSelector,
  selectorRequirements,
  UnexpectedToken,
  type SelectorRequirement,
} from '../../../src/kube/label-selector.ts';
import { SelectorError, selectorToHost, selectorToVirtual } from '../../../src/syncer/translate/selectors.ts';
import { LEGACY, mappings, translators } from './setup.ts';

const { labels } = translators();
const RELEASE = 'vcluster.loft.sh/label-suffix-x-a4d451ec23';

describe('label keys', () => {
  test('`release` is rewritten in single-namespace mode only', () => {
    expect(
      [labels, translators(LEGACY).labels, translators(mappings({})).labels].map((one) =>
        one.keyToHost('release'),
      ),
    ).toEqual([RELEASE, 'release', 'release']);
  });

  test('all maps survive a round trip', () => {
    const key = fc.oneof(
      fc.string(),
      fc.constantFrom('release', 'vcluster.loft.sh/namespace', '__proto__', 'app'),
    );
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.string()),
        fc.constantFrom(labels, translators(LEGACY).labels),
        (map, one) => {
          expect(labelsToVirtual(labelsToHost(map, one), one)).toEqual(map);
        },
      ),
    );
  });

  test('members that are not strings are removed from a map', () => {
    expect([null, 'x', [1], { a: '1', b: 2, c: null }].map(stringMapOf)).toEqual([{}, {}, {}, { a: '1' }]);
  });
});

describe('selectors', () => {
  test.each<[JsonValue, JsonValue]>([
    [
      { app: 'web', release: 'r' },
      { app: 'web', [RELEASE]: 'r' },
    ],
    [{ release: 'new', [RELEASE]: 'old' }, { [RELEASE]: 'new' }],
    [{ [RELEASE]: 'stays' }, { [RELEASE]: 'stays' }],
    [{ matchLabels: 'a plain label' }, { matchLabels: 'a plain label' }],
    [
      { matchLabels: { release: 'r' }, other: 1 },
      { matchLabels: { [RELEASE]: 'r' }, other: 1 },
    ],
    [
      { matchExpressions: [{ key: 'release', operator: 'In', values: ['a'] }, null, { key: 1 }] },
      { matchExpressions: [{ key: RELEASE, operator: 'In', values: ['a'] }, null, { key: 1 }] },
    ],
    ['app=web, release in (a, b) ,! x', `app=web,${RELEASE} in (a,b),!x`],
    ['', ''],
    [{}, {}],
  ])('%j', (virtual, host) => {
    expect(selectorToHost(virtual, labels)).toEqual(host);
  });

  test.each<[JsonValue, string]>([
    [null, 'this is null'],
    [[], 'this is a list'],
    [3, 'this is a number'],
    ['a in b', '"a in b" is not a label selector: found "b" at 6, expected "("'],
    ['a=b,', 'found the end, expected a label key'],
  ])('%j is none', (value, message) => {
    expect(() => selectorToHost(value, labels)).toThrow(SelectorError);
    expect(() => selectorToHost(value, labels)).toThrow(message);
  });

  test('survive a round trip', () => {
    const key = fc.constantFrom('app', 'release', 'vcluster.loft.sh/controlled-by', 'x');
    const map = fc.dictionary(key, fc.string());
    const expressions = fc.array(fc.record({ key, operator: fc.constant('Exists') }));
    const selector = fc.oneof(map, fc.record({ matchLabels: map, matchExpressions: expressions }));
    fc.assert(
      fc.property(selector, (one) => {
        const value = one as unknown as JsonValue; // built of JSON
        expect(selectorToVirtual(selectorToHost(value, labels), labels)).toEqual(value);
      }),
    );
  });
});

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
    const piece = fc.constantFrom(
      'a',
      ' ',
      ',',
      '(',
      ')',
      '=',
      '!',
      '>',
      '<',
      'in',
      'notin',
      '\n',
      'é',
      '🦀',
    );
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
