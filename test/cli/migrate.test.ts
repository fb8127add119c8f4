/** The command `migrate` without clusters: our configuration, the change of vCluster's values, the table, exit codes. */

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseYaml } from '../../src/base/yaml/document.ts';
import { worldFile } from '../support/world-file.ts';
import { capturedRun } from './captured-run.ts';
import { folder, migrate, json } from './migrated.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

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

test('names that YAML takes for something else are quoted in each part', async () => {
  const { out } = await migrate(VALUES, '--name', 'no', '--host-namespace', 'on');
  const file = join(folder, 'config.yaml');
  writeFileSync(file, /^# config\.yaml.*\n([^#]*)/mu.exec(out)?.[1] ?? '');
  writeFileSync(join(folder, 'vcluster.yaml'), VALUES);
  // vCluster's own sync is still on; that is all.
  const { out: report, err } = await capturedRun(['validate', file]);
  expect(report + err).not.toMatch(/must be text/u);
  expect(parseYaml(readFileSync(file, 'utf8')).json).toMatchObject({
    endpointSyncer: { name: 'no', host: { namespace: 'on' } },
  });
  const { out: helm } = await migrate(VALUES, '--name', 'no', '--host-namespace', 'on', '-o', 'helm');
  expect(parseYaml(helm).json).toMatchObject({
    config: { endpointSyncer: { name: 'no', host: { namespace: 'on' } } },
  });
});

test.each(['', '\r'])(
  'the change of what "helm get values" printed can be applied to it (line ends %j)',
  async (end) => {
    const lines = ['USER-SUPPLIED VALUES:', ...VALUES.split('\n')];
    const original = lines.join(`${end}\n`);
    const { out } = await migrate(original);
    const diff = /^--- [^]*?(?=\n# Who syncs what)/mu.exec(out)?.[0] ?? '';
    const [copy, patch] = [join(folder, 'copy.yaml'), join(folder, 'change.diff')];
    writeFileSync(copy, original);
    writeFileSync(patch, `${diff.replaceAll(/^(---|\+\+\+) .*$/gmu, '$1 copy.yaml')}\n`);
    execFileSync('git', ['apply', '-p0', patch], { cwd: folder });
    const changed = readFileSync(copy, 'utf8');
    expect(changed.startsWith(`USER-SUPPLIED VALUES:${end}\n`)).toBe(true);
    expect(parseYaml(changed.replace(/^.*\n/u, '')).json).toMatchObject({
      sync: { toHost: { endpoints: { enabled: false } } },
    });
  },
);

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
    /patches\[0\] metadata.annotations.* +vCluster +not synced +`Math\.random` is not allowed/u,
  );
  expect(err).toMatch(/^vcluster\.yaml:9:23: sync\.toHost\.endpoints\.patches\[0\]\.expression: /u);
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

describe('vclusterConfig', () => {
  test.each([
    ['manifest', 'this is a Kubernetes object'],
    ['old2', 'these are values of vCluster 0.19 or older'],
    ['umbrella', 'pass what is below vcluster alone'],
  ])('%s is refused as by migrate', async (name, problem) => {
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `endpointSyncer: {name: vc, vclusterConfig: ${worldFile(`migrate/${name}.yaml`)}, host: {namespace: a}}\n`,
    );
    const { code, out } = await capturedRun(['validate', '--config', config]);
    expect(code).toBe(2);
    expect(out).toContain(problem);
  });
});

test('patches of custom resources in the configuration of this program are reported', async () => {
  const file = worldFile('values/istio.yaml');
  const { code, out } = await capturedRun(['validate', '--config', file]);
  expect(code).toBe(0);
  for (const kind of ['virtualservices.networking.istio.io', 'domains.weblogic.oracle'])
    expect(out).toContain(`customResources["${kind}"].patches: warning: this program applies the patches of`);
});
