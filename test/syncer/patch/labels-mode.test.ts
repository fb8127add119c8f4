/** Translation of label keys and selectors, in both directions. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { parseLabelSelector } from '../../../src/kube/label-selector.ts';
import { labelsToHost, labelsToVirtual } from '../../../src/syncer/translate/labels.ts';
import { stringMapOf } from '../../../src/kube/string-map.ts';
import { UntranslatableValue } from '../../../src/syncer/patch/reference-parts.ts';
import { translateSelector } from '../../../src/syncer/patch/labels-mode.ts';
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
    [{ matchLabels: 'a-plain-label' }, { matchLabels: 'a-plain-label' }],
    [{ matchLabels: null }, { matchLabels: null }],
    [
      { matchLabels: { release: 'r' }, other: 1 },
      { matchLabels: { [RELEASE]: 'r' }, other: 1 },
    ],
    [
      { matchExpressions: [{ key: 'release', operator: 'In', values: ['a'] }] },
      { matchExpressions: [{ key: RELEASE, operator: 'In', values: ['a'] }] },
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
    ['app>x', `values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`],
    ['app=-x', 'values[0][app]: Invalid value: "-x": a valid label must be an empty string or consist of'],
    [{ 'a b': 'c' }, 'this is not a label selector: a b: name part must consist of alphanumeric'],
    [{ app: 1.1 }, 'this is not a label selector: app: must be a string, not 1.1'],
    [
      { matchlabels: { app: 'web' } },
      'matchlabels: must be a string, not an object; did you mean matchLabels?',
    ],
    [{ matchLabels: [] }, 'matchLabels: must be a map of strings, not a list'],
    [
      { matchLabels: { app: 'web x' } },
      'matchLabels.app: a valid label must be an empty string or consist of',
    ],
    [{ matchExpressions: {} }, 'matchExpressions: must be a list, not an object'],
    [{ matchExpressions: [null] }, 'matchExpressions.0: must be set, not null'],
    [{ matchExpressions: [{ operator: 'Exists' }] }, 'matchExpressions.0.key: name part must be non-empty'],
    [
      { matchExpressions: [{ key: 'app', operator: 'in', values: ['a'] }] },
      'matchExpressions.0.operator: must be one of In, NotIn, Exists, DoesNotExist, not "in"',
    ],
    [
      { matchExpressions: [{ key: 'app', operator: 'In' }] },
      "matchExpressions.0.values: must be specified when `operator` is 'In' or 'NotIn'",
    ],
    [
      { matchExpressions: [{ key: 'app', operator: 'Exists', values: ['a'] }] },
      "matchExpressions.0.values: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ],
    [
      { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', '-'] }] },
      'matchExpressions.0.values.1: a valid label must be an empty string or consist of',
    ],
    ['{"matchLabels":{"app":"web x"}}', 'matchLabels.app: a valid label must be an empty string'],
  ])('%j is none', (value, message) => {
    expect(() => translateSelector(value, labels.keyToHost)).toThrow(UntranslatableValue);
    expect(() => translateSelector(value, labels.keyToHost)).toThrow(message);
  });

  const key = fc.constantFrom('app', 'release', 'vcluster.loft.sh/controlled-by', 'x');
  const value = fc.constantFrom('', 'a', 'A_b-c.d', '9');
  const map = fc.dictionary(key, value);
  const requirement = fc.oneof(
    fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
    fc.record({
      key,
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.array(value, { minLength: 1 }),
    }),
  );
  const selector = fc.oneof(
    map,
    fc.record({ matchLabels: map, matchExpressions: fc.array(requirement) }),
  ) as fc.Arbitrary<JsonObject>; // built of JSON

  test('survive a round trip, as values and as JSON texts', () => {
    fc.assert(
      fc.property(selector, (one) => {
        for (const virtual of [one, JSON.stringify(one)]) {
          const host = translateSelector(virtual, labels.keyToHost);
          expect(translateSelector(host, labels.keyToVirtual)).toEqual(virtual);
        }
      }),
    );
  });

  test('with one value that no API server takes are none, wherever it is', () => {
    const wrong = fc.constantFrom<JsonValue>('a b', '-', 'x'.repeat(64), 'ä', 1, true, ['a'], { a: 'b' });
    const place = fc.constantFrom<(one: JsonObject, value: JsonValue) => JsonObject>(
      (one, bad) => ({ matchLabels: { ...plainMapOf(one), app: bad } }),
      (one, bad) => ({ ...plainMapOf(one), app: bad }),
      (_, bad) => ({ matchExpressions: [{ key: bad, operator: 'Exists' }] }),
      (_, bad) => ({ matchExpressions: [{ key: 'app', operator: bad }] }),
      (_, bad) => ({ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', bad] }] }),
      (_, bad) => ({ matchExpressions: [bad] }),
    );
    const plainMapOf = (one: JsonObject): JsonObject => ('matchExpressions' in one ? {} : one);
    fc.assert(
      fc.property(selector, place, wrong, (one, put, bad) => {
        const changed = put(one, bad);
        for (const virtual of [changed, JSON.stringify(changed)])
          expect(() => translateSelector(virtual, labels.keyToHost)).toThrow(UntranslatableValue);
      }),
    );
  });

  test('as text are what an API server takes as the selector of a list, and nothing else', () => {
    const token = fc.constantFrom(
      'app',
      'a/b',
      '-',
      'in',
      'notin',
      '(',
      ')',
      ',',
      '=',
      '==',
      '!=',
      '!',
      '>',
      '7',
      ' ',
    );
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 8 }).map((tokens) => tokens.join(' ')),
        (text) => {
          const isTaken = (read: () => unknown): boolean => {
            try {
              read();
              return true;
            } catch {
              return false;
            }
          };
          expect(isTaken(() => translateSelector(text, labels.keyToHost))).toBe(
            isTaken(() => parseLabelSelector(text)),
          );
        },
      ),
      { numRuns: 2000 },
    );
  });
});
