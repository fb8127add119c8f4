import { describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../../../src/config/types.ts';
import { endpointSliceFields } from '../../../../src/syncer/kinds/endpoint-slices.ts';
import { endpointsFields } from '../../../../src/syncer/kinds/endpoints.ts';
import { checkPatch, pathSegments } from '../../../../src/syncer/patch/checks/check-patch.ts';

const FIELDS = { Endpoints: endpointsFields, EndpointSlice: endpointSliceFields };

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

  test('all fields together', () => {
    const problems = checkPatch({ path: 'a..', expression: '(', reverseExpression: ')' });
    expect(problems.map(({ field }) => field)).toEqual(['path', 'expression', 'reverseExpression']);
  });

  test('segments for comparing paths', () => {
    expect(pathSegments('a[*]."b.c"[0].1')).toEqual(['a', null, 'b.c', 0, '1']);
    expect(pathSegments('a..b')).toBeUndefined();
  });
});

describe('warnings', () => {
  const warningsOf = (path: string, kind?: 'Endpoints' | 'EndpointSlice', expression = 'value'): unknown[] =>
    checkPatch({ path, expression }, kind && FIELDS[kind]).map(({ severity, message, offset }) => [
      severity,
      offset,
      message,
    ]);

  test.each([
    [
      'subsets[*].adresses[*].ip',
      'Endpoints',
      11,
      'never matches: subsets has no field "adresses", did you mean "addresses"?',
    ],
    ['spec.foo', 'Endpoints', 0, 'never matches: an Endpoints has no field "spec"'],
    [
      'metadata.anotations.a',
      'Endpoints',
      9,
      'never matches: metadata has no field "anotations", did you mean "annotations"?',
    ],
    ['metadata.name.first', 'Endpoints', 14, 'never matches: name has no fields'],
    [
      'subsets[*].addresses[*].ip',
      'EndpointSlice',
      0,
      'never matches: an EndpointSlice has no field "subsets"',
    ],
    [
      'endpoints[*].zon',
      'EndpointSlice',
      13,
      'never matches: endpoints has no field "zon", did you mean "zone"?',
    ],
    [
      '/metadata/labels/a',
      'Endpoints',
      0,
      'this looks like a JSON Pointer, which no path is; write metadata.annotations["key"]',
    ],
  ] as const)('%s of %s', (path, kind, offset, message) => {
    expect(warningsOf(path, kind)).toEqual([['warning', offset, message]]);
    // Without a kind nothing is known of the fields.
    expect(warningsOf(path)).toEqual([]);
  });

  test.each([
    ['', 'Endpoints'],
    ['*', 'Endpoints'],
    ['*.annotations[*]', 'Endpoints'],
    ['metadata.annotations["any.thing/at-all"]', 'Endpoints'],
    ['metadata.labels.*', 'EndpointSlice'],
    ['metadata.ownerReferences[*].anything', 'Endpoints'],
    ['subsets[0].notReadyAddresses.1.targetRef.name', 'Endpoints'],
    ['subsets.*.ports[*].appProtocol', 'Endpoints'],
    ['endpoints[*].addresses[0]', 'EndpointSlice'],
    ['endpoints[*].hints.forZones[0].name', 'EndpointSlice'],
  ] as const)('none for %s of %s', (path, kind) => {
    expect(warningsOf(path, kind)).toEqual([]);
  });

  test.each([
    ['value in ["a", "b"]', 0],
    ['1 + value.replace(/^(a+)+$/i, "")', 18],
    ['/^(a+)+\\1$/.test(value)', 0],
    ['/(?=x)(a*)*/.test(value)', 0],
    ['/((a|b){2,})+/u.test(value)', 0],
    ['/(a{1,1000})+/.test(value)', 0],
  ])('%s', (expression, offset) => {
    const found = checkPatch({ path: 'a', expression });
    expect(found.map(({ severity, offset: at }) => [severity, at])).toEqual([['warning', offset]]);
  });

  test.each([
    '"a" in value',
    'value.replace(/^(a+)+$/, "")',
    'value.replace(/a+/i, "")',
    'value.replace(/(?:ab)+c+/iu, "")',
    'value.replace(/[(+)+]+\\(+\\)+/i, "")',
  ])('none for %s', (expression) => {
    expect(warningsOf('a', undefined, expression)).toEqual([]);
  });
});
