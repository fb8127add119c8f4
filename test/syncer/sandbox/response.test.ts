/** Responses of a child process that an attacker controls. */

import { describe, expect, test } from 'vitest';
import { readResponse } from '../../../src/syncer/sandbox/batch.ts';

const none = { undefinedAt: [], errors: [] };

describe('an answer', () => {
  test('of strings', () => {
    expect(readResponse('[[2,9,0,0]]\t["a","b"]')).toEqual([{ values: ['a', 'b'], ...none }]);
  });

  test('of two texts and a list', () => {
    const text = '[[1,5,0,0],[2,[1,{}],[0],0],[2,9,0,0]]\t["a"]["b","c"]';
    expect(readResponse(text)).toEqual([
      { values: ['a'], ...none },
      { values: [1, {}], undefinedAt: [0], errors: [] },
      { values: ['b', 'c'], ...none },
    ]);
  });

  test.each([
    ['a quote that makes one string more', '[[1,9,0,0]]\t["a","b"]'],
    ['a quote that makes a list', '[[2,13,0,0]]\t["x",["y"],""]'],
    ['a quote that breaks the list', '[[1,6,0,0]]\t["a""]'],
    ['a backslash', '[[2,11,0,0]]\t["a\\",","b"]'],
    ['something that is not a string', '[[2,7,0,0]]\t["a",1]'],
  ])('with %s is detected as corrupt', (_what, text) => {
    expect(readResponse(text)?.[0]?.values).toBeUndefined();
  });

  test.each([
    '',
    '[]',
    'x\t',
    '{}\t',
    '[1]\t',
    '[[1,[1],0]]\t',
    '[[0,[],0,0]]\t',
    '[[1,[1,2],0,0]]\t',
    '[[1,"x",0,0]]\t',
    '[[1,[1],[5],0]]\t',
    '[[1,[1],[-1],0]]\t',
    '[[1,[1],0,[[9,"runtime","m",0,0]]]]\t',
    '[[1,[1],0,[0]]]\t',
    '[[1,[1],0,0]]\tmore',
    '[[1,5,0,0]]\t["a"]more',
    '[[1.5,[1],0,0]]\t',
  ])('%j is none', (text) => {
    expect(readResponse(text)).toBeUndefined();
  });

  test('with a value that is too deep or ill-formed fails there', () => {
    const deep = `${'['.repeat(65)}${']'.repeat(65)}`;
    const [column] = readResponse(`[[3,[1,${deep},"\\ud800"],0,0]]\t`) ?? [];
    expect(column?.errors.map((each) => ('error' in each ? each.index : -1))).toEqual([1, 2]);
  });
});
