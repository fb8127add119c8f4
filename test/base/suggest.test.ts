/** Suggestions for misspelt keys. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { didYouMean, editDistance, nearestWord } from '../../src/base/suggest.ts';

const WORDS = ['enabled', 'patches', 'workers', 'onHostDelete', 'name', 'debug', 'info'];

describe('suggestions', () => {
  test.each([
    ['patchs', 'patches'],
    ['patch', 'patches'],
    ['enable', 'enabled'],
    ['wrokers', 'workers'],
    ['on-host-delete', 'onHostDelete'],
    ['ONHOSTDELETE', 'onHostDelete'],
    ['nmae', 'name'],
    ['inf', 'info'],
    ['zzz', undefined],
    ['', undefined],
    ['x'.repeat(100_000), undefined],
  ])('%.20s', (word, nearest) => {
    expect(nearestWord(word, WORDS)).toBe(nearest);
  });

  test('an unrelated word has no suggestion', () => {
    expect(didYouMean('zzz', WORDS)).toBe('');
    expect(didYouMean('enbaled', WORDS)).toBe(', did you mean "enabled"?');
  });
});

describe('edit distance', () => {
  const word = fc.string({ maxLength: 12 });

  test('is symmetric, and zero only for equal words', () => {
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(editDistance(a, b) === 0).toBe(a === b);
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });

  test('counts a transposition of adjacent characters once', () => {
    expect(editDistance('ab', 'ba')).toBe(1);
    expect(editDistance('wrokers', 'workers')).toBe(1);
  });
});
