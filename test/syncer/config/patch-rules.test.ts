/** Validation of the patches in a configuration. */

import { describe, expect, test } from 'vitest';
import { parseText, problemsIn, validConfig, withPatches } from '../../cli/config/setup.ts';
import { isOverruled, loadCases } from '../../support/cases.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { formatPath } from '../../../src/config-file/finding.ts';
import { checkPatches } from '../../../src/syncer/config/patch-rules.ts';

const BASE = 'sync.toHost.endpoints.patches';

describe('cases of test/cases', () => {
  const valid = loadCases('patches').filter(({ id }) => id.startsWith('valid-'));

  test('all cases are run', () => {
    expect(valid.map(({ id }) => id)).toEqual(['valid-01', 'valid-02', 'valid-04', 'valid-05', 'valid-06']);
  });

  test.each(valid.filter((one) => !isOverruled(one)))('$id', ({ input, expected }) => {
    const { patchesPath } = input as { patchesPath: string }; // the shape of these cases
    const path = patchesPath.split('.');
    const findings = checkPatches(input['patches'], path);
    const { error } = expected as { error: string | null }; // the shape of these cases
    expect(findings.map(({ message }) => message)).toEqual(error === null ? [] : [error]);
    expect(findings.every((finding) => formatPath(finding.path).startsWith(path.join('.')))).toBe(true);
  });

  const mappings = loadCases('names').filter(({ id }) => id.startsWith('ns-map-valid-'));

  test.each(mappings)('$id', ({ input, expected }) => {
    const problems = problemsIn(
      JSON.stringify({
        endpointSyncer: { name: input['vclusterName'], host: { namespace: input['controlPlaneNamespace'] } },
        sync: { toHost: { namespaces: { enabled: true, mappings: { byName: input['mappings'] } } } },
      }),
    );
    const { error } = expected as { error: string | null }; // the shape of these cases
    const prefix = 'config.sync.toHost.namespaces.mappings.byName: ';
    const [problem = ''] = problems;
    expect(problems).toHaveLength(error === null ? 0 : 1);
    expect(error === null || problem.endsWith(error.slice(prefix.length))).toBe(true);
    expect(error === null || problem.includes(prefix.slice('config.'.length, -2))).toBe(true);
  });

  test('all mapping cases are run', () => {
    expect(mappings).toHaveLength(9);
  });
});

describe('modes', () => {
  test.each([
    ['expression', '{path: a, expression: value}'],
    ['reverse expression', '{path: a, reverseExpression: value}'],
    ['both', '{path: a, expression: value, reverseExpression: value}'],
    ['reference', '{path: a, reference: {apiVersion: v1, kind: Secret}}'],
    ['labels', '{path: a, labels: {}}'],
    ['labels beside an empty expression', '{path: a, expression: "", labels: {}}'],
    ['the whole object', '{path: "", expression: value}'],
  ])('%s', (_, entry) => {
    expect(problemsIn(withPatches(entry))).toEqual([]);
  });

  test.each([
    ['none', '{path: a}', `5:5 ${BASE}[0] ${BASE}[0] need to use one of: expression, labels or reference`],
    [
      'an empty one',
      '{path: a, expression: ""}',
      `5:5 ${BASE}[0] ${BASE}[0] need to use one of: expression, labels or reference`,
    ],
    [
      'two',
      '{path: a, expression: value, labels: {}}',
      `5:5 ${BASE}[0] ${BASE}[0] can only use one of: expression, labels or reference`,
    ],
    [
      'three',
      '{path: a, reverseExpression: value, labels: {}, reference: {apiVersion: v1, kind: A}}',
      `5:5 ${BASE}[0] ${BASE}[0] can only use one of: expression, labels or reference`,
    ],
    ['no path', '{expression: value}', `5:5 ${BASE}[0].path is required`],
    [
      'a path that is no text',
      '{path: [a], expression: value}',
      `5:12 ${BASE}[0].path must be text, found a list`,
    ],
    [
      'an expression that is no text',
      '{path: a, expression: 1}',
      `5:27 ${BASE}[0].expression must be text, found 1: put it in quotes`,
    ],
    [
      'an entry that is no mapping',
      'text',
      `5:5 ${BASE}[0] must be a mapping, found "text": it has the keys path, expression, reverseExpression, reference, labels`,
    ],
    [
      'an entry that is nothing',
      'null',
      `5:5 ${BASE}[0] must be a mapping, found null: it has the keys path, expression, reverseExpression, reference, labels`,
    ],
    [
      'an unknown member',
      '{path: a, expresion: value, labels: {}}',
      `5:15 ${BASE}[0].expresion unknown key "expresion", did you mean "expression"?`,
    ],
    [
      'labels with content',
      '{path: a, labels: {app: x}}',
      `5:24 ${BASE}[0].labels.app takes no keys: write {} instead of "app"`,
    ],
  ])('%s', (_, entry, problem) => {
    expect(problemsIn(withPatches(entry))).toEqual([problem]);
  });

  test('labels without braces get a hint', () => {
    const text = `endpointSyncer: {name: vc}\nsync:\n  toHost:\n    endpoints:\n      patches:\n        - path: a\n          labels:\n`;
    expect(problemsIn(text)).toEqual([
      `6:11 ${BASE}[0] ${BASE}[0] need to use one of: expression, labels or reference (an empty "labels:" counts as not set, write labels: {})`,
    ]);
  });

  test('patches that are not a list', () => {
    expect(
      problemsIn('endpointSyncer: {name: vc}\nsync: {toHost: {endpoints: {patches: {path: a}}}}'),
    ).toEqual([`2:38 ${BASE} must be a list, found a mapping: start each entry with "- "`]);
  });
});

