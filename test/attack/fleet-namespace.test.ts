/** One hostile of ten: the owner of one namespace of a fleet creates as many objects there as they like: the members of nine others are synced, and join, meanwhile. */

import { describe, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { eventually } from '../support/eventually.ts';
import { ApiProxy } from '../scenarios/api-proxy.ts';
import { FLEET_NAMESPACE, newEmbeddedFleet } from '../scenarios/fleet-world.ts';
import { HostileMember } from './hostile-member.ts';
import { EVIL, LEASES, MEMBERS, PLANTED_LEASES, VCLUSTERS } from './hostile-namespace.ts';

/** However long the machine takes, the replica does not lose its Lease by itself. */
const LONG_LEASE = { leaseDuration: '1h', renewDeadline: '30m', retryPeriod: '500ms' };
const REPLICA = '/leases/endpoint-syncer-replica-';
const LEASE_MS = 60 * 60_000;

/** A replica with {@link LONG_LEASE}, on a clock that can jump. */
async function openWithLease(): Promise<{ attack: HostileMember; loseLease: () => Promise<unknown> }> {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  const attack = await HostileMember.open({ clock, defaults: { leaderElection: LONG_LEASE } });
  const loseLease = (): Promise<unknown> => {
    aheadMs += LEASE_MS;
    return attack.fleet.whenLogged(/this replica no longer syncs this vCluster/u);
  };
  return { attack, loseLease };
}

describe('one hostile of ten: a namespace with', () => {
  test.for(Object.entries(VCLUSTERS))(
    `${MEMBERS} %s has ${MEMBERS / 2} members, read once for each version`,
    async ([, create], { expect }) => {
      await using stack = new AsyncDisposableStack();
      const { attack, loseLease } = await openWithLease();
      const { fleet, host, world } = stack.use(attack);
      await create(world.host);
      await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === MEMBERS / 2, {
        state: 'limited',
      });
      const renewals = (): number =>
        host.requests.filter(({ method, path }) => method === 'PUT' && path.includes(REPLICA)).length;
      const renewed = renewals();
      await attack.othersAreSynced();
      await eventually(renewals, (count) => count > renewed, { what: 'a renewal of the Lease' });
      expect(attack.dropped()).toBe(0);
      const late = await world.install('late');
      await world.whenState(fleet, late, 'joined');
      await loseLease();
      await attack.othersAreSynced();
      const before = attack.dropped();
      await attack.othersAreSynced();
      expect(attack.dropped()).toBe(before);
      const reads = host.requests.filter(({ path }) => path.includes(`/${EVIL}/secrets/vc-config-`));
      const counts = Map.groupBy(reads, ({ path }) => path);
      expect(Math.max(...[...counts.values()].map(({ length }) => length))).toBe(1);
      expect(counts.size).toBeLessThanOrEqual(MEMBERS / 2);
    },
  );

  test.for(Object.entries(PLANTED_LEASES))(
    `${LEASES} %s, as if of deleted vClusters, delays no other that joins, or is deleted`,
    async ([, create], { expect }) => {
      await using stack = new AsyncDisposableStack();
      const { attack, loseLease } = await openWithLease();
      const { fleet, host, others, world } = stack.use(attack);
      await create(world.host);
      const about = (): number =>
        host.requests.filter(({ path, isWatch }) => !isWatch && path.includes(`/namespaces/${EVIL}/`)).length;
      // Another term looks at them.
      await loseLease();
      await eventually(about, (count) => count > 0, { what: 'a look at the planted Leases' });
      for (const name of ['late', 'later']) {
        const vcluster = await world.install(name);
        await world.createEndpoints(vcluster, 'web', '10.9.0.7');
        await world.whenCopied(vcluster, 'web', '10.9.0.7');
      }
      await attack.othersAreSynced();
      const [gone] = others.slice(-1);
      if (gone === undefined) throw new Error('there is none');
      await world.uninstall(gone);
      await world.whenNoCopy(gone, 'round-1');
      // Of 20 of them at a time, a few requests each.
      expect(about()).toBeLessThan(LEASES);
      await world.whenState(fleet, others[0] ?? gone, 'joined');
    },
  );

  test('objects of large metadata is listed in small pages, and the members of others join', async ({
    expect,
  }) => {
    await using stack = new AsyncDisposableStack();
    const world = stack.use(await newEmbeddedFleet());
    const host = stack.use(await ApiProxy.open(world.host.kubeconfigPath));
    await world.host.ensureNamespace(EVIL);
    const annotations = { text: 'x'.repeat(200_000) };
    for (let at = 0; at < 60; at++)
      await world.host.create('ConfigMap', { metadata: { namespace: EVIL, name: `x${at}`, annotations } });
    const good = await world.install('good');
    const kubeconfig = world.file('host.kubeconfig', host.kubeconfig);
    const fleet = await world.start({ host: { kubeconfig, namespace: FLEET_NAMESPACE } });
    await world.whenState(fleet, good, 'joined');
    const pages = host.requests.flatMap(({ isWatch, path }) => {
      const { pathname, searchParams } = new URL(path, 'http://host');
      const isList = !isWatch && pathname === '/api/v1/configmaps';
      return isList ? [Number(searchParams.get('limit'))] : [];
    });
    expect(pages.filter((limit) => limit > 1).slice(0, 4)).toEqual([100, 50, 25, 12]);
    await fleet.stop();
  });
});
