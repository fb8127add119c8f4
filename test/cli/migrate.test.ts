/** The command `migrate` without clusters: our configuration, the change of vCluster's values, the table, exit codes. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
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
