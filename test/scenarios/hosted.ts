/** `--vcluster`: commands that find the configuration, the values and the access of a virtual cluster on the host. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { textAt, type JsonObject } from '../../src/base/json.ts';
import { configurationTextHash } from '../../src/config-file/source-file.ts';
import { mergeConfig } from '../../src/config-file/merge.ts';
import { vclusterDefaults } from '../../src/shared-config/vcluster-values.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import { capturedRun, type CapturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import type { NewWorld, World } from './world.ts';

export function hostedScenarios(newWorld: NewWorld): void {
  describe('with --vcluster', () => {
    test('status, explain, diff and cleanup read everything from the host', async () => {
      await using world = await newWorld();
      // What holds in the Pod does not here: paths, and the service account.
      await installed(world, {
        host: { kubeconfig: '', namespace: world.hostNamespace },
        vclusterConfig: '/etc/vcluster/config.yaml',
      });
      const patches = [{ path: 'metadata.annotations.owner', expression: '"team-" + value' }];
      await store(world, `vc-config-${world.vcluster}`, {
        'config.yaml': stringify({ sync: { toHost: { endpoints: { enabled: false, patches } } } }),
      });
      await world.createVirtual('default/web', { annotations: { owner: 'shop' } });
      const diff = await run(world, ['diff']);
      expect(diff.out).toContain('+    owner: team-shop');
      const status = await run(world, ['status', '-o', 'json']);
      expect(JSON.parse(status.out)).toMatchObject([
        {
          virtual: { namespace: 'default', name: 'web' },
          host: { namespace: world.hostNamespace, name: world.hostName('default/web') },
          reason: 'no host copy',
        },
      ]);
      const explained = await run(world, ['explain', 'default/web']);
      expect(explained.out).toContain('patches[0]   metadata.annotations.owner: "shop" -> "team-shop"');
      const cleanup = await run(world, ['cleanup', '--dry-run']);
      expect([cleanup.code, cleanup.err]).toEqual([0, expect.stringContaining('nothing to delete')]);
      expect(cleanup.err).toContain(`left Lease "${world.hostNamespace}/endpoint-syncer-${world.vcluster}"`);
    });

    test('-n selects virtual objects again where --host-namespace says where the vCluster is', async () => {
      await using world = await newWorld();
      await world.virtualNamespace('other');
      await installed(world, { virtual: { secret: `vc-${world.vcluster}` } });
      for (const key of ['default/web', 'other/web']) await world.createVirtual(key);
      const host = ['--host-kubeconfig', world.host.kubeconfigPath, '--host-namespace', world.hostNamespace];
      const args = ['status', '--vcluster', world.vcluster, ...host, '-n', 'other', '-o', 'json'];
      const rows = JSON.parse((await capturedRun(args)).out) as { virtual: JsonObject }[];
      expect(rows.map(({ virtual }) => virtual)).toEqual([{ namespace: 'other', name: 'web' }]);
    });

    test('migrate takes the values of the release', async () => {
      await using world = await newWorld();
      const release = { config: { sync: { toHost: { ingresses: { enabled: true } } } } };
      const packed = gzipSync(JSON.stringify(release)).toString('base64');
      await store(
        world,
        `sh.helm.release.v1.${world.vcluster}.v1`,
        { release: packed },
        { owner: 'helm', name: world.vcluster, status: 'deployed' },
      );
      // A tenant's Secret with such labels, which a syncer has copied.
      await store(
        world,
        'a-tenants',
        { release: 'none' },
        { owner: 'helm', name: world.vcluster, status: 'deployed', 'vcluster.loft.sh/managed-by': 'other' },
      );
      const { out, code } = await run(world, ['migrate', '-o', 'helm']);
      expect([code, out]).toEqual([0, expect.stringContaining(`name: ${world.vcluster}`)]);
      const { out: text } = await run(world, ['migrate']);
      expect(text).toContain('ingresses');
      expect(text).toContain(`namespace: ${world.hostNamespace}`);
      await world.host.merge('Secret', [world.hostNamespace, `sh.helm.release.v1.${world.vcluster}.v1`], {
        data: { release: Buffer.from('no release').toString('base64') },
      });
      expect(await run(world, ['migrate'])).toMatchObject({
        code: 2,
        err: expect.stringMatching(/^error: Secret "\S+" has no release of Helm: /u) as string,
      });
    });

    // Helm 4.3: "--reuse-values --set KEY=null" leaves KEY in force, and an upgrade that failed on a conflict has applied everything else.
    test.each([
      {
        what: 'patches that the release has lost stay in force',
        deployed: {},
        failed: undefined,
        inForce: { endpoints: { patches: [ANNOTATION] } },
        differs: ['sync.toHost.endpoints.patches'],
        notes: [],
      },
      {
        what: 'a failed upgrade is in force',
        deployed: {},
        failed: { endpoints: { patches: [ANNOTATION] } },
        inForce: { endpoints: { patches: [ANNOTATION] } },
        differs: [],
        notes: ['these are the values of revision 2 of the release, which is failed'],
      },
      {
        what: 'a failed upgrade is not in force',
        deployed: { endpoints: { patches: [ANNOTATION] } },
        failed: { endpoints: { enabled: false } },
        inForce: { endpoints: { patches: [ANNOTATION] } },
        differs: [],
        notes: [
          'these are the values of revision 1 of the release, with which vCluster runs; "helm get values" prints those of revision 2, which is failed',
        ],
      },
      {
        what: 'a sync that the release has switched off is in force',
        deployed: { endpoints: { enabled: false, patches: [ANNOTATION] } },
        failed: undefined,
        inForce: { endpoints: { patches: [ANNOTATION] } },
        differs: ['sync.toHost.endpoints.enabled'],
        notes: [],
      },
    ])(
      'migrate decides by what is in force, and edits the values of the release: $what',
      async ({ deployed, failed, inForce, differs, notes }) => {
        await using world = await newWorld();
        const values = mergeConfig(vclusterDefaults(), { sync: { toHost: inForce } });
        await store(world, `vc-config-${world.vcluster}`, { 'config.yaml': stringify(values) });
        await storeRelease(world, { revision: 1, status: 'deployed', toHost: deployed });
        if (failed !== undefined)
          await storeRelease(world, { revision: 2, status: 'failed', toHost: failed });
        const { code, out, err } = await run(world, ['migrate', '-o', 'json']);
        expect([code, err.split('\n').filter((line) => line.includes('revision'))]).toEqual([
          0,
          notes.map((note) => `note: ${note}`),
        ]);
        const migrated = JSON.parse(out) as MigratedValues;
        expect(migrated.config.sync.toHost.endpoints).toEqual({ enabled: true });
        const patch = `sync.toHost.endpoints.patches[0] ${ANNOTATION.path}`;
        expect(migrated.table.map(({ what }) => what)).toContain(patch);
        expect(migrated.differences.map(({ path }) => path)).toEqual(differs);
        // Nothing of the defaults.
        const edited = parse(migrated.values) as JsonObject;
        expect(edited).toMatchObject({ sync: { toHost: { endpoints: { enabled: false } } } });
        expect(Object.keys(edited)).toEqual(['sync']);
        const helm = await run(world, ['migrate', '-o', 'helm']);
        expect(parse(helm.out)).toMatchObject({
          config: { sync: { toHost: { endpoints: { enabled: true, patches: [ANNOTATION] } } } },
        });
        const text = await run(world, ['migrate']);
        for (const path of differs) {
          expect(text.out).toMatch(new RegExp(`^${path.replaceAll('.', String.raw`\.`)} .* `, 'mu'));
          expect(text.err).toContain(`vCluster does not run with what its release says at ${path}`);
        }
        expect(text.out.includes('# Where vCluster runs with other values')).toBe(differs.length > 0);
      },
    );

    test('migrate lists the objects where a flag says how the virtual cluster is reached', async () => {
      await using world = await newWorld();
      await installed(world, {});
      const values = mergeConfig(vclusterDefaults(), { sync: { toHost: { endpoints: { enabled: true } } } });
      await store(world, `vc-config-${world.vcluster}`, { 'config.yaml': stringify(values) });
      await world.createVirtual('default/web');
      const objectsWith = async (...flags: string[]): Promise<unknown> => {
        const { out } = await run(world, ['migrate', '-o', 'json', ...flags]);
        return (JSON.parse(out) as { objects: unknown }).objects;
      };
      const listed = [
        {
          kind: 'Endpoints',
          virtual: 'default/web',
          host: `${world.hostNamespace}/${world.hostName('default/web')}`,
          afterwards: 'endpoint-syncer, create',
          isLost: false,
        },
      ];
      const server = /server: (\S+)/u.exec(readFileSync(world.virtual.kubeconfigPath, 'utf8'))?.[1] ?? '';
      expect(await objectsWith()).toEqual([]);
      expect(await objectsWith('--virtual-server', server)).toEqual(expect.arrayContaining(listed));
      expect(await objectsWith('--virtual-kubeconfig', world.virtual.kubeconfigPath)).toEqual(
        expect.arrayContaining(listed),
      );
      const gone = await run(world, ['migrate', '--virtual-server', 'https://127.0.0.1:1']);
      expect([gone.code, gone.err]).toEqual([2, expect.stringContaining('pass --virtual-server')]);
    });

    test('migrate edits the file of the user, and compares it with what is in force', async () => {
      await using world = await newWorld();
      const values = mergeConfig(vclusterDefaults(), {
        sync: { toHost: { endpoints: { patches: [ANNOTATION] } } },
      });
      await store(world, `vc-config-${world.vcluster}`, { 'config.yaml': stringify(values) });
      const file = join(world.directory, 'values.yaml');
      writeFileSync(file, '# Ours.\nsync:\n  toHost:\n    endpoints:\n      enabled: true # kept\n');
      const { code, out, err } = await run(world, ['migrate', '--vcluster-config', file]);
      expect(code).toBe(0);
      expect(out).toContain('-      enabled: true # kept\n+      enabled: false # kept\n');
      expect(out).toContain(`sync.toHost.endpoints.patches[0] ${ANNOTATION.path}`);
      expect(err).toContain(
        'note: vCluster does not run with what its release says at sync.toHost.endpoints.patches\n',
      );
    });

    test('what is missing is named, with what to do', async () => {
      await using world = await newWorld();
      const lease = `${world.hostNamespace}/endpoint-syncer-${world.vcluster}`;
      const failed = async (...args: string[]): Promise<string> => {
        const { code, err } = await run(world, ['status', ...args]);
        expect(code).toBe(/leave out|file of the Pod/u.test(err) ? 2 : 1);
        return err;
      };
      expect(await failed()).toContain(
        `the host has no Lease "${lease}": name the namespace of the vCluster with -n`,
      );
      await store(world, `vc-${world.vcluster}`, {
        config: readFileSync(world.virtual.kubeconfigPath, 'utf8'),
      });
      // That it is there, and its name, prove nothing.
      await configMap(world, 'other', { name: world.vcluster });
      expect(await failed()).toContain(
        `the host has no Lease "${lease}": vCluster "${world.vcluster}" is there, and no daemon`,
      );
      await inUse(world, 'endpointSyncer: {}');
      expect(await failed()).toContain(
        `no ConfigMap and no Secret of the host namespace "${world.hostNamespace}" is the configuration in use, of which Lease "${lease}" has the hash`,
      );
      await installed(world, { vclusterConfig: 'vcluster.yaml' }, 'one');
      expect(await failed()).toContain(
        `the host has no Secret "${world.hostNamespace}/vc-config-${world.vcluster}"`,
      );
      await installed(world, { virtual: { kubeconfig: '/access/config' } }, 'two');
      expect(await failed()).toContain(
        `ConfigMap ${world.hostNamespace}/two reaches the virtual cluster with a file of the Pod, /access/config: pass that file with --virtual-kubeconfig, or the Secret`,
      );
      expect(await failed('--config', 'c.yaml')).toContain('leave out --config');
    });

    test('an invalid configuration is reported, without a stack', async () => {
      await using world = await newWorld();
      await installed(world, { workers: 0, virtual: { secret: `vc-${world.vcluster}` } });
      for (const args of [['status'], ['diff'], ['explain', 'default/web'], ['cleanup', '--yes']]) {
        const { code, out, err } = await run(world, args);
        expect([code, out]).toEqual([2, '']);
        expect(err).toMatch(/^ConfigMap \S+syncer-endpoint-syncer:\d+:\d+: endpointSyncer\.workers: /u);
        expect(err).not.toMatch(/^ +at /mu);
      }
    });

    test('the daemon says which file is in use, also after its end', async () => {
      await using world = await newWorld();
      const access = `vc-${world.vcluster}`;
      await store(world, access, { config: kubeconfigOf(world) });
      const config = { endpointSyncer: { virtual: { kubeconfig: '', secret: access } } };
      const daemon = await world.startSync({ config });
      const text = readFileSync(daemon.configPath, 'utf8');
      await configMap(world, 'in-use', {}, text);
      await world.createVirtual('default/web');
      await world.whenCopy('default/web');
      const source = `configuration in use: ConfigMap ${world.hostNamespace}/in-use\n`;
      const status = async () => {
        const { out, err } = await run(world, ['status', '-o', 'name']);
        return [out, err];
      };
      await eventually(status, ([, err]) => err === source, { what: 'the hash on the Lease' });
      await configMap(world, 'another', { name: world.vcluster, virtual: { server: 'http://127.0.0.1:1' } });
      await daemon.stop();
      expect(await status()).toEqual(['endpoints/web\n', source]);
    });

    test('cleanup deletes in the namespaces that the configuration in use maps, nowhere else', async () => {
      await using world = await newWorld();
      const [mapped, others] = [`${world.hostNamespace}-mapped`, `${world.hostNamespace}-others`];
      for (const namespace of [mapped, others]) await world.hostNamespaceNamed(namespace);
      const syncTo = async (namespace: string): Promise<void> => {
        const namespaces = { enabled: true, mappings: { byName: { default: namespace } } };
        const daemon = await world.startSync({ config: { sync: { toHost: { namespaces } } } });
        await world.host.when('Endpoints', [namespace, 'web']);
        await daemon.stop();
      };
      await world.createVirtual('default/web');
      await syncTo(others);
      await world.host.merge('Endpoints', [others, 'web'], {
        metadata: { annotations: { 'vcluster.loft.sh/object-uid': null } },
      });
      await syncTo(mapped);
      const text = stringify({
        sync: { toHost: { namespaces: { enabled: true, mappings: { byName: { default: mapped } } } } },
        endpointSyncer: { name: world.vcluster },
      });
      await store(world, `vc-${world.vcluster}`, { config: kubeconfigOf(world) });
      await configMap(world, 'in-use', {}, text);
      await inUse(world, text);
      const { code, out } = await run(world, ['cleanup', '--yes']);
      expect([code, out]).toEqual([0, expect.stringContaining(`deleted Endpoints "${mapped}/web"`)]);
      expect(out).not.toContain(others);
      expect(await world.host.find('Endpoints', others, 'web')).toBeDefined();
      expect(await world.host.find('Endpoints', mapped, 'web')).toBeUndefined();
    });

    test('without the rights that this needs, the error names them', async () => {
      await using world = await newWorld();
      await inUse(world, 'endpointSyncer: {}');
      const host = await world.proxy('host');
      host.behaviour = {
        decide: ({ path }) =>
          path.includes('/configmaps')
            ? { kind: 'refuse', status: 403, reason: 'Forbidden' }
            : { kind: 'pass' },
      };
      const args = ['--vcluster', world.vcluster, '--host-kubeconfig', host.path, '-n', world.hostNamespace];
      const { code, err } = await capturedRun(['status', ...args]);
      expect(code).toBe(1);
      expect(err).toContain(
        `this needs the rights to list configmaps in the host namespace "${world.hostNamespace}"; without them, pass --config`,
      );
    });

    test('a virtual cluster that cannot be reached from here: the URL, and how to forward its port', async () => {
      await using world = await newWorld();
      await installed(world, { virtual: { secret: `vc-${world.vcluster}`, server: 'https://127.0.0.1:1' } });
      const { code, err } = await run(world, ['status']);
      expect(code).toBe(1);
      expect(err).toContain('the URL is https://127.0.0.1:1');
      expect(err).toContain(
        `"kubectl --kubeconfig ${world.host.kubeconfigPath} -n ${world.hostNamespace} port-forward service/${world.vcluster} 8443:443" and pass --virtual-server https://localhost:8443`,
      );
      const server = /server: (\S+)/u.exec(readFileSync(world.virtual.kubeconfigPath, 'utf8'))?.[1] ?? '';
      expect((await run(world, ['status', '--virtual-server', server])).code).toBe(0);
    });
  });
}

function run(world: World, [command = '', ...args]: readonly string[]): Promise<CapturedRun> {
  const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', world.hostNamespace];
  return capturedRun([command, '--vcluster', world.vcluster, ...host, ...args]);
}

/** As the chart, vCluster and the daemon leave them on the host. */
const ANNOTATION = { path: 'metadata.annotations.owner', expression: '"team-" + value' };

