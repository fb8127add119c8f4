/** A fleet: vClusters join, change, sleep, leave and are deleted while it runs, and what is wrong with one concerns that one alone. */

import { gzipSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { parse } from 'yaml';
import { textAt, type JsonObject } from '../../src/base/json.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import { capturedRun, type CapturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { annotating, FLEET_NAMESPACE, SWITCHED_OFF, type NewFleetWorld } from './fleet-world.ts';
import type { RunningDaemon } from './running-daemon.ts';

const MARKER = 'vcluster.loft.sh/managed-by';
const HOST_NAMESPACE = 'vcluster.loft.sh/object-host-namespace';

export function fleetScenarios(newWorld: NewFleetWorld): void {
  describe('a fleet', () => {
    test('syncs each selected vCluster into its own namespace, and says which', async ({ expect }) => {
      await using world = await newWorld();
      const [one, two] = [await world.install('one'), await world.install('two')];
      const other = await world.install('other', { labels: {} });
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.createEndpoints(other, 'web', '10.3.0.1');
      const fleet = await world.start();
      await world.createEndpoints(two, 'web', '10.2.0.1');
      const copy = await world.whenCopied(one, 'web', '10.1.0.1');
      expect(copy.metadata.labels?.[MARKER]).toBe('one');
      await world.whenCopied(two, 'web', '10.2.0.1');
      await world.whenState(fleet, one, 'joined');
      await world.whenState(fleet, two, 'joined');
      expect(await world.host.list('Endpoints', other.namespace)).toEqual([]);
      const ready = await fleet.get('/readyz?verbose');
      expect(ready.status).toBe(200);
      expect(ready.text).not.toContain('other');
      await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === 2, {
        state: 'joined',
      });
      const ofCreates = { vcluster: one.key, verb: 'create', result: 'ok' };
      await fleet.whenMetric('endpoint_syncer_writes_total', (writes) => writes === 1, ofCreates);
      const [lease] = await world.host.list('Lease', one.namespace);
      expect(lease?.metadata.name).toBe('endpoint-syncer-one');
      expect(lease?.metadata.annotations?.['endpoint-syncer/fleet']).toBe(FLEET_NAMESPACE);
    });

    test('a vCluster joins with its label while the fleet runs, and leaves without it: its copies stay', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const fleet = await world.start();
      const one = await world.install('one', { labels: {} });
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.setWorkload(one, {});
      await world.whenCopied(one, 'web', '10.1.0.1');
      await world.whenState(fleet, one, 'joined');
      await world.setWorkload(one, { labels: { 'endpoint-syncer/enabled': 'false' } });
      await world.whenGone(fleet, one);
      await world.createEndpoints(one, 'late', '10.1.0.2');
      const two = await world.install('two');
      await world.createEndpoints(two, 'web', '10.2.0.1');
      await world.whenCopied(two, 'web', '10.2.0.1');
      await world.whenCopied(one, 'web', '10.1.0.1');
      expect(await world.host.find('Endpoints', ...world.hostKey(one, 'late'))).toBeUndefined();
    });

    test('the copies of a deleted vCluster are deleted, also when it was deleted while no fleet ran', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const [one, two] = [await world.install('one'), await world.install('two')];
      let fleet = await world.start();
      for (const vcluster of [one, two]) {
        await world.createEndpoints(vcluster, 'web', '10.1.0.1');
        await world.whenCopied(vcluster, 'web', '10.1.0.1');
      }
      await world.uninstall(one);
      await world.whenNoCopy(one, 'web');
      await world.host.whenGone('Lease', [one.namespace, 'endpoint-syncer-one']);
      await world.whenGone(fleet, one);
      await fleet.stop();
      await world.uninstall(two);
      expect(await world.whenCopied(two, 'web', '10.1.0.1')).toBeDefined();
      fleet = await world.start();
      await world.whenNoCopy(two, 'web');
    });

    test('a member leaves the copies in the namespace of another vCluster of its name', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const vcluster = await world.install('one');
      await world.createEndpoints(vcluster, 'web', '10.1.0.1');
      const before = await world.start();
      const copy = await world.whenCopied(vcluster, 'web', '10.1.0.1');
      await before.stop();
      // Its original has the uid of one of this virtual cluster, whose server decides what it says.
      const { name, labels = {}, annotations } = copy.metadata;
      const namespace = 'team-other';
      await world.host.ensureNamespace(namespace);
      await world.host.create('Endpoints', {
        metadata: { name, namespace, labels, annotations: { ...annotations, [HOST_NAMESPACE]: namespace } },
      });
      const fleet = await world.start();
      await fleet.whenLogged(/^first pass complete$/u);
      expect(await world.host.find('Endpoints', namespace, name)).toBeDefined();
    });

    test('changed patches are reloaded, and another change restarts that member alone', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const one = await world.install('one', { values: annotating('first') });
      const two = await world.install('two');
      const fleet = await world.start();
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.createEndpoints(two, 'web', '10.2.0.1');
      await world.whenCopied(two, 'web', '10.2.0.1');
      const by = async (value: string): Promise<void> =>
        void (await world.host.when(
          'Endpoints',
          world.hostKey(one, 'web'),
          (copy) => copy.metadata.annotations?.['example.com/by'] === value,
        ));
      await by('first');
      await world.setValues(one, annotating('second'));
      await by('second');
      expect(stopsOf(fleet, one)).toBe(0);
      await world.setOverlay(one, { endpointSyncer: { requireService: true } });
      await world.whenNoCopy(one, 'web');
      expect(stopsOf(fleet, one)).toBe(1);
      await world.whenState(fleet, one, 'joined');
      world.writeConfig({ defaults: { requireService: true } });
      await world.whenNoCopy(two, 'web');
      await world.setOverlay(two, { endpointSyncer: { requireService: false } });
      await world.whenCopied(two, 'web', '10.2.0.1');
    });

    test('a vCluster that sleeps is not connected to, keeps its copies and raises no alert, until it wakes', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const [one, two] = [
        await world.install('one'),
        await world.install('two', { replicas: 0, access: undefined }),
      ];
      const fleet = await world.start();
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.whenCopied(one, 'web', '10.1.0.1');
      expect(await world.whenState(fleet, two, 'asleep')).toContain('scaled to 0 replicas');
      await world.scale(one, 0);
      await world.whenState(fleet, one, 'asleep');
      await world.createEndpoints(one, 'late', '10.1.0.2');
      await world.whenCopied(one, 'web', '10.1.0.1');
      await eventually(
        () => fleet.get('/metrics'),
        ({ text }) => !text.includes(`vcluster="${one.key}"`),
        { what: 'the end of the series of the member' },
      );
      await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === 2, {
        state: 'asleep',
      });
      expect((await fleet.get('/readyz')).status).toBe(200);
      await world.host.merge('StatefulSet', [one.namespace, one.name], {
        metadata: { annotations: { 'loft.sh/paused': 'true' } },
        spec: { replicas: 1 },
      });
      await world.whenState(fleet, one, 'asleep: paused (annotation loft.sh/paused)');
      await world.host.merge('StatefulSet', [one.namespace, one.name], {
        metadata: { annotations: { 'loft.sh/paused': null } },
      });
      await world.whenCopied(one, 'late', '10.1.0.2');
    });

    test('what is wrong with one vCluster is said of that one, and the others are synced', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const fine = await world.install('fine');
      const both = await world.install('both', { values: {} });
      const broken = await world.install('broken', {
        values: { sync: { toHost: { ...SWITCHED_OFF, endpoints: { enabled: false, patches: 'none' } } } },
      });
      const noAccess = await world.install('no-access', { access: { value: 'x' } });
      const twice = await world.install('twice');
      await world.setWorkload(twice, {}, 'Deployment');
      const mapped = await world.install('mapped', {
        values: {
          sync: {
            toHost: { ...SWITCHED_OFF, namespaces: { enabled: true, mappings: { byName: { a: 'b' } } } },
          },
        },
      });
      const fleet = await world.start();
      await world.createEndpoints(fine, 'web', '10.1.0.1');
      await world.whenCopied(fine, 'web', '10.1.0.1');
      expect(await world.whenState(fleet, both, 'invalid')).toContain('vCluster syncs Endpoints too');
      expect(await world.whenState(fleet, broken, 'invalid')).toContain(
        'Secret team-broken/vc-config-broken:',
      );
      expect(await world.whenState(fleet, noAccess, 'invalid')).toContain(
        'has no kubeconfig under the key config',
      );
      expect(await world.whenState(fleet, twice, 'conflicting')).toContain('a StatefulSet and a Deployment');
      expect(await world.whenState(fleet, mapped, 'invalid')).toContain(
        'a fleet syncs into the namespace of the vCluster only',
      );
      expect((await fleet.get('/readyz')).status).toBe(200);
      // Each joins when it is corrected.
      await world.setValues(both, { sync: { toHost: SWITCHED_OFF } });
      await world.whenState(fleet, both, 'joined');
      await world.host.delete('Deployment', twice.namespace, twice.name);
      await world.whenState(fleet, twice, 'joined');
    });

    test('a member whose values become invalid keeps its configuration, and says so', async ({ expect }) => {
      await using world = await newWorld();
      const one = await world.install('one', { values: annotating('first') });
      const fleet = await world.start();
      await world.whenState(fleet, one, 'joined');
      await world.setValues(one, 'sync: {toHost: {endpoints: {enabled: false, patches: [}}}');
      expect(await world.whenState(fleet, one, 'invalid')).toContain(
        'the configuration before is still in use',
      );
      await world.createEndpoints(one, 'web', '10.1.0.1');
      const copy = await world.whenCopied(one, 'web', '10.1.0.1');
      expect(copy.metadata.annotations?.['example.com/by']).toBe('first');
      await fleet.whenMetric('endpoint_syncer_config_last_reload_successful', (isOk) => isOk === 0, {
        vcluster: one.key,
      });
      await world.setValues(one, annotating('second'));
      await world.whenState(fleet, one, 'joined');
    });

    test('rotated access and another server in the Secret are used', async ({ expect }) => {
      await using world = await newWorld();
      const one = await world.install('one', { access: { config: dead() } });
      const fleet = await world.start();
      expect(await world.whenState(fleet, one, 'starting')).toContain('starting');
      const [, other] = [one, await world.install('two')];
      await world.setSecret(one.namespace, 'vc-one', { config: await world.access(0) });
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.whenCopied(one, 'web', '10.1.0.1');
      await world.whenState(fleet, other, 'joined');
    });

    test('no vCluster is selected: the log says so, with the selector', async ({ expect }) => {
      await using world = await newWorld();
      await world.install('one', { labels: {} });
      const fleet = await world.start({ fleet: { selector: { matchLabels: { tier: 'gold' } } } });
      expect(await fleet.whenLogged(/^no vCluster is selected/u)).toMatchObject({
        level: 'warn',
        vclusters: 1,
        selected: 0,
        selector: 'tier=gold',
      });
    });

    test('a vCluster with a sidecar that holds the Lease is on standby, and who holds it is said', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const one = await world.install('one');
      const now = new Date().toISOString().replace('Z', '000Z');
      await world.host.create('Lease', {
        metadata: { name: 'endpoint-syncer-one', namespace: one.namespace },
        spec: {
          holderIdentity: 'sidecar-0',
          leaseDurationSeconds: 3600,
          acquireTime: now,
          renewTime: now,
          leaseTransitions: 0,
        },
      });
      const fleet = await world.start();
      expect(await world.whenState(fleet, one, 'standby')).toContain('sidecar-0 leads');
    });

    test('replicas share the members, and what one leaves the others take', async ({ expect }) => {
      await using world = await newWorld();
      const names = ['one', 'two', 'three', 'four'];
      const vclusters = await Promise.all(names.map((name, index) => world.install(name, { index })));
      const [first, second] = [await world.start(), await world.start()];
      const membersOf = async (fleet: RunningDaemon): Promise<string[]> => {
        const { text } = await fleet.get('/readyz?verbose');
        return [...text.matchAll(/^\[\+\]vcluster (\S+) ok: joined$/gmu)].map(([, key = '']) => key);
      };
      const all = vclusters.map(({ key }) => key).toSorted();
      const shares = (): Promise<string[]> =>
        Promise.all([first, second].map(membersOf)).then((each) => each.flat().toSorted());
      expect(await eventually(shares, (keys) => keys.join() === all.join())).toEqual(all);
      const holders = new Set<string>();
      for (const vcluster of vclusters) {
        await world.createEndpoints(vcluster, 'web', '10.1.0.1');
        await world.whenCopied(vcluster, 'web', '10.1.0.1');
        // Between two replicas, a member is held by none.
        const holder = (lease: KubeObject | undefined): string =>
          textAt(lease && asJson(lease), 'spec', 'holderIdentity');
        const key = [vcluster.namespace, `endpoint-syncer-${vcluster.name}`] as const;
        holders.add(holder(await world.host.when('Lease', key, (lease) => holder(lease) !== '')));
      }
      const replicas = await eventually(
        () => world.host.list('Lease', FLEET_NAMESPACE),
        ({ length }) => length === 2,
        { what: 'a Lease of each replica' },
      );
      expect(replicas.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining([...holders]));

      await first.stop();
      for (const vcluster of vclusters) {
        await world.whenState(second, vcluster, 'joined');
        await world.createEndpoints(vcluster, 'late', '10.1.0.2');
        await world.whenCopied(vcluster, 'late', '10.1.0.2');
      }
      expect(await world.host.list('Lease', FLEET_NAMESPACE)).toHaveLength(1);
    });

    test('migrate --fleet says of each vCluster what it would gain and lose, and what makes it a member', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = ['--host-kubeconfig', world.host.kubeconfigPath];
      const migrate = (...args: string[]): Promise<CapturedRun> =>
        capturedRun(['migrate', '--fleet', ...host, ...args]);
      expect(await migrate()).toMatchObject({
        code: 2,
        err: 'error: no StatefulSet and no Deployment in all host namespaces has the label app=vcluster\n',
      });
      const patched = (expression: string): JsonObject => ({
        sync: { toHost: { endpoints: { patches: [{ path: 'metadata.annotations.a', expression }] } } },
      });
      await world.install('member');
      const labels = {};
      const ready = await world.install('ready', { labels, values: patched('value') });
      const rows = async (...args: string[]): Promise<JsonObject[]> =>
        JSON.parse((await migrate('-o', 'json', ...args)).out) as JsonObject[];
      expect(await rows('-n', ready.namespace)).toMatchObject([
        {
          name: 'ready',
          today: 'vCluster',
          gains: ['Endpoints without a Service', '1 patch of Endpoints'],
          loses: [],
          differs: [],
        },
      ]);
      expect((await migrate()).code).toBe(0);

      // Helm's record lacks what is in force.
      await world.host.create('Secret', {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: 'sh.helm.release.v1.ready.v1',
          namespace: ready.namespace,
          labels: { owner: 'helm', name: 'ready', status: 'deployed', version: '1' },
        },
        data: {
          release: Buffer.from(gzipSync(JSON.stringify({ config: {} })).toString('base64')).toString(
            'base64',
          ),
        },
      });
      expect(await rows('-n', ready.namespace)).toMatchObject([
        {
          gains: ['Endpoints without a Service', '1 patch of Endpoints'],
          differs: ['sync.toHost.endpoints.patches'],
        },
      ]);
      expect((await migrate()).out).toContain('# Where vCluster runs with other values than its release\n');

      await world.install('broken', { labels, values: patched('value +') });
      await world.install('valueless', { labels, values: {} });
      await world.host.delete('Secret', 'team-valueless', 'vc-config-valueless');
      const all = await rows();
      expect(all.map(({ name, today }) => [name, today])).toEqual([
        ['broken', 'vCluster'],
        ['member', 'fleet'],
        ['ready', 'vCluster'],
        ['valueless', 'unknown'],
      ]);
      expect(all[0]).toMatchObject({
        gains: ['Endpoints without a Service'],
        loses: ['sync.toHost.endpoints.patches[0].expression: unexpected end of the expression'],
      });
      expect(all[3]).toMatchObject({
        loses: [expect.stringContaining('has no Secret "team-valueless/vc-config-valueless"')],
      });
      const { code, out } = await migrate();
      expect(code).toBe(1);
      expect(out).toContain("# Add to vCluster's values of team-broken/broken, team-ready/ready\n");

      // What it prints makes it a member.
      const values = parse(textAt(all[2], 'values')) as {
        controlPlane: { statefulSet: { labels: Record<string, string> } };
      };
      await world.setWorkload(ready, { labels: values.controlPlane.statefulSet.labels });
      await world.setValues(ready, { ...values });
      const fleet = await world.start();
      await world.whenState(fleet, ready, 'joined');
      expect((await migrate('-o', 'helm')).err).toBe(
        'error: --fleet has no values of a chart: leave out -o helm\n',
      );
    });

    test('status, explain, diff and cleanup --vcluster need the host alone', async ({ expect }) => {
      await using world = await newWorld();
      const one = await world.install('one', { values: annotating('first') });
      await world.setOverlay(one, { endpointSyncer: { metadata: { excludeLabels: ['example.com/kept'] } } });
      const fleet = await world.start({ defaults: { references: { naming: 'long' } } });
      await world.publishConfig();
      const run = (command: string, ...args: string[]): Promise<CapturedRun> => {
        const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
        return capturedRun([command, '--vcluster', one.name, ...host, ...args]);
      };
      await world.createEndpoints(one, 'web', '10.1.0.1');
      await world.whenCopied(one, 'web', '10.1.0.1');
      await world.whenState(fleet, one, 'joined');
      await world.host.when(
        'Lease',
        [one.namespace, 'endpoint-syncer-one'],
        (lease) => lease.metadata.annotations?.['endpoint-syncer/configuration'] !== undefined,
      );

      // What they compare with is the configuration of the member.
      const source = 'ConfigMap fleet/endpoint-syncer of the fleet and Secret team-one/vc-config-one';
      expect(await run('diff')).toEqual({ code: 0, out: '', err: `configuration in use: ${source}\n` });
      const other = await run('diff', '--set', 'endpointSyncer.references.naming=short');
      expect(other.err).toContain('the daemon runs another configuration');
      const [namespace, name] = world.hostKey(one, 'web');
      expect(JSON.parse((await run('status', '-o', 'json')).out)).toMatchObject([
        { virtual: { namespace: 'default', name: 'web' }, host: { namespace, name }, state: 'synced' },
      ]);
      expect((await run('explain', 'default/web')).out).toContain('-> "first"');

      const refused = await run('cleanup', '--yes');
      expect([refused.code, refused.out]).toEqual([1, '']);
      expect(refused.err).toContain('remove the label that selects this vCluster for the fleet first');
      await world.setWorkload(one, { labels: { 'endpoint-syncer/enabled': 'false' } });
      await world.whenGone(fleet, one);
      const done = await run('cleanup', '--yes');
      expect(done.err).toContain('no fleet syncs vCluster team-one/one any more');
      expect([done.code, done.out]).toEqual([
        0,
        expect.stringContaining(`deleted Endpoints "${namespace}/${name}"`),
      ]);
      await world.whenNoCopy(one, 'web');
      // It can be run again, and the others say what is left.
      expect(await run('cleanup', '--yes')).toMatchObject({ code: 0, out: '' });
      expect((await run('status')).code).toBe(0);
    });

    test('--vcluster of a member that cannot be reached from here, or is asleep: why, and what to do', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const one = await world.install('one', { replicas: 0, access: undefined });
      const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
      const status = (...args: string[]): Promise<CapturedRun> =>
        capturedRun(['status', '--vcluster', 'one', ...host, ...args]);
      const fleet = await world.start();
      await world.publishConfig();
      await world.whenState(fleet, one, 'asleep');
      expect((await status()).err).toContain(
        'no daemon with the right to write this Lease has synced it: install this program beside it',
      );
      await world.setSecret(one.namespace, 'vc-one', { config: await world.access(0) });
      await world.scale(one, 1);
      await world.whenState(fleet, one, 'joined');
      await world.scale(one, 0);
      await world.whenState(fleet, one, 'asleep');
      expect(await status()).toMatchObject({
        code: 1,
        err: 'error: vCluster team-one/one is asleep, scaled to 0 replicas: wake it, because its API server has to respond\n',
      });
      await world.scale(one, 1);
      await world.whenState(fleet, one, 'joined');
      await fleet.stop();
      await world.setSecret(one.namespace, 'vc-one', { config: dead('https://localhost:8443') });
      const { code, err } = await status();
      expect(code).toBe(1);
      expect(err).toContain('the URL is https://one.team-one:');
      expect(err).toContain('port-forward service/one 8443:443" and pass --virtual-server');
      expect((await status('--virtual-kubeconfig', one.virtual.kubeconfigPath)).code).toBe(0);
    });

    test('a sidecar without leader election is warned of', async ({ expect }) => {
      await using world = await newWorld();
      const one = await world.install('one');
      await world.host.create('Lease', {
        metadata: {
          name: 'endpoint-syncer-one',
          namespace: one.namespace,
          annotations: { 'endpoint-syncer/configuration': 'of the sidecar' },
        },
        spec: {},
      });
      const fleet = await world.start();
      await world.whenState(fleet, one, 'joined');
      const warning = /^a daemon without leader election syncs this vCluster/u;
      expect(await fleet.whenLogged(warning)).toMatchObject({
        level: 'warn',
        vcluster: one.key,
        lease: 'team-one/endpoint-syncer-one',
      });
    });
  });
}

/** A kubeconfig whose server does not respond. */
function dead(server = 'http://127.0.0.1:1'): string {
  return kubeconfigText('a', { server }, { token: 'x' });
}

function stopsOf(
  fleet: { readonly log: readonly Readonly<Record<string, unknown>>[] },
  { key }: { readonly key: string },
): number {
  return fleet.log.filter(
    ({ msg, vcluster }) => msg === 'the sync of this member stopped' && vcluster === key,
  ).length;
}
