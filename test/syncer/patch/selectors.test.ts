/** Translation of label keys and selectors, in both directions. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import { labelsToHost, labelsToVirtual, stringMapOf } from '../../../src/syncer/translate/labels.ts';
import { UntranslatableValue } from '../../../src/syncer/patch/reference-parts.ts';
import { translateSelector } from '../../../src/syncer/patch/selectors.ts';
import { LEGACY, mappings, translators } from '../translate/setup.ts';

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
    expect(translateSelector(virtual, labels.keyToHost)).toEqual(host);
  });

  test.each<[JsonValue, string]>([
    [null, 'this is null'],
    [[], 'this is a list'],
    [3, 'this is a number'],
    ['a in b', '"a in b" is not a label selector: found "b" at 6, expected "("'],
    ['a=b,', 'found the end, expected a label key'],
  ])('%j is none', (value, message) => {
    expect(() => translateSelector(value, labels.keyToHost)).toThrow(UntranslatableValue);
    expect(() => translateSelector(value, labels.keyToHost)).toThrow(message);
  });

  test('survive a round trip', () => {
    const key = fc.constantFrom('app', 'release', 'vcluster.loft.sh/controlled-by', 'x');
    const map = fc.dictionary(key, fc.string());
    const expressions = fc.array(fc.record({ key, operator: fc.constant('Exists') }));
    const selector = fc.oneof(map, fc.record({ matchLabels: map, matchExpressions: expressions }));
    fc.assert(
      fc.property(selector, (one) => {
        const value = one as unknown as JsonValue; // built of JSON
        expect(translateSelector(translateSelector(value, labels.keyToHost), labels.keyToVirtual)).toEqual(
          value,
        );
      }),
    );
  });
});
