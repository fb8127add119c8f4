/** The command `migrate` without clusters: our configuration, the change of vCluster's values, the table, exit codes. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { parse, stringify, type ToStringOptions } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { mergeConfig, withoutEmptyKeys } from '../../src/config/vcluster-values.ts';
import { costlyRuns } from '../support/costly-runs.ts';
import { capturedRun } from './captured-run.ts';

const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-migrate-'));
afterAll(() => rmSync(folder, { recursive: true }));

const VALUES = `# Of the platform team.
sync:
  # Kinds.
  toHost:
    pods: {enabled: true}
    endpoints:
      patches:
        - path: metadata.annotations["example.com/owner"]   # kept
          expression: '"team-" + value'
          reverseExpression: value.replace(/^team-/, "")
`;

async function migrate(values: string, ...args: string[]) {
  const file = join(folder, 'vcluster.yaml');
  writeFileSync(file, values);
  const run = await capturedRun(['migrate', '--vcluster-config', file, '--name', 'vc', ...args]);
  return { ...run, out: run.out.replaceAll(`${folder}/`, ''), err: run.err.replaceAll(`${folder}/`, '') };
}

const BOTH_OFF = { sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: false } } } };

async function json(values: string) {
  const { code, out } = await migrate(values, '-o', 'json');
  return {
    code,
    ...(JSON.parse(out) as { config: object; values: string; table: Record<string, string>[] }),
  };
}

test('prints the three parts', async () => {
  const { code, out, err } = await migrate(VALUES, '--host-namespace', 'team-a');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain(`# config.yaml, beside vcluster.yaml
sync:
  toHost:
    endpoints:
      enabled: true
    endpointSlices:
      enabled: true
endpointSyncer:
  name: vc
  vclusterConfig: vcluster.yaml
  virtual:
    secret: vc-vc
  host:
    namespace: team-a
`);
  expect(out).toContain(`--- vcluster.yaml
+++ vcluster.yaml
@@ -2,8 +2,11 @@
 sync:
   # Kinds.
   toHost:
+    endpointSlices:
+      enabled: false
     pods: {enabled: true}
     endpoints:
+      enabled: false
       patches:
`);
  expect(out).toMatch(
    /^Endpoints +vCluster +endpoint-syncer +those without a Service .* endpointSyncer\.requireService: true$/mu,
  );
  expect(out).toMatch(/^Services, Pods and all other kinds +vCluster +vCluster/mu);
  expect(parse(/^# Add to vCluster's values.*\n([\s\S]*)$/mu.exec(out)?.[1] ?? '')).toEqual({
    rbac: {
      role: {
        extraRules: [
          { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
        ],
      },
    },
  });
});

test('-o helm prints values of the chart, with the patches and the Secrets of the virtual cluster', async () => {
  const { code, out, err } = await migrate(VALUES, '--host-namespace', 'team-a', '-o', 'helm');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out)
    .toBe(`# Values of the chart of endpoint-syncer, from vcluster.yaml. vCluster's own values change too: see the output without -o helm.
vclusterConfigSecret: vc-config-vc
config:
  sync:
    toHost:
      endpoints:
        enabled: true
        patches:
          - path: metadata.annotations["example.com/owner"]
            expression: '"team-" + value'
            reverseExpression: value.replace(/^team-/, "")
      endpointSlices:
        enabled: true
      pods:
        enabled: true
  endpointSyncer:
    name: vc
    virtual:
      secret: vc-vc
    host:
      namespace: team-a
`);
});

test('-o helm fails as the other formats do if a patch would be lost', async () => {
  const { code, err } = await migrate(VALUES.replace(`'"team-" + value'`, 'Math.random()'), '-o', 'helm');
  expect(code).toBe(1);
  expect(err).toContain('sync.toHost.endpoints.patches[0].expression');
});

test('what it prints is valid, and changes nothing when it is done', async () => {
  const { config, values } = await json(VALUES);
  const file = join(folder, 'config.yaml');
  writeFileSync(join(folder, 'vcluster.yaml'), values);
  writeFileSync(file, JSON.stringify(config));
  expect(await capturedRun(['validate', file])).toMatchObject({ code: 0, out: '' });
  const again = await json(values);
  expect(again.values).toBe(values);
  expect(again.table.filter(({ today }) => today === 'vCluster')).toHaveLength(1);
});

test('a patch that this program refuses would be lost: exit 1', async () => {
  const { code, out, err } = await migrate(VALUES.replace(`'"team-" + value'`, 'Math.random()'));
  expect(code).toBe(1);
  expect(out).toMatch(
    /patches\[0\] metadata.annotations.* +vCluster +nobody +`Math\.random` is not allowed/u,
  );
  expect(err).toMatch(/^vcluster\.yaml:9:23: sync\.toHost\.endpoints\.patches\[0\]\.expression: /u);
});

describe('disables what vCluster syncs, and leaves the rest as it is written', () => {
  const off = { sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: false } } } };
  test.each<[string, string, object]>([
    ['an empty file', '', off],
    ['a comment alone', '# nothing\n', off],
    ['another section', 'controlPlane: {}\n', { controlPlane: {}, ...off }],
    ['an empty section', 'sync:\n', off],
    ['an empty kind', 'sync:\n  toHost:\n    endpoints:\n', off],
    ['flow style', 'sync: {toHost: {endpoints: {enabled: true}}}\n', off],
    ['text for a boolean', 'sync:\n  toHost:\n    endpoints: {enabled: "true"}\n', off],
    [
      'anchors',
      'x: &on {enabled: true}\nsync:\n  toHost:\n    endpoints: {enabled: true}\n',
      { x: { enabled: true }, ...off },
    ],
  ])('%s', async (_, values, expected) => {
    expect(parse((await json(values)).values)).toEqual(expected);
  });

  test('only the kinds that it syncs', async () => {
    const values = 'sync: {toHost: {endpointSlices: {enabled: false}, endpoints: {enabled: true}}}\n';
    const { config, values: after, table } = await json(values);
    expect(after).toBe(values.replace('true', 'false'));
    expect(config).toMatchObject({
      sync: { toHost: { endpoints: { enabled: true }, endpointSlices: { enabled: false } } },
    });
    expect(table.find(({ what }) => what === 'EndpointSlices')).toMatchObject({
      today: 'nobody',
      afterwards: 'nobody',
    });
  });
});

describe('wrong input', () => {
  test('no file', async () => {
    const { code, err } = await capturedRun(['migrate']);
    expect(code).toBe(2);
    expect(err).toContain('--vcluster-config is required');
  });

  test('a file that does not exist, or is no YAML', async () => {
    const missing = await capturedRun(['migrate', '--vcluster-config', join(folder, 'none.yaml')]);
    expect(missing).toMatchObject({ code: 2, out: '' });
    expect(missing.err).toContain('there is no such file');
    expect(await migrate('sync: [1\n')).toMatchObject({ code: 2, out: '' });
  });

  test('without a name, a note says which flag sets it', async () => {
    const file = join(folder, 'vcluster.yaml');
    writeFileSync(file, VALUES);
    const { code, out, err } = await capturedRun(['migrate', '--vcluster-config', file]);
    expect({ code, err }).toEqual({
      code: 0,
      err: 'note: --name sets the name of the virtual cluster, that of its release\n',
    });
    expect(out).toContain('name: my-vcluster\n');
  });
});

const WORLD = join(import.meta.dirname, '..', 'cases', 'world', 'migrate');

describe('what people pass', () => {
  const run = async (name: string) => {
    const { code, out, err } = await capturedRun([
      'migrate',
      '--name',
      'vc',
      '--vcluster-config',
      join(WORLD, name),
    ]);
    return { code, out, err: err.replaceAll(`${WORLD}/`, '') };
  };

  test.each([
    ['aliasSecond.yaml', []],
    ['anchorFirst.yaml', []],
    ['globalAnchor.yaml', ['"team-" + value']],
    ['multidoc.yaml', []],
  ])('%s: says what to write by hand, exit 1', async (name, kept) => {
    const { code, out, err } = await run(name);
    expect(code).toBe(1);
    expect(err).toContain(`${name}: no edit leaves everything else as it is`);
    expect(out).toContain(
      'Write, in place of what is there:\nsync:\n  toHost:\n    endpoints:\n      enabled: false\n',
    );
    for (const text of kept) expect(out).toContain(text);
    expect(out).not.toContain('+++');
  });

  test.each([
    [
      'manifest.yaml',
      '2:1: kind: this is a Kubernetes object of kind VirtualClusterTemplate, not the values of vCluster: pass what is at spec.template.helmRelease.values',
    ],
    ['old2.yaml', '1:1: multiNamespaceMode: these are values of vCluster 0.19 or older'],
    [
      'umbrella.yaml',
      '3:1: vcluster: these are values of a chart that contains vCluster: pass what is below vcluster alone',
    ],
  ])('%s: is no values file of vCluster, exit 2', async (name, problem) => {
    const { code, out, err } = await run(name);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(`${name}:${problem}`);
  });

  test.each([
    ['sync: []', '1:7: sync: must be a mapping, found a list'],
    ['sync: {toHost: 1}', '1:16: sync.toHost: must be a mapping, found 1'],
    ['sync: {toHost: {endpoints: true}}', '1:28: sync.toHost.endpoints: must be a mapping, found true'],
    [
      'sync: {toHost: {endpointSlices: [a]}}',
      '1:33: sync.toHost.endpointSlices: must be a mapping, found a list',
    ],
  ])('%s: is named as what no vCluster takes, exit 2', async (text, problem) => {
    const { code, out, err } = await migrate(text);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(problem);
  });

  test('any values: only two fields change, or an error says why not', async () => {
    const leaf = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.boolean(), fc.constantFrom('true', null, [], {}));
    const kind = fc.oneof(leaf, fc.record({ enabled: leaf, patches: leaf }, { requiredKeys: [] }));
    const kinds = { endpoints: kind, endpointSlices: kind, pods: kind };
    const toHost = fc.oneof({ weight: 9, arbitrary: fc.record(kinds, { requiredKeys: [] }) }, leaf);
    const sync = fc.oneof(
      { weight: 9, arbitrary: fc.record({ toHost, other: leaf }, { requiredKeys: [] }) },
      leaf,
    );
    const anything = fc.record({ sync, other: leaf }, { requiredKeys: [] });
    const style = fc.constantFrom<ToStringOptions>(
      {},
      { collectionStyle: 'flow' },
      { defaultStringType: 'QUOTE_DOUBLE' },
    );
    await fc.assert(
      fc.asyncProperty(anything, style, fc.boolean(), async (given, options, isWindows) => {
        const text = stringify(given, { aliasDuplicateObjects: false, ...options });
        const { code, out, err } = await migrate(
          isWindows ? text.replaceAll('\n', '\r\n') : text,
          '-o',
          'json',
        );
        expect(err).not.toMatch(/\n {4}at /u);
        const { values } = (out === '' ? {} : JSON.parse(out)) as { values?: string };
        const expected = mergeConfig(withoutEmptyKeys(given as JsonObject), BOTH_OFF);
        const edited = values === undefined ? expected : withoutEmptyKeys(parse(values) as JsonObject);
        expect(edited).toEqual(expected);
        expect(code === 2).toBe(out === '');
        expect(err).toMatch(code === 2 ? /^vcluster.yaml:\d/u : /^/u);
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test.each([
    ['enabled: without a value', readFileSync(join(WORLD, 'enabledNull.yaml'), 'utf8')],
    ['what helm get values prints for a release without values', 'USER-SUPPLIED VALUES:\nnull\n'],
    ['what helm get values prints', 'USER-SUPPLIED VALUES:\nsync:\n  toHost:\n    pods: {enabled: true}\n'],
    ['an empty file', ''],
    ['a comment', '# nothing\n'],
    ['an empty map', '{}'],
    ['sections without values', 'sync:\n  toHost:\n'],
    ['a section without a value', 'sync:\n'],
    ['JSON', '{"sync": {"toHost": {"endpoints": {"enabled": true}, "pods": {"enabled": true}}}}'],
    [
      'an anchor of something else',
      'a: &a {b: 1}\nglobal: *a\nsync: {toHost: {endpoints: {enabled: true}}}\n',
    ],
    [
      'kinds that vCluster does not sync',
      'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n',
    ],
  ])('%s: only two fields change', async (_what, text) => {
    const { code, values } = await json(text);
    const before = (parse(text.replace(/^USER.*$/mu, ''), { merge: true }) ?? {}) as JsonObject;
    expect(withoutEmptyKeys(parse(values, { merge: true }) as JsonObject)).toEqual(
      mergeConfig(withoutEmptyKeys(before), BOTH_OFF),
    );
    expect(code).toBe(0);
  });
});

describe('vclusterConfig', () => {
  test.each([
    ['manifest.yaml', 'this is a Kubernetes object'],
    ['old2.yaml', 'these are values of vCluster 0.19 or older'],
    ['umbrella.yaml', 'pass what is below vcluster alone'],
  ])('%s is refused as by migrate', async (name, problem) => {
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `endpointSyncer: {name: vc, vclusterConfig: ${join(WORLD, name)}, host: {namespace: a}}\n`,
    );
    const { code, out } = await capturedRun(['validate', '--config', config]);
    expect(code).toBe(2);
    expect(out).toContain(problem);
  });

  test('misspelt keys get a suggestion', async () => {
    const [config, values] = ['config.yaml', 'misspelt.yaml'].map((name) => join(folder, name)) as [
      string,
      string,
    ];
    writeFileSync(
      values,
      'snyc: {}\ncontrolplane: {}\nsync: {tohost: {}, toHost: {servces: {enabled: true}}}\n',
    );
    writeFileSync(config, `endpointSyncer: {name: vc, vclusterConfig: ${values}, host: {namespace: a}}\n`);
    const { out } = await capturedRun(['validate', '--config', config]);
    for (const [key, meant] of [
      ['controlplane', 'controlPlane'],
      ['sync.tohost', 'toHost'],
      ['sync.toHost.servces', 'services'],
    ])
      expect(out).toContain(`${key}: warning: vCluster does not know this key: did you mean "${meant}"?`);
  });
});

test('patches of custom resources in the configuration of this program are reported', async () => {
  const file = join(WORLD, '..', 'values', 'istio.yaml');
  const { code, out } = await capturedRun(['validate', '--config', file]);
  expect(code).toBe(0);
  for (const kind of ['virtualservices.networking.istio.io', 'domains.weblogic.oracle'])
    expect(out).toContain(`customResources["${kind}"].patches: warning: this program applies the patches of`);
});

test('a list of excluded annotations that drops the default ones is reported', async () => {
  const { out } = await capturedRun(['validate', '--config', join(WORLD, '..', 'values', 'excl.yaml')]);
  expect(out).toContain(
    'add control-plane.alpha.kubernetes.io/leader, field.cattle.io/publicEndpoints, kubectl.kubernetes.io/last-applied-configuration',
  );
});
