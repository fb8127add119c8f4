/** Which replica may write, and what its Lease says of it. */

import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { TransportError } from '../../src/kube/types.ts';
import {
  CONFIGURATION,
  leaseName,
  startLeadership,
  type LeadershipOptions,
} from '../../src/syncer/leadership.ts';
import { validConfig } from '../cli/config/setup.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { leaseClient, LeaseServer } from '../support/lease-server.ts';

const LEASE = leaseName('vc');
const NEVER = new AbortController().signal;

function replicasOf({ isElected }: { isElected: boolean }) {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const config = validConfig(
    `endpointSyncer: {name: vc, host: {namespace: team}, leaderElection: {enabled: ${isElected}}}`,
  );
  const leads: boolean[] = [];
  const start = (options: Partial<LeadershipOptions> = {}) =>
    startLeadership({
      config,
      client: leaseClient(server, clock, 1),
      isDryRun: false,
      clock,
      random: () => 0.5,
      logger: silentLogger,
      metrics: { leads: (_, isLeader) => void leads.push(isLeader) },
      ...options,
    });
  const annotations = () => server.stored.get(LEASE)?.metadata.annotations;
  return { server, clock, leads, start, annotations };
}

describe('without leader election', () => {
  test('the replica leads at once, and the Lease has what it publishes and no holder', async () => {
    const { server, clock, leads, start, annotations } = replicasOf({ isElected: false });
    const replica = start();
    expect([replica.isLeading, replica.check().isOk, leads]).toEqual([true, true, [true]]);
    replica.publish({ [CONFIGURATION]: 'a' });
    replica.publish({ other: 'b' });
    await clock.advanceAsync(1000);
    expect(annotations()).toEqual({ [CONFIGURATION]: 'a', other: 'b' });
    expect(server.holderOf(LEASE) ?? '').toBe('');
  });

  test('what could not be published is once the server responds, and is cleared at the end', async () => {
    const { server, clock, start, annotations } = replicasOf({ isElected: false });
    server.isAway = true;
    const replica = start();
    replica.publish({ [CONFIGURATION]: 'a', other: 'b' });
    await clock.advanceAsync(10_000);
    expect(annotations()).toBeUndefined();
    server.isAway = false;
    await clock.advanceAsync(60_000);
    expect(annotations()?.[CONFIGURATION]).toBe('a');
    const ended = replica[Symbol.asyncDispose]();
    await clock.advanceAsync(1000);
    await ended;
    expect(annotations()).toEqual({ [CONFIGURATION]: '', other: 'b' });
  });

  test('the end of a replica leaves what a later one has published', async () => {
    const { clock, start, annotations } = replicasOf({ isElected: false });
    const [first, second] = [start(), start()];
    for (const [replica, hash] of [
      [first, 'first'],
      [second, 'second'],
    ] as const) {
      replica.publish({ [CONFIGURATION]: hash });
      await clock.advanceAsync(1000);
    }
    const ended = first[Symbol.asyncDispose]();
    await clock.advanceAsync(2000);
    await ended;
    expect(annotations()).toEqual({ [CONFIGURATION]: 'second' });
  });
});

describe.each([false, true])('a dry run, leader election enabled: %s', (isElected) => {
  test('leads, and writes nothing', async () => {
    const { server, clock, start } = replicasOf({ isElected });
    const replica = start({ isDryRun: true });
    replica.publish({ [CONFIGURATION]: 'a' });
    await replica.whenLeading(NEVER);
    await clock.advanceAsync(60_000);
    expect([replica.isLeading, server.stored.size]).toEqual([true, 0]);
  });
});

describe('with leader election', () => {
  test('one replica writes, the other is a ready standby, and leads once the first has ended', async () => {
    const { clock, start, annotations } = replicasOf({ isElected: true });
    const first = start();
    first.publish({ [CONFIGURATION]: 'first' });
    await clock.advanceAsync(100);
    const second = start();
    await clock.advanceAsync(100);
    expect([first.isLeading, second.isLeading]).toEqual([true, false]);
    expect(annotations()?.[CONFIGURATION]).toBe('first');
    expect(() => first.checkWrite()).not.toThrow();
    expect(() => second.checkWrite()).toThrow(TransportError);
    expect(second.check()).toMatchObject({
      isOk: true,
      detail: expect.stringMatching(/^standby, .+ leads$/u) as string,
    });
    const ended = first[Symbol.asyncDispose]();
    // Earlier than the Lease would expire.
    await clock.advanceAsync(5000);
    await ended;
    await second.whenLeading(NEVER);
    expect([first.isLeading, second.isLeading]).toEqual([false, true]);
  });

  test('a replica whose Lease another one has taken stops writing, and says who has it', async () => {
    const { server, clock, leads, start } = replicasOf({ isElected: true });
    const replica = start();
    await clock.advanceAsync(100);
    const held = server.stored.get(LEASE);
    if (held === undefined) throw new Error('the replica does not lead');
    server.write({ ...held, spec: { ...(held['spec'] as object), holderIdentity: 'other' } });
    await clock.advanceAsync(60_000);
    expect(await replica.lost).toBe(`the lease ${LEASE} was lost to other`);
    expect(() => replica.checkWrite()).toThrow(TransportError);
    expect(leads).toEqual([false, true, false]);
  });

  test('a replica that cannot renew its Lease stops writing', async () => {
    const { server, clock, start } = replicasOf({ isElected: true });
    const replica = start();
    await clock.advanceAsync(100);
    server.isAway = true;
    await clock.advanceAsync(60_000);
    expect(await replica.lost).toMatch(/was not renewed within \d+ s$/u);
    expect(() => replica.checkWrite()).toThrow(TransportError);
  });

  test('waiting to lead ends with its signal', async () => {
    const { clock, start } = replicasOf({ isElected: true });
    start();
    await clock.advanceAsync(100);
    const waiting = new AbortController();
    const standby = start();
    const waited = standby.whenLeading(waiting.signal);
    waiting.abort();
    await waited;
    expect(standby.isLeading).toBe(false);
  });
});
