/** Errors and warnings of the static check of a patch. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../../src/config/types.ts';
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
      'this looks like a JSON Pointer, which is not supported; write metadata.annotations["key"]',
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
    [
      'a',
      'value === "a" ? 1 : 2 === "2"',
      20,
      '`===` compares a number with a string, so this is always false',
    ],
    [
      'a',
      'value.trim() != 3',
      0,
      '`!=` converts between a string and a number; convert explicitly and use `!==`',
    ],
    ['a', 'typeof value == "sting"', 0, '`typeof` never gives "sting", so this is always false'],
    ['a', 'typeof value === undefined', 0, '`===` compares a string with undefined, so this is always false'],
    ['a', 'base64.decode(value) === 1', 0, '`===` compares a string with a number, so this is always false'],
    [
      'a',
      'value === []',
      0,
      '`===` compares objects by identity, so this is always false; compare JSON.stringify() of both',
    ],
    [
      'metadata.annotations["a"]',
      'value == 5 ? "five" : value',
      0,
      '`==` converts between a string and a number; convert explicitly and use `===`',
    ],
    [
      'subsets[*].ports[*].port',
      'value === "80" ? 8080 : value',
      0,
      '`===` compares a number with a string, so this is always false',
    ],
    [
      'a',
      '1 + 1',
      0,
      'the expression does not read `value` or `context`, so all objects get the same result',
    ],
    [
      'a',
      '((x) => x + "a")("b")',
      0,
      'the expression does not read `value` or `context`, so all objects get the same result',
    ],
    [
      'subsets[*].addresses[*].hostname',
      'context.virtualObject.metadata.name',
      0,
      'the expression does not read `value` or `context.path`, so all matches of an object get the same result',
    ],
    ...['context.virtualObject.metadata.name', 'context.hostObject === null', 'context.path.length'].map(
      (expression) =>
        [
          'a',
          expression,
          0,
          'the expression does not read `value`, which its result replaces; if that is intended, write `void value;` before it',
        ] as const,
    ),
  ] as const)('%s: %s', (path, expression, at, message) => {
    const expected = { field: 'expression', offset: at, message, severity: 'warning' };
    expect(checkPatch({ path, expression })).toEqual([expected]);
  });

  test.each([
    [
      'a[?(true)].b',
      4,
      'filter: it reads neither `@` nor `context.path`, so it selects everything or nothing',
    ],
    [
      'a[?(@ in ["x"])]',
      4,
      'filter: `in` checks for an index of the list, not for an element; use [...].includes(value)',
    ],
    [
      'subsets[*].ports[?(1 && @.nmae === "x")].port',
      24,
      'filter: never matches: subsets[*].ports[*] has no field "nmae"; did you mean `@.name`?',
    ],
    [
      'subsets[?(@.addresses && @.x)].ports[*].port',
      25,
      'filter: never matches: subsets[*] has no field "x"; it has addresses, notReadyAddresses, ports',
    ],
  ])('%s', (path, offset, message) => {
    const known = path.startsWith('subsets') ? endpointsFields : undefined;
    const warning = { field: 'path', offset, message, severity: 'warning' };
    expect(checkPatch({ path, labels: {} }, known)).toEqual([warning]);
  });

  test.each([
    'metadata.annotations[?(@.includes("{{"))]',
    'metadata[?(@.x)]',
    'subsets[*].ports[?(@.name === "https" && context.path)].port',
    'subsets[?(@.ports.length > 0)].addresses[?(@["ip"].startsWith("10."))].hostname',
  ])('none for %s', (path) => {
    expect(checkPatch({ path, labels: {} }, endpointsFields)).toEqual([]);
  });

  test.each([
    ['a', 'value == null'],
    ['a', 'value === undefined || null == undefined'],
    ['a', 'valueExists === true'],
    ['a', '"constant"'],
    ['a', '-1'],
    ['a', 'undefined'],
    ['a', '({ a: [1, "b"] })'],
    ['a', 'context.vcluster.name'],
    ['a', 'context.vcluster.name + "-" + context.vcluster.namespace'],
    ['a', 'void value; context.virtualObject.metadata.name'],
    ['subsets[*].addresses[*].hostname', 'value + context.path.length'],
    ['metadata.annotations["a"]', 'value === "5"'],
    ['metadata.annotations["a"]', 'value = Number(value); value === 5'],
    ['metadata.annotations["a"]', '((value) => value === 5)(Number(value))'],
    ['metadata.annotations', 'value["x"] == 5 ? {} : value'],
    ['metadata.annotations["a"].b', 'value === 5'],
    ['subsets[*].ports[*].port', 'value === 80 ? 8080 : value'],
    ['metadata.annotations.of-a-name-that-once-took-minutes-to-read["a/b"]', 'value === "5"'],
  ])('none for %s: %s', (path, expression) => {
    expect(checkPatch({ path, expression })).toEqual([]);
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

describe('what fails on every object', () => {
  const PATH = 'metadata.annotations["a"]';
  const found = (patch: Omit<PatchConfig, 'path'>, path = PATH): unknown =>
    checkPatch({ path, ...patch }).map(
      ({ field, severity = 'error', message }) => `${severity} ${field}: ${message.split(/[:,;]/u)[0]}`,
    );

  test.each<[Omit<PatchConfig, 'path'>, string[]]>([
    [{ expression: '(v) => v' }, ['warning expression: the result is a function']],
    [{ expression: 'function f() {}' }, ['warning expression: the result is a function']],
    [{ expression: 'value.toUpprCase()' }, ['warning expression: a string has no method `toUpprCase`']],
    [{ expression: 'value?.toUpprCase?.()' }, []],
    [
      { expression: 'value.trim().toUpprCase()' },
      ['warning expression: a string has no method `toUpprCase`'],
    ],
    [
      { reference: { apiVersion: 'v1', kind: 'Namespace' } },
      ['warning reference.kind: objects of this kind have no namespace'],
    ],
    [
      { reference: { apiVersion: 'v1', kind: 'Namespace', namespacePath: 'ns' } },
      ['warning reference.namespacePath: the value is a string'],
    ],
    [
      { reference: { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', namePath: 'n' } },
      ['warning reference.kind: objects of this kind have no namespace'],
    ],
    [
      { reference: { apiVersion: 'v1', kind: 'Secret', namespacePath: 'ns' } },
      ['warning reference.namespacePath: the value is a string'],
    ],
    [{ reference: { apiVersion: 'v1', kind: 'Secret' } }, []],
  ])('%o', (patch, problems) => {
    expect(found(patch)).toEqual(problems);
  });

  test('of ports', () => {
    expect(found({ expression: 'value.padStart(4)' }, 'subsets[*].ports[*].port')).toEqual([
      'warning expression: a number has no method `padStart`',
    ]);
  });
});