describe('targets', () => {
  test.each([
    ['metadata.name', 'metadata.name'],
    ['$.metadata["namespace"]', 'metadata.namespace'],
    [".metadata['uid']", 'metadata.uid'],
    [
      'metadata.annotations["vcluster.loft.sh/object-name"]',
      'the bookkeeping key "vcluster.loft.sh/object-name"',
    ],
    [
      'metadata.annotations["endpoint-syncer/last-synced"]',
      'the bookkeeping key "endpoint-syncer/last-synced"',
    ],
    ['metadata.labels["vcluster.loft.sh/managed-by"]', 'the bookkeeping key "vcluster.loft.sh/managed-by"'],
  ])('%s is refused', (path, what) => {
    const [problem, ...others] = problemsIn(withPatches(JSON.stringify({ path, expression: 'value' })));
    expect(others).toEqual([]);
    expect(problem).toBe(`5:13 ${BASE}[0].path ${what} cannot be patched: the translation depends on it`);
  });

  test.each<[string, string]>([
    ['metadata.finalizers', 'a copy would stay forever'],
    ['metadata.finalizers[0]', 'a copy would stay forever'],
    ['metadata["ownerReferences"].0.uid', 'the host deletes a copy with its owner'],
    ...'generateName selfLink resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields'
      .split(' ')
      .map((field) => [`metadata.${field}`, 'each API server sets its own'] as [string, string]),
  ])('%s is refused with the reason', (path, reason) => {
    const problems = problemsIn(withPatches(JSON.stringify({ path, expression: 'value' })));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`cannot be patched: ${reason}`);
  });

  test.each([
    'metadata',
    'metadata.annotations',
    'metadata.annotations[*]',
    'metadata.labels["vcluster.loft.sh/object-name"]',
    'metadata.names',
    'spec.metadata.name',
    'name',
  ])('%s is not', (path) => {
    expect(problemsIn(withPatches(JSON.stringify({ path, expression: 'value' })))).toEqual([]);
  });
});