interface MigratedValues {
  readonly config: { readonly sync: { readonly toHost: JsonObject } };
  readonly values: string;
  readonly table: readonly { readonly what: string }[];
  readonly differences: readonly { readonly path: string }[];
}

/** Helm's record of a revision. */
async function storeRelease(
  world: World,
  { revision, status, toHost }: { revision: number; status: string; toHost: JsonObject },
): Promise<void> {
  const config = Object.keys(toHost).length === 0 ? {} : { sync: { toHost } };
  const release = gzipSync(JSON.stringify({ config })).toString('base64');
  const labels = { owner: 'helm', name: world.vcluster, status, version: `${revision}` };
  await store(world, `sh.helm.release.v1.${world.vcluster}.v${revision}`, { release }, labels);
}

async function installed(
  world: World,
  endpointSyncer: JsonObject,
  name = 'syncer-endpoint-syncer',
): Promise<void> {
  const { data } = await configMap(world, name, { name: world.vcluster, ...endpointSyncer });
  await inUse(world, textAt(asJson({ metadata: { name }, data }), 'data', 'config.yaml'));
  if ((await world.host.find('Secret', world.hostNamespace, `vc-${world.vcluster}`)) === undefined)
    await store(world, `vc-${world.vcluster}`, { config: kubeconfigOf(world) });
}

