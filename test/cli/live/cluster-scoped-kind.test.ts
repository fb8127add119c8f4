/** A patch that references a custom resource which only the API servers know to be cluster-scoped: every command that connects refuses it in one
 * sentence, and nothing is written to the host. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  defineResource,
  type ResourceDefinition,
} from '../../../src/apiserver/objects/resource-definition.ts';
import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
} from '../../../src/embedded-cluster/embedded-cluster.ts';
import { subdomainProblem } from '../../../src/kube/names.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import { testFolder } from '../../support/test-folder.ts';
import { capturedRun, spawnedRun } from '../captured-run.ts';

const { write } = testFolder();

function zones(isNamespaced: boolean): ResourceDefinition {
  const types = new TypeTable([META_TYPES, 'example.Zone = metadata:1! meta.ObjectMeta; spec:2 any']);
  return defineResource({
    group: 'example.com',
    version: 'v1',
    kind: 'Zone',
    plural: 'zones',
    singular: 'zone',
    isNamespaced,
    schema: types.get('example.Zone'),
    checkName: subdomainProblem,
  });
}

const COMMANDS = ['run', 'run --dry-run --once', 'status', 'diff', 'explain default/web'];

/** Where the kind is cluster-scoped. */
const PLACES: readonly (readonly [string, readonly ClusterName[]])[] = [
  ['on the host', ['host']],
  ['in both clusters', ['virtual', 'host']],
];

describe.each(PLACES)('a kind that is cluster-scoped %s', (_, places) => {
  const clusters: EmbeddedCluster[] = [];
  let config = '';

  beforeAll(async () => {
    const open = async (name: ClusterName): Promise<string> => {
      const cluster = await startEmbeddedCluster({ name, kinds: [zones(!places.includes(name))] });
      clusters.push(cluster);
      return write(`${places.length}-${name}.kubeconfig`, cluster.kubeconfig);
    };
    const files = { virtual: await open('virtual'), host: await open('host') };
    const body = {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', annotations: { zone: 'a' } },
      subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 80 }] }],
    };
    const created = await fetch(`${clusters[0]?.url}/api/v1/namespaces/default/endpoints`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (created.status !== 201) throw new Error(await created.text());
    config = write(
      `${places.length}.yaml`,
      `endpointSyncer:
  name: vc
  virtual: {kubeconfig: ${files.virtual}}
  host: {kubeconfig: ${files.host}, namespace: default}
  http: {bindAddress: "127.0.0.1:0"}
sync:
  toHost:
    endpoints:
      patches: [{path: metadata.annotations.zone, reference: {apiVersion: example.com/v1, kind: Zone}}]
`,
    );
  });

  afterAll(async () => {
    for (const cluster of clusters) await cluster[Symbol.asyncDispose]();
  });

  test.each(COMMANDS)('%s', async (command) => {
    // The daemon logs to the standard output of its process.
    const run = command.startsWith('run') ? spawnedRun : capturedRun;
    const { code, out, err } = await run([...command.split(' '), '--config', config]);
    const sentences = `${out}\n${err}`.split('\n').filter((line) => line.includes('Zone'));
    expect(code).toBeGreaterThan(0);
    expect(sentences).toEqual([
      expect.stringContaining(
        'sync.toHost.endpoints.patches[0]: Zone of example.com/v1 is cluster-scoped in the host cluster; only namespaced kinds can be used here: remove the patch',
      ),
    ]);
    expect(`${out}${err}`).not.toMatch(/CustomResourceDefinition|\n {4}at /u);
    const host = await fetch(`${clusters[1]?.url}/api/v1/endpoints`);
    expect(await host.json()).toMatchObject({ items: [] });
  });
});
