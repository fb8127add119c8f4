/** Labels and annotations that are not copied: what cannot be excluded, and what a list of one's own leaves out. */

import { describe, expect, test } from 'vitest';
import { parseJson, textAt, type JsonObject } from '../../../src/base/json.ts';
import type { ObjectMeta } from '../../../src/kube/object.ts';
import { EXCLUDED_ANNOTATIONS } from '../../../src/syncer/config/schema-syncer.ts';
import { capturedRun } from '../../cli/captured-run.ts';
import { disagreement, NAMED } from '../../cli/config/agreement.ts';
import { parseText } from '../../cli/config/setup.ts';
import { testFolder } from '../../support/test-folder.ts';
import { worldText } from '../../support/world-file.ts';

const { write } = testFolder();

type List = 'excludeAnnotations' | 'excludeLabels';

const CONFIG = `
endpointSyncer: {name: vc, services: sync, host: {namespace: team-a}}
sync:
  toHost:
    endpoints: {patches: [{path: metadata.annotations.settings, reference: {apiVersion: v1, kind: ConfigMap}}]}
`;

/** Tenants' own keys, among them those that the translation renames. */
const LABELS = '{app: web, release: a, vcluster.loft.sh/namespace: b, vcluster.loft.sh/managed-by: c}';
const OBJECTS = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, labels: ${LABELS}}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {namespace: shop, name: web, labels: ${LABELS}, annotations: {settings: web}}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: shop
  name: web-1
  labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: other.example.com}