/** The Lease says that this text is the configuration in use. */
async function inUse(world: World, text: string): Promise<void> {
  const [namespace, name] = [world.hostNamespace, `endpoint-syncer-${world.vcluster}`];
  const annotations = { 'endpoint-syncer/configuration-text': configurationTextHash(text) };
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, annotations },
  };
  if ((await world.host.find('Lease', namespace, name)) === undefined)
    await world.host.create('Lease', lease);
  else await world.host.merge('Lease', [namespace, name], { metadata: { annotations } });
}

/** With the certificate authority in it: a kubeconfig from a Secret names no files. */
function kubeconfigOf({ virtual }: World): string {
  const text = readFileSync(virtual.kubeconfigPath, 'utf8');
  const config = parse(text) as { clusters: { cluster: Record<string, string> }[] }; // of a test cluster
  for (const { cluster } of config.clusters) {
    const { 'certificate-authority': file } = cluster;
    if (file === undefined) continue;
    delete cluster['certificate-authority'];
    cluster['certificate-authority-data'] = readFileSync(file).toString('base64');
  }
  return stringify(config);
}

function configMap(
  world: World,
  name: string,
  endpointSyncer: JsonObject,
  text = stringify({ endpointSyncer }),
): Promise<KubeObject> {
  const data = { 'config.yaml': text };
  return world.host.create('ConfigMap', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: world.hostNamespace },
    data,
  });
}

function store(
  world: World,
  name: string,
  texts: Record<string, string>,
  labels: Record<string, string> = {},
): Promise<KubeObject> {
  const data = Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
  const metadata = { name, namespace: world.hostNamespace, labels };
  return world.host.create('Secret', { apiVersion: 'v1', kind: 'Secret', metadata, data });
}
