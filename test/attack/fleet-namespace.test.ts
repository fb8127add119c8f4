/** The owner of one namespace of a fleet creates as many objects there as they like: the members of nine others are synced, and join, meanwhile. */

import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ApiProxy, type Verdict } from '../scenarios/api-proxy.ts';
import { FLEET_NAMESPACE, newEmbeddedFleet } from '../scenarios/fleet-world.ts';
import { HostileMember } from './hostile-member.ts';

const SWITCHED_OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n';
const EVIL = 'team-evil';
const MEMBERS = 40;
const LEASES = 1500;
/** The replica loses its Lease soon, and takes it soon again. */
const SHORT_LEASE = { leaseDuration: '3s', renewDeadline: '2s', retryPeriod: '500ms' };

/** As long as they may be, of many small parts. */
function longText(head: string): string {
  let text = `${head}x:\n`;
  for (let at = 0; text.length < 127_000; at++) text += `- {a: [${at}, b, {c: d}]}\n`;
  return text;
}

/** Its Lease cannot be renewed until it has stopped all members; afterwards, it can. */
async function loseLease({ fleet, host, world }: HostileMember): Promise<void> {
  const refused: Verdict = { kind: 'refuse', status: 500, reason: 'InternalError' };
  world.expectErrors();
  host.behaviour = {
    decide: ({ path }) => (path.includes('endpoint-syncer-replica-') ? refused : { kind: 'pass' }),
  };
  await fleet.whenLogged(/this replica no longer syncs this vCluster/u);
  host.behaviour = {};
}

function lost({ fleet }: HostileMember): number {
  return fleet.log.filter(({ msg }) => String(msg).startsWith('this replica no longer syncs')).length;
}

describe('a namespace with', () => {
  test(`${MEMBERS} vClusters whose values and kubeconfigs are as long as they may be has ${MEMBERS / 2} members, read once for each version`, async ({
    expect,
  }) => {
    await using attack = await HostileMember.open({ defaults: { leaderElection: SHORT_LEASE } });
    const { fleet, host, world } = attack;
    const [values, kubeconfig] = [longText(SWITCHED_OFF), longText('clusters: []\n')];
    await world.host.ensureNamespace(EVIL);
    for (let at = 0; at < MEMBERS; at++) {
      // In the order of their names, which decides where they have the same age in seconds.
      const name = `w${100 + at}`;
      const vcluster = { name, namespace: EVIL };
      await world.setValues(vcluster, values);
      await world.setSecret(EVIL, `vc-${name}`, { config: kubeconfig });
      const labels = { app: 'vcluster', 'endpoint-syncer/enabled': 'true' };
      await world.host.create('StatefulSet', {
        metadata: { name, namespace: EVIL, labels },
        spec: { replicas: 1, selector: { matchLabels: labels }, template: {} },
      });
    }
    await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === MEMBERS / 2, {
      state: 'limited',
    });
    await attack.othersAreSynced();
    expect(lost(attack)).toBe(0);
    const late = await world.install('late');
    await world.whenState(fleet, late, 'joined');
    await loseLease(attack);
    await attack.othersAreSynced();
    const before = lost(attack);
    await attack.othersAreSynced();
    expect(lost(attack)).toBe(before);
    const reads = host.requests.filter(({ path }) => path.includes(`/${EVIL}/secrets/vc-config-`));
    const counts = Map.groupBy(reads, ({ path }) => path);
    expect(Math.max(...[...counts.values()].map(({ length }) => length))).toBe(1);
    expect(counts.size).toBeLessThanOrEqual(MEMBERS / 2);
  });

  test.for<[string, string, number]>([
    ['held for ever by nobody', 'me', 2 ** 31 - 1],
    ['that anybody may take', '', 1],
  ])(
    `${LEASES} Leases as if of deleted vClusters, %s, delays no other that joins, or is deleted`,
    async ([, holder, seconds], { expect }) => {
      await using attack = await HostileMember.open({ defaults: { leaderElection: SHORT_LEASE } });
      const { fleet, host, others, world } = attack;
      await world.host.ensureNamespace(EVIL);
      for (let at = 0; at < LEASES; at++)
        await world.host.create('Lease', {
          metadata: {
            name: `endpoint-syncer-f${at}`,
            namespace: EVIL,
            annotations: { 'endpoint-syncer/fleet': 'x' },
          },
          spec: { holderIdentity: holder, leaseDurationSeconds: seconds },
        });
      const about = (): number =>
        host.requests.filter(({ path, isWatch }) => !isWatch && path.includes(`/namespaces/${EVIL}/`)).length;
      // Another term looks at them.
      await loseLease(attack);
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
