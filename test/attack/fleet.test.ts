/** One member of ten is hostile: what it gets, and that the others are synced meanwhile. Their latencies: `npm run bench -- hostile`. */

import { describe, test } from 'vitest';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { eventually } from '../support/eventually.ts';
import { SWITCHED_OFF } from '../scenarios/fleet-world.ts';
import type { Verdict } from '../scenarios/api-proxy.ts';
import { flapping, HostileMember, hostileObject, isEndpoints, OTHERS, page } from './hostile-member.ts';
import { HOSTILE_EXPRESSIONS } from './tenants.ts';

const FLAPPING = 10_000;
/** A request that hangs does so for as long as the test takes. */
const withoutRequestTimeouts: Clock = {
  ...systemClock,
  schedule: (ms, callback) => systemClock.schedule(ms >= REQUEST_TIMEOUT_MS ? NEVER_MS : ms, callback),
};
const PAGE = 500;
const REQUEST_TIMEOUT_MS = 30_000;
const NEVER_MS = 2 ** 30;

describe('one hostile of ten: a member', () => {
  test.for<[string, (count: number) => JsonObject[]]>([
    [
      'with new objects',
      (count: number) => Array.from({ length: PAGE }, (_, at) => hostileObject(count + at, 1)),
    ],
    ['with the same objects', () => Array.from({ length: PAGE }, (_, at) => hostileObject(at, 1))],
    ['with empty pages', () => []],
  ])('that returns endless lists, %s, is limited, and its copies stay', async ([, items], { expect }) => {
    await using attack = await HostileMember.open({ limits: { objects: 1000 } });
    const { fleet, hostile, virtual, world } = attack;
    let pages = 0;
    virtual.behaviour = {
      decide(request) {
        if (!isEndpoints(request)) return { kind: 'pass' };
        if (request.isWatch) return { kind: 'refuse', status: 410, reason: 'Expired' };
        return { kind: 'pretend', body: page(items((pages += 1) * PAGE), 'more') };
      },
    };
    virtual.cutAll();
    const line = await world.whenState(fleet, hostile, 'limited');
    expect(line).toMatch(
      /at least \d+ objects in its caches, endpointSyncer\.fleet\.limits\.objects is 1000/u,
    );
    expect(pages).toBeLessThan(1100);
    await attack.othersAreSynced();
    await world.whenCopied(hostile, 'web', '10.9.0.1');
    await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === 1, { state: 'limited' });
    await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === 9, { state: 'joined' });
    // It joins again without a restart.
    virtual.behaviour = {};
    world.writeConfig({
      host: { kubeconfig: `${world.directory}/host.kubeconfig`, namespace: 'fleet' },
      fleet: { limits: { objects: 1001 } },
    });
    await world.whenState(fleet, hostile, 'joined');
    await world.createEndpoints(hostile, 'late', '10.9.0.3');
    await world.whenCopied(hostile, 'late', '10.9.0.3');
  });

  test('that returns objects of more bytes than its limit is limited', async ({ expect }) => {
    await using attack = await HostileMember.open({ limits: { cacheBytes: '4Mi' } });
    const { fleet, hostile, virtual, world } = attack;
    const text = 'x'.repeat(200_000);
    for (let at = 0; at < 25; at++)
      await hostile.virtual.create('Endpoints', {
        metadata: { name: `large-${at}`, namespace: 'default', annotations: { text } },
      });
    expect(await world.whenState(fleet, hostile, 'limited')).toMatch(
      /at least 4 MiB in its caches, endpointSyncer\.fleet\.limits\.cacheBytes is 4 MiB/u,
    );
    await attack.othersAreSynced();
    await world.whenCopied(hostile, 'web', '10.9.0.1');
    expect(virtual.requests.length).toBeGreaterThan(0);
  });

  test('that returns one giant response, and events that never end, is read no further', async ({
    expect,
  }) => {
    await using attack = await HostileMember.open();
    const { fleet, hostile, virtual, world } = attack;
    let sent = 0;
    function* endless(): Generator<string> {
      for (;;) {
        sent += 65_536;
        yield 'x'.repeat(65_536);
      }
    }
    virtual.behaviour = {
      decide: (request) => (isEndpoints(request) ? { kind: 'stream', texts: endless() } : { kind: 'pass' }),
    };
    virtual.cutAll();
    const restarts = (reason: string): Promise<number> =>
      fleet.metric('endpoint_syncer_watch_restarts_total', { vcluster: hostile.key, reason });
    await eventually(
      () => restarts('oversized'),
      (count) => count >= 1,
      { what: 'the end of the first giant response' },
    );
    await attack.othersAreSynced();
    // What is sent beyond 4 MiB waits in the buffers of the two ends.
    const attempts = virtual.requests.filter(isEndpoints).length;
    expect(sent).toBeLessThan((attempts + 1) * 16 * 2 ** 20);
    await world.whenCopied(hostile, 'web', '10.9.0.1');
  });

  test('of which the writes hang in a webhook of the host has a few requests in flight', async ({
    expect,
  }) => {
    await using attack = await HostileMember.open({ limits: { hostRequests: 3 } });
    const { host, hostile, world } = attack;
    const gate = Promise.withResolvers<void>();
    let [inFlight, most] = [0, 0];
    host.behaviour = {
      async decide(request) {
        if (!attack.isHostile(request) || !request.isWrite) return { kind: 'pass' };
        inFlight += 1;
        most = Math.max(most, inFlight);
        await gate.promise;
        inFlight -= 1;
        return { kind: 'pass' };
      },
    };
    for (let at = 0; at < 30; at++) await world.createEndpoints(hostile, `hangs-${at}`, '10.9.0.2');
    await eventually(
      () => inFlight,
      (count) => count === 3,
      { what: 'the requests in flight' },
    );
    for (let round = 0; round < 3; round++) await attack.othersAreSynced();
    expect([inFlight, most]).toEqual([3, 3]);
    gate.resolve();
    await world.whenCopied(hostile, 'hangs-29', '10.9.0.2');
    expect(most).toBe(3);
  });

  test('of which there are 16, whose requests to the host all hang, delays no other', async ({ expect }) => {
    await using attack = await HostileMember.open({ clock: withoutRequestTimeouts });
    const { fleet, host, world } = attack;
    // One API server for all: what they sync are the same objects.
    const hostile = [];
    for (let at = 0; at < 16; at++) hostile.push(await world.install(`hangs-${at}`, { index: OTHERS + 1 }));
    for (const vcluster of hostile) await world.whenState(fleet, vcluster, 'joined');
    let inFlight = 0;
    const stopped = Promise.withResolvers<Verdict>();
    host.behaviour = {
      decide({ isWatch, path }) {
        if (isWatch || !path.includes('/namespaces/team-hangs-') || path.includes('/leases'))
          return { kind: 'pass' };
        inFlight += 1;
        return stopped.promise;
      },
    };
    const [one] = hostile;
    if (one === undefined) throw new Error('there is none');
    for (let at = 0; at < 8; at++) await world.createEndpoints(one, `hangs-${at}`, '10.9.0.2');
    await eventually(
      () => inFlight,
      (count) => count === 16 * 4,
      { what: 'all requests that they may have' },
    );
    for (let round = 0; round < 2; round++) await attack.othersAreSynced();
    expect(inFlight).toBe(16 * 4);
    stopped.resolve({ kind: 'pass' });
    for (const vcluster of hostile) await world.whenCopied(vcluster, 'hangs-7', '10.9.0.2');
  });

  test(`with ${FLAPPING} objects that change all the time takes its turn at the host`, async ({ expect }) => {
    await using attack = await HostileMember.open();
    const { host, hostile, virtual, world } = attack;
    virtual.behaviour = { decide: flapping(FLAPPING) };
    let [inFlight, most] = [0, 0];
    host.behaviour = {
      decide(request) {
        if (attack.isHostile(request) && request.isWrite) {
          inFlight += 1;
          most = Math.max(most, inFlight);
        }
        return { kind: 'pass' };
      },
      afterWrite(request) {
        if (attack.isHostile(request)) inFlight -= 1;
      },
    };
    const writes = (): number =>
      host.requests.filter((request) => attack.isHostile(request) && request.isWrite).length;
    virtual.cutAll();
    await eventually(writes, (count) => count > 20, { what: 'writes of the hostile member' });
    await attack.othersAreSynced();
    const before = writes();
    await eventually(writes, (count) => count > before, { what: 'more of them' });
    expect(most).toBeLessThanOrEqual(4);
    await world.whenState(attack.fleet, hostile, 'joined');
  });

  test('with a regular expression that explodes does not delay the expressions of others', async ({
    expect,
  }) => {
    const expression = HOSTILE_EXPRESSIONS['a regular expression that no engine runs in linear time'];
    const patches = [{ path: 'metadata.annotations["example.com/evil"]', expression }];
    const values = { sync: { toHost: { ...SWITCHED_OFF, endpoints: { enabled: false, patches } } } };
    await using attack = await HostileMember.open({ values });
    const { fleet, hostile } = attack;
    const evil = `${'a'.repeat(32)}b`;
    for (let at = 0; at < 50; at++)
      await hostile.virtual.create('Endpoints', {
        metadata: {
          name: `evil-${at}`,
          namespace: 'default',
          annotations: { 'example.com/evil': `${evil}${at}` },
        },
      });
    expect(await fleet.whenLogged(/an expression was stopped/u)).toMatchObject({ vcluster: hostile.key });
    for (let round = 0; round < 2; round++) await attack.othersAreSynced();
    await attack.world.whenCopied(hostile, 'web', '10.9.0.1');
  });

  test('of which the values change all the time, and are invalid, is told a few times', async ({
    expect,
  }) => {
    await using attack = await HostileMember.open();
    const { fleet, hostile, world } = attack;
    const long = '- a\n'.repeat(10_000);
    for (let at = 0; at < 40; at++) await world.setValues(hostile, `bad-${at}: [\n${long}`);
    await attack.othersAreSynced();
    expect(await world.whenState(fleet, hostile, 'invalid')).toContain(
      'Secret team-hostile/vc-config-hostile',
    );
    const events = await world.host.list('Event', hostile.namespace);
    expect(events.filter(({ reason }) => reason === 'NotJoined').length).toBeLessThan(12);
    await world.setValues(hostile, { sync: { toHost: SWITCHED_OFF } });
    await world.whenState(fleet, hostile, 'joined');
  });

  test('of which values change all the time, each valid, is restarted a few times', async ({ expect }) => {
    await using attack = await HostileMember.open();
    const { fleet, hostile, world } = attack;
    for (let at = 0; at < 40; at++)
      await world.setOverlay(hostile, { endpointSyncer: { requireService: at % 2 === 0 } });
    await attack.othersAreSynced();
    const stops = fleet.log.filter(({ msg }) => msg === 'the sync of this member stopped');
    expect(stops.length).toBeLessThan(40);
    await world.createEndpoints(hostile, 'late', '10.9.0.3');
    await world.whenCopied(hostile, 'late', '10.9.0.3');
  });
});