addressType: IPv4
endpoints: [{addresses: [192.0.2.2]}]
ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web, labels: ${LABELS}}
`;

function problemsOf(metadata: object, section = 'endpointSyncer'): string[] {
  const name = section === 'endpointSyncer' ? 'name: vc, ' : '';
  const inner = `${name}metadata: ${JSON.stringify(metadata)}`;
  const fleet = 'fleet: {enabled: true, namespaces: {include: [a]}}';
  const text = `endpointSyncer: {${section === 'endpointSyncer' ? inner : `${fleet}, defaults: {${inner}}`}}`;
  const { problems } = parseText(text, { acceptsFleet: true });
  return problems.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
}

/** The keys of copies that the tenant did not write. */
async function translatedKeys(): Promise<readonly (readonly [List, string])[]> {
  const files = ['--config', write('config.yaml', CONFIG), '-f', write('objects.yaml', OBJECTS)];
  const { out } = await capturedRun(['render', ...files, '-o', 'json']);
  const { items } = parseJson(out) as { items: (JsonObject & { metadata: ObjectMeta })[] };
  expect(items.map((one) => textAt(one, 'kind')).toSorted()).toEqual([
    'ConfigMap',
    'EndpointSlice',
    'Endpoints',
    'Service',
  ]);
  const keysOf = (map = {}): string[] =>
    Object.keys(map).filter((key) => !['app', 'settings', ...EXCLUDED_ANNOTATIONS].includes(key));
  const found = items.flatMap(({ metadata: { annotations, labels } }) => [
    ...keysOf(annotations).map((key) => ['excludeAnnotations', key] as const),
    ...keysOf(labels).map((key) => ['excludeLabels', key] as const),
  ]);
  return [...new Map(found.map((one) => [one.join(' '), one])).values()];
}

/** Written on virtual objects or by other versions, or read alone. */
const OTHERS: readonly (readonly [List, string])[] = [
  ['excludeAnnotations', 'vcluster.loft.sh/object-imported'],
  ['excludeAnnotations', 'endpoint-syncer/imported-as'],
  ['excludeAnnotations', 'vcluster.loft.sh/managed-labels'],
  ['excludeAnnotations', 'vcluster.loft.sh/controlled-by'],
  ['excludeLabels', 'vcluster.loft.sh/controlled-by'],
];

describe('what is part of the translation is refused', () => {
  test('each key that a copy of any kind has beyond those of the tenant, for a vCluster and for a fleet', async () => {
    const keys = [...(await translatedKeys()), ...OTHERS];
    expect(keys.map((one) => one.join(' '))).toEqual(
      expect.arrayContaining([
        'excludeAnnotations vcluster.loft.sh/object-name',
        'excludeAnnotations endpoint-syncer/last-synced',
        'excludeLabels kubernetes.io/service-name',
        'excludeLabels endpointslice.kubernetes.io/managed-by',
        expect.stringMatching(/^excludeLabels vcluster\.loft\.sh\/label-vc-x-/u),
      ]),
    );
    for (const [list, key] of keys)
      for (const section of ['endpointSyncer', 'endpointSyncer.defaults']) {
        const found = problemsOf({ [list]: [...EXCLUDED_ANNOTATIONS, key] }, section);
        expect(found).toEqual([
          expect.stringMatching(
            new RegExp(
              `^error ${section}\\.metadata\\.${list}\\[3\\]: this .+ part of the translation of copies`,
              'u',
            ),
          ),
        ]);
      }
  });

  test('each wildcard that includes one, with the keys that it would leave out', () => {
    const found = [
      ...['vcluster.loft.sh/*', 'endpoint-syncer/*'].map((key) =>
        problemsOf({ excludeAnnotations: [...EXCLUDED_ANNOTATIONS, key] }),
      ),
      ...['vcluster.loft.sh/*', 'endpointslice.kubernetes.io/*', 'kubernetes.io/*'].map((key) =>
        problemsOf({ excludeLabels: [key] }),
      ),
    ];
    const included = found.map((problems) => {
      expect(problems).toHaveLength(1);
      const [, keys] =
        /^error .+: this includes (.+), which the translation of copies needs/u.exec(problems[0] ?? '') ?? [];
      return keys?.split(', ');
    });
    expect(included).toEqual([
      expect.arrayContaining(['vcluster.loft.sh/object-name', 'vcluster.loft.sh/controlled-by']),
      ['endpoint-syncer/last-synced', 'endpoint-syncer/imported-as'],
      ['vcluster.loft.sh/namespace', 'vcluster.loft.sh/managed-by', 'vcluster.loft.sh/controlled-by'],
      ['endpointslice.kubernetes.io/managed-by'],
      ['kubernetes.io/service-name'],
    ]);
  });

  test('the reported file', () => {
    const [problem, ...others] = parseText(worldText('field/f11-config.yaml')).problems;
    expect(others).toEqual([]);
    expect(problem).toMatchObject({ severity: 'error', path: 'endpointSyncer.metadata.excludeLabels[1]' });
    expect(problem?.message).toContain('this label is part of the translation of copies');
  });
});

test.each<[List, string[]]>([
  ['excludeLabels', ['multicluster.kubernetes.io/*', 'app', 'release', 'vcluster.loft.sh/other']],
  ['excludeAnnotations', ['kubernetes.io/*', 'vcluster.loft.sh/skip-backsync', 'kubernetes.io/service-name']],
])('%s: what another program means by a key is the choice of its user: %j', (list, keys) => {
  expect(
    problemsOf({ [list]: list === 'excludeLabels' ? keys : [...EXCLUDED_ANNOTATIONS, ...keys] }),
  ).toEqual([]);
});

test('an editor with the schema refuses the same', () => {
  const files = ['a/*', 'app', 'kubernetes.io/*', 'vcluster.loft.sh/*', 'vcluster.loft.sh/object-uid']
    .concat(['vcluster.loft.sh/managed-by', 'endpoint-syncer/*', 'kubernetes.io/service-name'])
    .concat(['vcluster.loft.sh/label-vc-x-a4d451ec23', 'vcluster.loft.sh/label-vc'])
    .flatMap((key) => (['excludeAnnotations', 'excludeLabels'] as const).map((list) => ({ [list]: [key] })));
  const found = files.map((metadata) => disagreement({ endpointSyncer: { ...NAMED, metadata } }));
  expect(found.filter((one) => one !== undefined)).toEqual([]);
});

describe('a list in the place of the default one', () => {
  test.each([
    [[], 'endpointSyncer'],
    [['example.com/a'], 'endpointSyncer'],
    [[], 'endpointSyncer.defaults'],
    [['example.com/a'], 'endpointSyncer.defaults'],
  ])('%j of %s is named', (list, section) => {
    const [problem, ...others] = problemsOf({ excludeAnnotations: list }, section);
    expect(others).toEqual([]);
    expect(problem).toContain(`so these are copied: add ${EXCLUDED_ANNOTATIONS.join(', ')}`);
  });

  test('with the default ones is not', () => {
    expect(problemsOf({ excludeAnnotations: EXCLUDED_ANNOTATIONS })).toEqual([]);
    expect(problemsOf({})).toEqual([]);
  });
});
