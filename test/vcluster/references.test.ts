/** Imports beside a whole vCluster, which syncs the Secrets that its Pods use: it leaves those with short names alone, and takes those with long names
 * for its own copies. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { CHART } from '../e2e/deploy/helm.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';
import { hostNameShort } from '../../src/syncer/translate/names.ts';
import { endpoints, service } from '../scenarios/objects.ts';
import { secret } from '../scenarios/reference-objects.ts';
import { VclusterHost } from './host.ts';
import { TEAM_A, VCLUSTER } from './pod.ts';
import { WholeVcluster } from './vcluster.ts';

/** vCluster's values of the documentation. */
const OFF = parse(documentedBlocks('deploy.md').get('vcluster-values.yaml') ?? '') as JsonObject; // our own page
const REFERENCE = 'example.com/secret';
const PATCHES = [
  { path: `metadata.annotations["${REFERENCE}"]`, reference: { apiVersion: 'v1', kind: 'Secret' } },
];
const IMPORTED = ['used', 'unused'] as const;

function ourValues(naming: 'short' | 'long'): JsonObject {
  return {
    sidecar: true,
    vclusterConfigSecret: `vc-config-${VCLUSTER}`,
    config: {
      endpointSyncer: { name: VCLUSTER, references: { naming } },
      sync: { toHost: { endpoints: { patches: PATCHES } } },
    },
  };
}

function importOf(name: string): string {
  return hostNameShort(name, 'default', VCLUSTER);
}

function copyOf(name: string): string {
  return `${name}-x-default-x-${VCLUSTER}`;
}

test('vCluster leaves imports alone, and a start that would give them its own names is refused', async () => {
  await using resources = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-references-'));
  resources.defer(() => rmSync(folder, { recursive: true }));
  const host = resources.use(await VclusterHost.start());
  const vcluster = resources.use(await WholeVcluster.start(host, TEAM_A, OFF));
  const virtual = resources.use(await vcluster.virtual());
  const install = async (naming: 'short' | 'long'): Promise<void> => {
    const file = join(folder, `${naming}.yaml`);
    writeFileSync(file, stringify(ourValues(naming)));
    await vcluster.helm('upgrade', '--install', 'syncer', CHART, `--values=${file}`);
  };
  const onHost = (name: string): [string, string] => [TEAM_A.namespace, name];
  const whenGone = (name: string): Promise<void> =>
    expect.poll(() => vcluster.host.find('Secret', ...onHost(name)), { timeout: 60_000 }).toBeUndefined();
  const uids = async (): Promise<unknown[]> =>
    Promise.all(IMPORTED.map(async (name) => (await virtual.find('Secret', 'default', name))?.metadata.uid));

  for (const name of IMPORTED) {
    await virtual.create('Secret', secret(`default/${name}`));
    await virtual.create('Service', service(`default/${name}`));
    const annotations = { [REFERENCE]: name };
    await virtual.create('Endpoints', endpoints(`default/${name}`, { annotations }));
  }
  const created = await uids();
  await install('short');
  const sidecar = await (await vcluster.startSidecar()).ready(120_000);
  for (const name of IMPORTED) await vcluster.host.when('Secret', onHost(importOf(name)));

  // As a Pod that uses it.
  const force = { metadata: { annotations: { 'vcluster.loft.sh/force-sync': 'true' } } };
  await virtual.merge('Secret', ['default', 'used'], force);
  await vcluster.host.when('Secret', onHost(copyOf('used')));
  const isCopyNamed = ({ metadata: { annotations } }: { metadata: { annotations?: object } }): boolean =>
    Object.entries(annotations ?? {}).some(([key, value]) => key === REFERENCE && value === copyOf('used'));
  await vcluster.host.when('Endpoints', onHost(copyOf('used')), isCopyNamed);
  await whenGone(importOf('used'));
  for (const name of IMPORTED)
    await virtual.merge('Endpoints', ['default', name], { metadata: { annotations: { [REFERENCE]: null } } });
  await whenGone(importOf('unused'));
  expect(await uids()).toEqual(created);
  expect(await vcluster.host.find('Secret', ...onHost(copyOf('used')))).toBeDefined();
  const imports = IMPORTED.map(importOf);
  const byOthers = vcluster
    .writes('host')
    .filter(
      ({ resource, name, agent }) =>
        resource === 'secrets' && imports.includes(name) && agent !== 'endpoint-syncer',
    );
  expect(byOthers.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb))).toEqual([]);
  await sidecar.stop();

  await install('long');
  const refused = await vcluster.startSidecar();
  expect((await refused.exited).code).toBe(2);
  expect(refused.stderr).toMatch(
    /^\/etc\/endpoint-syncer\/config\.yaml:\d+:\d+: endpointSyncer\.references\.naming: beside vCluster, /mu,
  );
});
