/** A fleet in operation, on embedded clusters: a dry run, its rights at the start, changed values, an uninstallation that is undone, and a cleanup after
 * all of its replicas were killed. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { microTime, type KubeObject } from '../../src/kube/object.ts';
import { capturedRun, type CapturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import { ApiProxy } from './api-proxy.ts';
import { FLEET_NAMESPACE, newEmbeddedFleet, SWITCHED_OFF } from './fleet-world.ts';

describe.concurrent('a fleet in operation', () => {
  test('a dry run says what it would write, and writes nothing', async ({ expect }) => {
    await using world = await newEmbeddedFleet();
    const [one, two] = [await world.install('one'), await world.install('two')];
    await world.createEndpoints(one, 'web', '10.1.0.1');
    await world.createEndpoints(two, 'web', '10.2.0.1');
    const before = await one.virtual.list('Endpoints', '');
    const fleet = await world.start({}, { isDryRun: true });
    for (const member of [one, two]) await world.whenState(fleet, member, 'joined');
    const written = (): unknown[] =>
      fleet.log.filter(({ msg }) => msg === 'would write').map(({ vcluster }) => vcluster);
    await expect.poll(written).toEqual(expect.arrayContaining([one.key, two.key]));
    // Without its workload, a daemon would delete copies.
    await world.uninstall(two);
    await world.whenGone(fleet, two);
    await fleet.stop();
    for (const kind of ['Endpoints', 'Lease', 'Event'] as const)
      expect(await world.host.list(kind, '')).toEqual([]);
    expect(await one.virtual.list('Endpoints', '')).toEqual(before);
  });

  test('the log names the user of the host', async ({ expect }) => {
    await using world = await newEmbeddedFleet();
    await using proxy = await ApiProxy.open(world.host.kubeconfigPath);
    const user = JSON.stringify({ status: { userInfo: { username: 'fleet' } } });
    proxy.behaviour = {
      decide: ({ path }) =>
        path.endsWith('/selfsubjectreviews') ? { kind: 'pretend', body: user } : { kind: 'pass' },
    };
    const kubeconfig = world.file('proxied.kubeconfig', proxy.kubeconfig);
    const fleet = await world.start({ host: { kubeconfig, namespace: FLEET_NAMESPACE } });
    expect(await fleet.whenLogged(/^connected$/u)).toMatchObject({ cluster: 'host', user: 'fleet' });
    await fleet.stop();
  });

  test('the copies of a vCluster stay that is installed again while they are deleted', async ({ expect }) => {
    await using world = await newEmbeddedFleet();
    await using proxy = await ApiProxy.open(world.host.kubeconfigPath);
    const one = await world.install('one');
    const kubeconfig = world.file('proxied.kubeconfig', proxy.kubeconfig);
    const fleet = await world.start({ host: { kubeconfig, namespace: FLEET_NAMESPACE } });
    const names = ['web', 'db', 'queue'];
    for (const name of names) await world.createEndpoints(one, name, '10.1.0.1');
    for (const name of names) await world.whenCopied(one, name, '10.1.0.1');
    await world.whenState(fleet, one, 'joined');
    let deletions = 0;
    proxy.behaviour = {
      async decide({ method, path }) {
        if (method !== 'DELETE' || !path.includes('/endpoints/')) return { kind: 'pass' };
        deletions += 1;
        await world.setWorkload(one, {});
        const cached = { cluster: 'host', resource: 'statefulsets' };
        await fleet.whenMetric('endpoint_syncer_cache_objects', (count) => count === 1, cached);
        return { kind: 'pass' };
      },
    };
    await world.uninstall(one);
    await world.whenState(fleet, one, 'starting');
    // The one deletion that was sent before is completed.
    const left = await eventually(
      () => world.host.list('Endpoints', one.namespace),
      (copies) => copies.length < names.length,
    );
    expect(left).toHaveLength(2);
    expect(deletions).toBe(1);
  });

  test('a value of vCluster that an expression reads is reloaded, and other ones restart nothing either', async ({
    expect,
  }) => {
    await using world = await newEmbeddedFleet();
    const path = 'metadata.annotations["example.com/by"]';
    const expression = 'context.vcluster.config.controlPlane.statefulSet.labels.team';
    const endpoints = { enabled: false, patches: [{ path, expression }] };
    const labelled = (labels: JsonObject): JsonObject => ({
      sync: { toHost: { ...SWITCHED_OFF, endpoints } },
      controlPlane: { statefulSet: { labels } },
    });
    const one = await world.install('one', { values: labelled({ team: 'first' }) });
    const fleet = await world.start();
    await world.createEndpoints(one, 'web', '10.1.0.1');
    const by = async (team: string): Promise<void> =>
      void (await world.host.when(
        'Endpoints',
        world.hostKey(one, 'web'),
        (copy) => copy.metadata.annotations?.['example.com/by'] === team,
      ));
    await by('first');
    await world.setValues(one, labelled({ team: 'first', other: 'x' }));
    await fleet.whenLogged(/^configuration reloaded$/u);
    await world.setValues(one, labelled({ team: 'second', other: 'x' }));
    await by('second');
    expect(fleet.log.filter(({ msg }) => msg === 'the sync of this member stopped')).toEqual([]);
  });

  test('a fleet that serves the key API does not start without the rights to its store', async ({
    expect,
  }) => {
    await using world = await newEmbeddedFleet();
    await using proxy = await ApiProxy.open(world.host.kubeconfigPath);
    proxy.behaviour = {
      decide: ({ path, body }) =>
        path.includes('selfsubjectaccessreviews') && body.includes('"namespace":"keys"')
          ? { kind: 'pretend', body: JSON.stringify({ status: { allowed: false } }) }
          : { kind: 'pass' },
    };
    const host = { kubeconfig: world.file('proxied', proxy.kubeconfig), namespace: FLEET_NAMESPACE };
    const start = (driver: string): Promise<unknown> =>
      world.start({ host, managementApi: { enabled: true, store: { driver, namespace: 'keys' } } });
    await expect(start('kubernetes')).rejects.toThrow(
      /^6 rights of the fleet are missing on the host; grant/u,
    );
  });

  test('cleanup --vcluster runs as soon as the replica that held the member has ended, however it ended', async ({
    expect,
  }) => {
    await using world = await newEmbeddedFleet();
    const one = await world.install('one');
    const fleet = await world.start();
    await world.publishConfig();
    await world.createEndpoints(one, 'web', '10.1.0.1');
    await world.whenCopied(one, 'web', '10.1.0.1');
    await world.setWorkload(one, { labels: { 'endpoint-syncer/enabled': 'false' } });
    await world.whenGone(fleet, one);
    await fleet.stop();
    const cleanup = (...args: string[]): Promise<CapturedRun> => {
      const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
      return capturedRun(['cleanup', '--vcluster', one.name, ...host, ...args]);
    };
    // As after kill -9: no process has released the Lease of the member.
    const identity = 'endpoint-syncer-replica-killed';
    const held = (renewedMs: number, seconds: number) => ({
      holderIdentity: identity,
      leaseDurationSeconds: seconds,
      renewTime: microTime(renewedMs),
    });
    await world.host.merge('Lease', [one.namespace, 'endpoint-syncer-one'], { spec: held(Date.now(), 3600) });
    const replica = (renewedMs: number): KubeObject => ({
      metadata: { name: identity, namespace: FLEET_NAMESPACE },
      spec: held(renewedMs, 15),
    });
    await world.host.create('Lease', replica(Date.now() + 3_600_000));
    const refused = await cleanup('--yes');
    expect([refused.code, refused.out]).toEqual([1, '']);
    expect(refused.err).toContain(`replica "${identity}" holds Lease "team-one/endpoint-syncer-one"`);

    await world.host.merge('Lease', [FLEET_NAMESPACE, identity], replica(Date.now() - 60_000));
    const listed = await cleanup('--dry-run');
    expect([listed.code, listed.err]).toEqual([0, expect.not.stringContaining('holds Lease')]);
    await world.host.delete('Lease', FLEET_NAMESPACE, identity);
    expect((await cleanup('--yes')).code).toBe(0);
    await world.whenNoCopy(one, 'web');
  });

  test('status and explain --vcluster say that a member is limited, for as long as it is', async ({
    expect,
  }) => {
    await using world = await newEmbeddedFleet();
    const one = await world.install('one');
    const limited = (objects: number) => ({ fleet: { limits: { objects } } });
    let fleet = await world.start(limited(100));
    await world.publishConfig();
    await world.createEndpoints(one, 'web', '10.1.0.1');
    await world.whenCopied(one, 'web', '10.1.0.1');
    const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
    const run = (command: string, ...args: string[]): Promise<CapturedRun> =>
      capturedRun([command, '--vcluster', one.name, ...host, ...args]);
    const states = async (): Promise<Record<string, unknown>> => {
      const rows = JSON.parse((await run('status', '-o', 'json')).out) as Row[];
      return Object.fromEntries(rows.map(({ virtual, state, reason }) => [virtual.name, [state, reason]]));
    };
    for (let at = 0; at < 110; at++) await world.createEndpoints(one, `more-${at}`, '10.1.0.2');
    await world.whenState(fleet, one, 'limited');
    const warning =
      /^warning: vCluster team-one\/one is in the state limited: at least \d+ objects in its caches, .* or raise the limit$/mu;
    const { err } = await eventually(
      () => run('status'),
      (result) => warning.test(result.err),
      { what: 'the note on the Lease' },
    );
    expect(err).toMatch(warning);
    expect(await states()).toMatchObject({ web: ['synced', ''], 'more-109': ['failed', 'NotJoined'] });
    expect((await run('explain', 'default/more-109')).out).toMatch(
      /^Endpoints "default\/more-109" is not in sync: its vCluster is in the state limited: at least/u,
    );

    world.writeConfig(limited(1000));
    await world.publishConfig();
    await world.whenState(fleet, one, 'joined');
    await world.whenCopied(one, 'more-109', '10.1.0.2');
    const noted = async (): Promise<boolean> => {
      const status = await run('status');
      if (status.code !== 0) throw new Error(status.err);
      return status.err.includes('is in the state');
    };
    await eventually(noted, (isNoted) => !isNoted, { what: 'the end of the note' });

    // A replica that was killed leaves its note, and its own Lease until that expires.
    await fleet.stop();
    const annotations = { 'endpoint-syncer/state': 'endpoint-syncer-replica-killed limited: too many' };
    await world.host.merge('Lease', [one.namespace, 'endpoint-syncer-one'], { metadata: { annotations } });
    const replica = (renewedMs: number) => ({
      metadata: { name: 'endpoint-syncer-replica-killed', namespace: FLEET_NAMESPACE },
      spec: {
        holderIdentity: 'endpoint-syncer-replica-killed',
        leaseDurationSeconds: 15,
        renewTime: microTime(renewedMs),
      },
    });
    await world.host.create('Lease', replica(Date.now() + 3_600_000));
    expect(await noted()).toBe(true);
    await world.host.merge(
      'Lease',
      [FLEET_NAMESPACE, replica(0).metadata.name],
      replica(Date.now() - 60_000),
    );
    expect(await noted()).toBe(false);
    // The next holder removes it.
    fleet = await world.start(limited(1000));
    await world.host.when(
      'Lease',
      [one.namespace, 'endpoint-syncer-one'],
      (lease) => lease.metadata.annotations?.['endpoint-syncer/state'] === '',
    );
    await world.whenState(fleet, one, 'joined');
  });

  test('status --vcluster says why a member has failed that was never synced', async ({ expect }) => {
    await using world = await newEmbeddedFleet();
    const one = await world.install('one', { access: { config: '{"kind": "Config"}' } });
    const fleet = await world.start();
    await world.publishConfig();
    await world.whenState(fleet, one, 'failed');
    const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
    const { err } = await eventually(
      () => capturedRun(['status', '--vcluster', one.name, ...host]),
      (result) => result.err.includes('is in the state failed: '),
      { what: 'the note on the Lease' },
    );
    expect(err).toMatch(
      /^warning: vCluster team-one\/one is in the state failed: .*; the fleet tries again, after a minute at most$/mu,
    );
    await world.uninstall(one);
    await world.host.whenGone('Lease', [one.namespace, 'endpoint-syncer-one']);
  });
});

interface Row {
  readonly virtual: { readonly name: string };
  readonly state: string;
  readonly reason: string;
}
