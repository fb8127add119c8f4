/** Selectors and continue tokens for any input. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseFieldSelector } from '../../../src/apiserver/objects/query-options.ts';
import { parseLabelSelector } from '../../../src/kube/label-selector.ts';
import { decodeContinue, encodeContinue } from '../../../src/apiserver/objects/list-objects.ts';
import { outcome } from '../random-services.ts';

describe('queries', () => {
  test('selectors are parsed or rejected, for any input', () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom('a', '=', '==', '!=', '!', 'in', 'notin', '(', ')', ',', ' ', '>', '1'))
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (selector) => {
        expect([
          outcome(() => parseLabelSelector(selector)({ a: '1' })),
          outcome(() => parseFieldSelector(selector, ['a'])),
        ]).toEqual([
          expect.stringMatching(/^(fine|SelectorError)$/),
          expect.stringMatching(/^(fine|StatusError)$/),
        ]);
      }),
    );
  });

  test.each([
    ['a=1', true],
    ['a==1,b!=2', true],
    ['a!=1', false],
    ['a in (1,2)', true],
    ['a notin (1,2)', false],
    ['c notin (1)', true],
    ['a', true],
    ['!a', false],
    ['!c', true],
    ['c', false],
    ['a>0', true],
    ['a<1', false],
    ['n>9', true],
    ['', true],
  ])('the label selector %s', (selector, isMatching) => {
    expect(parseLabelSelector(selector)({ a: '1', n: '10' })).toBe(isMatching);
  });

  test('continue tokens survive a round trip', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string(), (revision, after) => {
        expect(decodeContinue(encodeContinue({ revision, after }))).toEqual({ revision, after });
      }),
    );
  });
});
