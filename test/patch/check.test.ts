import { describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../src/config/types.ts';
import { checkPatch, pathSegments } from '../../src/patch/check.ts';

describe('what is wrong with a patch', () => {
  test('nothing', () => {
    const reference = { apiVersion: 'v1', kind: 'Secret', namePath: 'name', namespacePath: 'meta["x.y"][0]' };
    expect(checkPatch({ path: 'a[*]', reference })).toEqual([]);
    expect(checkPatch({ path: '', expression: 'value', reverseExpression: 'value["k"] = 1; value' })).toEqual(
      [],
    );
    expect(checkPatch({ path: 'a', labels: {} })).toEqual([]);
  });

  test.each<[string, PatchConfig, { field: string; offset: number; message: RegExp }]>([
    ['the path', { path: 'a[?(@.x)]', labels: {} }, { field: 'path', offset: 2, message: /filters/ }],
    [
      'an expression that does not parse',
      { path: 'a', expression: 'value +' },
      { field: 'expression', offset: 7, message: /./ },
    ],
    [
      'a forbidden word',
      { path: 'a', reverseExpression: 'value + eval("1")' },
      { field: 'reverseExpression', offset: 8, message: /eval/ },
    ],
    [
      'a sub-path that does not parse',
      { path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', namePath: 'a..b' } },
      { field: 'reference.namePath', offset: 1, message: /recursive/ },
    ],
    [
      'a sub-path with a wildcard',
      { path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', namePath: 'a', kindPath: 'b[*]' } },
      { field: 'reference.kindPath', offset: 2, message: /wildcard/ },
    ],
    [
      'a sub-path that is the value itself',
      { path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', namePath: '.' } },
      { field: 'reference.namePath', offset: 0, message: /member/ },
    ],
  ])('%s', (_, patch, { field, offset, message }) => {
    const problems = checkPatch(patch);
    expect(problems).toEqual([{ field, offset, message: expect.stringMatching(message) as unknown }]);
  });

  test('everything at once', () => {
    const problems = checkPatch({ path: 'a..', expression: '(', reverseExpression: ')' });
    expect(problems.map(({ field }) => field)).toEqual(['path', 'expression', 'reverseExpression']);
  });

  test('segments for comparing paths', () => {
    expect(pathSegments('a[*]."b.c"[0].1')).toEqual(['a', null, 'b.c', 0, '1']);
    expect(pathSegments('a..b')).toBeUndefined();
  });
});