describe('only a reverseExpression', () => {
  const entry = (path: string): JsonObject => ({ path, reverseExpression: 'value' });
  const problemsOf = (key: string, path: string): string[] =>
    problemsIn(withPatches(JSON.stringify(entry(path)), key));

  test.each([
    ['endpoints', '', 'the whole object'],
    ['endpoints', '$', 'the whole object'],
    ['endpoints', '*', 'the whole object'],
    ['endpoints', 'subsets', 'its subsets'],
    ['endpoints', '$["subsets"]', 'its subsets'],
    ['endpoints', 'subsets[*]', 'its subsets'],
    ['endpointSlices', '', 'the whole object'],
    ['endpointSlices', 'endpoints', 'its endpoints'],
    ['endpointSlices', 'ports', 'its ports'],
    ['endpointSlices', 'ports.*', 'its ports'],
  ])('of %s on %j would empty the copy', (key, path, what) => {
    expect(problemsOf(key, path)).toEqual([
      `5:13 sync.toHost.${key}.patches[0].path with only a reverseExpression the host keeps ${what}, so every copy would be created without addresses ` +
        'or ports: add expression: value, or name a path further down',
    ]);
  });

  test.each(['subsets', 'endpoints', 'ports'])('in a file of patches for any kind, on %j, too', (path) => {
    expect(checkPatches([entry(path)], ['patches'])).toHaveLength(1);
  });

  test.each([
    ['endpoints', 'subsets[*].addresses[*].hostname'],
    ['endpoints', 'ports'], // no field of this kind
    ['endpoints', 'metadata.annotations'],
    ['endpoints', 'other'],
    ['endpointSlices', 'ports[*].name'],
    ['endpointSlices', 'subsets'], // no field of this kind
  ])('of %s on %j is valid', (key, path) => {
    expect(problemsOf(key, path)).toEqual([]);
  });
});

describe('two entries with one path', () => {
  test.each([
    ['a.b', 'a.b', '"a.b"'],
    ['a.b', '$.a["b"]', '"a.b" = "$.a[\\"b\\"]"'],
    ['a[0]', 'a.0', '"a[0]" = "a.0"'],
    ['a[*]', 'a.*', '"a[*]" = "a.*"'],
    ['', '$', '"" = "$"'],
  ])('%j and %j', (first, second, named) => {
    const entries = [first, second].map((path) => JSON.stringify({ path, expression: 'value' }));
    expect(problemsIn(withPatches(entries.join(',\n')))).toEqual([
      `6:13 ${BASE}[1].path ${BASE}[0] and ${BASE}[1] have the same path ${named}`,
    ]);
  });

  test('three entries: each is reported with the previous one', () => {
    const entries = Array.from({ length: 3 }, () => JSON.stringify({ path: 'a', labels: {} }));
    expect(problemsIn(withPatches(entries.join(',\n')))).toEqual([
      `6:13 ${BASE}[1].path ${BASE}[0] and ${BASE}[1] have the same path "a"`,
      `7:13 ${BASE}[2].path ${BASE}[1] and ${BASE}[2] have the same path "a"`,
    ]);
  });

  test('overlapping paths are valid', () => {
    const entries = ['a', 'a.b', 'a[*]'].map((path) => JSON.stringify({ path, labels: {} }));
    expect(problemsIn(withPatches(entries.join(',\n')))).toEqual([]);
  });

  describe('several references under one path', () => {
    const SECRET = { apiVersion: 'v1', kind: 'Secret' };
    const list = (...entries: readonly object[]): string =>
      withPatches(entries.map((entry) => JSON.stringify(entry)).join(',\n'));
    const ref = (path: string, paths: object = {}): object => ({ path, reference: { ...SECRET, ...paths } });

    test.each([
      ['different namePaths', [ref('a', { namePath: 'b' }), ref('a', { namePath: 'c' })]],
      [
        'one namespacePath',
        [
          { namePath: 'b', namespacePath: 'n' },
          { namePath: 'c', namespacePath: 'n' },
        ].map((paths) => ref('a', paths)),
      ],
      ['a path written differently', [ref('a.b', { namePath: 'c' }), ref('$["a"]["b"]', { namePath: 'd' })]],
      [
        'a reference beside a namespace alone',
        [ref('a', { namePath: 'b' }), ref('a', { namespacePath: 'n' })],
      ],
      ['two namespaces', [ref('a', { namespacePath: 'm' }), ref('a', { namespacePath: 'n' })]],
      ['three', ['b', 'c', 'd'].map((namePath) => ref('a[*]', { namePath }))],
    ])('%s', (_, entries) => {
      expect(problemsIn(list(...entries))).toEqual([]);
    });

    const same = (index: number, written: string): string =>
      `${5 + index}:13 ${BASE}[${index}].path ${BASE}[${index - 1}] and ${BASE}[${index}] have the same path ${written}`;
    const needsOther = (written: string): string =>
      same(1, `${written}: several references to one value need different namePaths`);

    test.each<[string, object[], string[]]>([
      ['one namePath', [ref('a', { namePath: 'b.c' }), ref('a', { namePath: 'b.c' })], [needsOther('"a"')]],
      ...['["b"].c', '$.b.c', "b['c']", '."b"."c"'].map((namePath): [string, object[], string[]] => [
        `b.c as ${namePath}`,
        [ref('a', { namePath: 'b.c' }), ref('$.a', { namePath })],
        [needsOther('"a" = "$.a"')],
      ]),
      ['b[0] as b.0', [ref('a', { namePath: 'b[0]' }), ref('a', { namePath: 'b.0' })], [needsOther('"a"')]],
      [
        'one namespace',
        [ref('a', { namespacePath: 'n' }), ref('a', { namespacePath: 'n' })],
        [needsOther('"a"')],
      ],
      ['no namePath', [ref('a'), ref('a', { namePath: 'b' })], [needsOther('"a"')]],
      ['no namePath last', [ref('a', { namePath: 'b' }), ref('a')], [needsOther('"a"')]],
      [
        'beside an expression',
        [ref('a', { namePath: 'b' }), { path: 'a', expression: 'value' }],
        [same(1, '"a"')],
      ],
      ['beside labels', [{ path: 'a', labels: {} }, ref('a', { namePath: 'b' })], [same(1, '"a"')]],
    ])('%s is an error', (_, entries, problems) => {
      expect(problemsIn(list(...entries))).toEqual(problems);
    });

    test('the nearest entry that it conflicts with is named', () => {
      const entries = ['b', 'c', 'b'].map((namePath) => ref('a', { namePath }));
      expect(problemsIn(list(...entries))).toEqual([
        `7:13 ${BASE}[2].path ${BASE}[0] and ${BASE}[2] have the same path "a": several references to one value need different namePaths`,
      ]);
    });
  });
});

