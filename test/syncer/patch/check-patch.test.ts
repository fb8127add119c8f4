/** Errors and warnings of the static check of a patch. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchConfig, ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { endpointSliceFields } from '../../../src/syncer/kinds/endpoint-slices.ts';
import { endpointsFields } from '../../../src/syncer/kinds/endpoints.ts';
import { checkPatch, pathSegments } from '../../../src/syncer/patch/check-patch.ts';

const FIELDS = { Endpoints: endpointsFields, EndpointSlice: endpointSliceFields };

describe('errors of a patch', () => {
  test('none', () => {
    const reference = { apiVersion: 'v1', kind: 'Secret', namePath: 'name', namespacePath: 'meta["x.y"][0]' };
    expect(checkPatch({ path: 'a[*]', reference })).toEqual([]);
    expect(checkPatch({ path: '', expression: 'value', reverseExpression: 'value["k"] = 1; value' })).toEqual(
      [],
    );
    expect(checkPatch({ path: 'a', labels: {} })).toEqual([]);
  });

  test.each<[string, PatchConfig, { field: string; offset: number; message: RegExp }]>([
    [
      'the path',
      { path: 'a[?(@.x +)]', labels: {} },
      { field: 'path', offset: 9, message: /filter: unexpected end/ },
    ],
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
    ...[
      { namePath: 'a[0].b', kindPath: 'a[*].c' },
      { namePath: 'a[*].b', kindPath: 'x[*].c' },
      { namePath: 'a[*].b', kindPath: 'a[*][*].c' },
      { namePath: 'a[*][*].b', kindPath: 'a[*].c' },
    ].map((paths): [string, PatchConfig, { field: string; offset: number; message: RegExp }] => [
      `a kindPath ${paths.kindPath} with the namePath ${paths.namePath}`,
      { path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', ...paths } },
      {
        field: 'reference.kindPath',
        offset: 2,
        message: /^a wildcard is possible here only where namePath has the same one/,
      },
    ]),
    [
      'a sub-path that is the value itself',
      { path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', namePath: '.' } },
      { field: 'reference.namePath', offset: 0, message: /member/ },
    ],
  ])('%s', (_, patch, { field, offset, message }) => {
    const problems = checkPatch(patch);
    expect(problems).toEqual([{ field, offset, message: expect.stringMatching(message) as unknown }]);
  });

  test.each([
    { namePath: '[*]' },
    { namePath: 'a[*].b', namespacePath: '["a"].*.c', kindPath: '$.a[*]["k"]', apiVersionPath: 'v' },
    { namePath: 'a[*].*.b', namespacePath: 'a[*].*.c' },
    { namespacePath: 'a[*].b' },
  ])('wildcards in %j', (paths) => {
    expect(checkPatch({ path: 'a', reference: { apiVersion: 'v1', kind: 'Secret', ...paths } })).toEqual([]);
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
  const warningsOf = (path: string, kind?: 'Endpoints' | 'EndpointSlice'): unknown[] =>
    checkPatch({ path, expression: 'value' }, kind && FIELDS[kind]).map(({ severity, message, offset }) => [
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
      'this looks like a JSON Pointer, which is not supported; write metadata.labels.a',
    ],
  ] as const)('%s of %s', (path, kind, offset, message) => {
    expect(warningsOf(path, kind)).toEqual([['warning', offset, message]]);
    // Without a kind nothing is known of the fields.
    expect(warningsOf(path)).toEqual([]);
  });

  test.each([
    [String.raw`metadata.labels['app\.kubernetes\.io/name']`, 'metadata.labels["app.kubernetes.io/name"]'],
    [String.raw`.metadata.annotations["a\.b/c"]`, '.metadata.annotations["a.b/c"]'],
    [String.raw`metadata.annotations[a\.b/c]`, 'metadata.annotations["a.b/c"]'],
    [String.raw`metadata.annotations."a\.b/c"`, undefined],
    ['metadata.annotations["two words"]', undefined],
    ['metadata.annotations["a/b/c"]', undefined],
    ['metadata.labels["Example.com/x"]', undefined],
    ['metadata.labels[""]', undefined],
  ])('%s, whose key no API server takes', (path, own) => {
    const hint = own === undefined ? '' : `: write ${own}`;
    expect(warningsOf(path, 'Endpoints')).toEqual([
      ['warning', expect.any(Number), expect.stringMatching(/^never matches: /)],
    ]);
    expect(warningsOf(path, 'Endpoints')).toEqual([
      ['warning', expect.any(Number), expect.stringContaining(hint)],
    ]);
  });

  test.each([
    ['namePath', 'metadata.annotations', String.raw`['example\.com/tls']`],
    ['namespacePath', 'metadata', String.raw`annotations["example\.com/ns"]`],
  ])('a %s below %s, whose key no API server takes', (name, path, text) => {
    const reference = { apiVersion: 'v1', kind: 'Secret', namePath: 'labels.a', [name]: text };
    const found = checkPatch({ path, reference }, FIELDS.Endpoints);
    expect(found).toMatchObject([{ field: `reference.${name}`, severity: 'warning' }]);
  });

  test.each([
    ['', 'Endpoints'],
    ['metadata.annotations["Example.com/x"]', 'Endpoints'],
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

  test('jsonpath-plus reads names, indices, wildcards and keys in brackets as this program does', () => {
    const key = fc.string({
      unit: fc.constantFrom('a', 'b', '.', '/', ' ', '-', '_', '0', 'é'),
      minLength: 1,
    });
    const step = fc.oneof(
      fc.constantFrom('[*]', '[0]', '[12]'),
      fc.string({ unit: fc.constantFrom('a', 'b', 'c', '_'), minLength: 1 }).map((name) => `.${name}`),
      key.map((name) => `[${JSON.stringify(name)}]`),
      key.map((name) => `['${name}']`),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 5 }), (steps) => {
        expect(checkPatch({ path: `$${steps.join('')}`, labels: {} })).toEqual([]);
      }),
    );
  });
});

describe('references that fail on every object', () => {
  test.each<[Omit<ReferenceConfig, 'apiVersion'> & { apiVersion?: string }, string[]]>([
    [{ kind: 'Namespace' }, ['undefined reference.kind: objects of this kind have no namespace']],
    [{ kind: 'Namespace', namespacePath: 'ns' }, ['warning reference.namespacePath: the value is a string']],
    [
      { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', namePath: 'n' },
      ['undefined reference.kind: objects of this kind have no namespace'],
    ],
    [{ kind: 'Secret', namespacePath: 'ns' }, ['warning reference.namespacePath: the value is a string']],
    [{ kind: 'Secret' }, []],
  ])('%o', (reference, problems) => {
    const found = checkPatch({
      path: 'metadata.annotations["a"]',
      reference: { apiVersion: 'v1', ...reference },
    });
    expect(
      found.map(({ field, severity, message }) => `${severity} ${field}: ${message.split(/[:,;]/u)[0]}`),
    ).toEqual(problems);
  });
});
