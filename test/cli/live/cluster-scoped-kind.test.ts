/** References to a custom resource which only the API servers know to be cluster-scoped. Where a patch names it, every command that connects refuses it
 * in one sentence, and nothing is written to the host; where an object names it, the reference is left as it is. */

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
import { objectList, valueAt, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { subdomainProblem } from '../../../src/kube/names.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import { LocalDaemon } from '../../scenarios/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';
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

interface Pair extends AsyncDisposable {
  readonly config: string;
  /** The annotation of the copy; undefined: there is no copy. */
  readonly copied: () => Promise<JsonValue | undefined>;
  readonly events: () => Promise<string>;
}

let files = 0;

/** Two clusters with a virtual Endpoints `default/web`, and a configuration with this patch. `places`: where the kind is cluster-scoped. */
async function openPair(places: readonly ClusterName[], zone: string, sync: JsonObject): Promise<Pair> {
  const id = ++files;
  const open = (name: ClusterName): Promise<EmbeddedCluster> =>
    startEmbeddedCluster({ name, kinds: [zones(!places.includes(name))] });
  const [virtual, host] = [await open('virtual'), await open('host')];
  const endpoints = (cluster: EmbeddedCluster): string =>
    `${cluster.url}/api/v1/namespaces/default/endpoints`;
  const created = await fetch(endpoints(virtual), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', annotations: { zone } },
      subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 80 }] }],
    }),
  });
  if (created.status !== 201) throw new Error(await created.text());
  const kubeconfigOf = ({ name, kubeconfig }: EmbeddedCluster): string =>
    write(`${id}-${name}.kubeconfig`, kubeconfig);
  const endpointSyncer = {
    name: 'vc',
    virtual: { kubeconfig: kubeconfigOf(virtual) },
    host: { kubeconfig: kubeconfigOf(host), namespace: 'default' },
    http: { bindAddress: '127.0.0.1:0' },
  };
  return {
    config: write(`${id}.yaml`, JSON.stringify({ endpointSyncer, sync: { toHost: sync } })),
    async copied() {
      const found = (await (await fetch(endpoints(host))).json()) as JsonObject; // a list, or a Status
      return objectList(found, 'items').map((one) => valueAt(one, ['metadata', 'annotations', 'zone']))[0];
    },
    events: async () =>
      (await fetch(`${virtual.url}/apis/events.k8s.io/v1/namespaces/default/events`)).text(),
    async [Symbol.asyncDispose]() {
      await virtual[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
    },
  };
}

const IN_ONE_SENTENCE =
  'sync.toHost.endpoints.patches[0]: Zone of example.com/v1 is cluster-scoped in the host cluster; only namespaced kinds can be used here: remove the patch';

describe.each<[string, ClusterName[]]>([
  ['on the host', ['host']],
  ['in both clusters', ['virtual', 'host']],
])('a kind that a patch names and that is cluster-scoped %s', (_, places) => {
  let pair: Pair;

  beforeAll(async () => {
    const patch = {
      path: 'metadata.annotations.zone',
      reference: { apiVersion: 'example.com/v1', kind: 'Zone' },
    };
    pair = await openPair(places, 'a', { endpoints: { patches: [patch] } });
  });

  afterAll(async () => {
    await pair[Symbol.asyncDispose]();
  });

  test.each(COMMANDS)('%s', async (command) => {
    // The daemon logs to the standard output of its process.
    const run = command.startsWith('run') ? spawnedRun : capturedRun;
    const { code, out, err } = await run([...command.split(' '), '--config', pair.config]);
    const sentences = `${out}\n${err}`.split('\n').filter((line) => line.includes('Zone'));
    expect(code).toBeGreaterThan(0);
    expect(sentences).toEqual([expect.stringContaining(IN_ONE_SENTENCE)]);
    expect(`${out}${err}`).not.toMatch(/CustomResourceDefinition|\n {4}at /u);
    expect(await pair.copied()).toBeUndefined();
  });
});

describe('a kind that an object names', () => {
  const NAMED = '{"apiVersion":"example.com/v1","kind":"Zone","name":"a"}';
  const SYNC = {
    customResources: { 'zones.example.com': { enabled: true } },
    endpoints: {
      patches: [
        {
          path: 'metadata.annotations.zone',
          reference: {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            apiVersionPath: 'apiVersion',
            kindPath: 'kind',
            namePath: 'name',
          },
        },
      ],
    },
  };

  test.each<[string, ClusterName[], name: RegExp, event: string]>([
    ['on the host is left as it is', ['host'], /^"a"$/u, 'so the reference is left as it is'],
    ['in both clusters is left as it is', ['virtual', 'host'], /^"a"$/u, 'so the reference is left as it is'],
    // A tenant decides it, and must not name objects of the host by it.
    ['in the virtual cluster alone is translated', ['virtual'], /^"(?!a").+"$/u, 'its name is translated'],
  ])('cluster-scoped %s, as diff says', async (_, places, name, event) => {
    await using pair = await openPair(places, NAMED, SYNC);
    const diff = await capturedRun(['diff', '--config', pair.config]);
    expect(diff.code).toBe(1);
    expect(/"name":("[^"]*")/u.exec(diff.out)?.[1]).toMatch(name);
    const daemon = await LocalDaemon.start(pair.config);
    try {
      const copied = await eventually(pair.copied, (zone) => zone !== undefined);
      expect(/"name":("[^"]*")/u.exec(JSON.stringify(copied).replaceAll('\\', ''))?.[1]).toMatch(name);
      await eventually(pair.events, (events) => events.includes(event));
      const after = await capturedRun(['diff', '--config', pair.config]);
      expect([after.code, after.out]).toEqual([0, '']);
    } finally {
      await daemon[Symbol.asyncDispose]();
    }
  });
});