describe('references', () => {
  const entry = (reference: string): string => withPatches(`{path: a, reference: ${reference}}`);

  test.each([
    ['{kind: Secret}', `5:15 ${BASE}[0].reference.apiVersion is required`],
    ['{apiVersion: v1}', `5:15 ${BASE}[0].reference.kind is required`],
    [
      '{apiVersion: a/b/c, kind: Secret}',
      `5:39 ${BASE}[0].reference.apiVersion must be VERSION or GROUP/VERSION, such as v1 or apps/v1`,
    ],
    ['{apiVersion: v1, kind: "a b"}', `5:49 ${BASE}[0].reference.kind must be a kind, such as Secret`],
    [
      '{apiVersion: v1, kind: A, kindPath: k}',
      `5:52 ${BASE}[0].reference.kindPath namePath is required with kindPath: set it to the path of the name`,
    ],
    [
      '{apiVersion: v1, kind: A, namePath: "a["}',
      `5:64 ${BASE}[0].reference.namePath unclosed bracket: "]" is missing`,
    ],
  ])('%s', (reference, problem) => {
    expect(problemsIn(entry(reference))).toEqual([problem]);
  });

  test('all members are kept', () => {
    const config = validConfig(
      entry('{apiVersion: v1, kind: A, kindPath: k, apiVersionPath: v, namePath: name, namespacePath: ""}'),
    );
    expect(config.sync.endpoints.patches).toEqual([
      {
        path: 'a',
        reference: { apiVersion: 'v1', kind: 'A', kindPath: 'k', apiVersionPath: 'v', namePath: 'name' },
      },
    ]);
  });
});

describe('carets into paths and expressions', () => {
  const block = (style: string, lines: string): string =>
    `endpointSyncer: {name: vc}\nsync:\n  toHost:\n    endpoints:\n      patches:\n        - path: a\n          expression: ${style}\n${lines}`;

  test.each([
    [
      'a literal block',
      block('|', '            const x = 1;\n            value + foo(\n'),
      '            value + foo(\n                        ^',
    ],
    [
      'a folded block',
      block('>-', '            value\n            + eval("x")\n'),
      '            + eval("x")\n              ^',
    ],
    [
      'double quotes',
      block('"value + \\"a\\" + eval(1)"', ''),
      '          expression: "value + \\"a\\" + eval(1)"\n                                       ^',
    ],
    [
      'a plain line',
      block('value + eval(1)', ''),
      '          expression: value + eval(1)\n                              ^',
    ],
    [
      'an alias',
      `x: &bad value + eval(1)\n${block('*bad', '')}`,
      'x: &bad value + eval(1)\n                ^',
    ],
  ])('%s', (_, text, excerpt) => {
    expect(parseText(text).problems.map((problem) => problem.excerpt)).toEqual([excerpt]);
  });

  test('a path', () => {
    expect(
      parseText(withPatches('{path: "a.b[?(@.c +)]", expression: value}')).problems.map(
        ({ excerpt }) => excerpt,
      ),
    ).toEqual(['    {path: "a.b[?(@.c +)]", expression: value}\n                       ^']);
  });
});

describe('patches of Services', () => {
  const services = (entries: string, mode = 'sync'): string =>
    `endpointSyncer: {name: vc, services: ${mode}}\nsync: {toHost: {services: {patches: ${entries}}}}\n`;

  test("are read where this program syncs them, and are vCluster's otherwise", () => {
    const entries = '[{path: spec.type, expression: \'"NodePort"\'}]';
    const patches = [{ path: 'spec.type', expression: '"NodePort"' }];
    expect(validConfig(services(entries)).sync.services).toEqual({ enabled: true, patches });
    expect(validConfig(services(entries, '{mode: sync}')).sync.services.patches).toEqual(patches);
    expect(validConfig(services(entries, 'vcluster')).sync.services.patches).toEqual([]);
    expect(parseText(services('[{path: "a["}, 7]', 'vcluster')).config?.sync.services.patches).toEqual([]);
  });

  test.each([
    ['[{path: "a[", expression: value}]', /"a\["|bracket|path/u],
    ['[{path: a}]', /need to use one of: expression, labels or reference/u],
    ['[{path: a, expresion: value}]', /unknown key "expresion", did you mean "expression"\?/u],
    ['[{path: a, labels: {}}, {path: a, labels: {}}]', /have the same path "a"/u],
    ['[{path: metadata.name, expression: value}]', /metadata\.name cannot be patched/u],
    [
      '[{path: spec.selector, expression: value}]',
      /spec\.selector of a Service cannot be patched: a selector/u,
    ],
    ['[{path: spec.selector.app, expression: value}]', /spec\.selector of a Service cannot be patched/u],
    [
      '[{path: spec.clusterIP, expression: value}]',
      /spec\.clusterIP of a Service .*: the host allocates its own/u,
    ],
    ['[{path: "spec.clusterIPs[0]", expression: value}]', /spec\.clusterIPs of a Service/u],
    ['[{path: "spec.ports[*].nodePort", expression: value}]', /spec\.ports\.\*\.nodePort of a Service/u],
    [
      `[{path: 'spec.ports[?(@.name === "a")].nodePort', expression: value}]`,
      /spec\.ports\.\*\.nodePort of a Service/u,
    ],
    ['[{path: spec.ports.0.nodePort, expression: value}]', /spec\.ports\.\*\.nodePort of a Service/u],
    [
      '[{path: status.loadBalancer, expression: value}]',
      /status of a Service .*: each cluster keeps its own/u,
    ],
    ['[{path: spec, reverseExpression: value}]', /the host keeps its spec, so every copy would be created/u],
  ])('%s is an error', (entries, message) => {
    expect(problemsIn(services(entries)).join('\n')).toMatch(message);
    expect(problemsIn(services(entries, 'vcluster'))).toEqual([expect.stringContaining('(warning)')]);
  });

  test('leave those of other kinds as they are', () => {
    expect(problemsIn(withPatches('{path: spec.selector, expression: value}'))).toEqual([]);
    expect(problemsIn(services('[{path: spec.ports, reverseExpression: value}]'))).toEqual([]);
  });
});
