/** A host that is unavailable, denies requests or is slow: the errors of the store, and their timing. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FaultyCluster, startFaultyCluster } from '../../../embedded-cluster/faulty-cluster.ts';
import { plainAccess } from '../../../../src/kube/access.ts';
import { TerminalError } from '../../../../src/base/errors.ts';
import { silentLogger, type LogFields, type Logger } from '../../../../src/base/logger.ts';
import type { StoreEvent } from '../../../../src/apiserver/storage/store.ts';
import { until } from '../../../kube/informer-harness.ts';
import { keyNamed } from './crowd.ts';
import { failNext, fast, hurried, openReplica, timerDriven } from './replicas.ts';
import { disconnect } from '../../../support/connections.ts';

let cluster: FaultyCluster;
/**
 * A deadline of 9.6 s: eight delays of 50 ms to 2 s are 7.15 s, and the ninth does not fit. The last attempt has 2.4 s for its response, which
 * pass in real time.
 */
const hasty = () => ({ clock: timerDriven(20), random: () => 1, timeoutMs: 9600 });

beforeEach(async () => {
  cluster = await startFaultyCluster({ name: 'host' });
});

afterEach(async () => {
  await cluster[Symbol.asyncDispose]();
});

describe('opening', () => {
  test('names missing permissions', async () => {
    await using strict = await startFaultyCluster({
      name: 'strict',
      authorizer: {
        authorize: (_, { verb, resource }) => ({
          isAllowed: resource !== 'secrets' || ['get', 'list', 'watch'].includes(verb),
          reason: '',
        }),
      },
    });
    const opening = openReplica(plainAccess(strict.url));
    await expect(opening).rejects.toThrow(TerminalError);
    await expect(opening).rejects.toThrow('cannot create, patch, delete secrets in namespace "default"');
  });

  test('waits for a host that does not respond yet', async () => {
    let isAway = true;
    const [warnings, dropped]: [string[], unknown[]] = [[], []];
    const logger: Logger = {
      ...silentLogger,
      warn: (_fields, message) => void warnings.push(message),
      child: () => logger,
    };
    cluster.intercept((request) => {
      if (!isAway) return undefined;
      dropped.push(request);
      return 'drop';
    });
    const opening = openReplica(plainAccess(cluster.url), { ...fast, logger });
    await until(() => dropped.length >= 3);
    isAway = false;
    expect(warnings).toEqual(['the host cluster of the store does not respond yet']);
    await using replica = await opening;
    expect(replica.store.condition.phase).not.toBe('stopped');
  });
});

describe('an unavailable host', () => {
  test('is "unavailable" after the deadline', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), hasty());
    const { store } = replica;
    const { revision } = await store.create(keyNamed('a'), {});
    cluster.intercept(() => ({ status: 429, reason: 'TooManyRequests' }));
    const refusals = await Promise.allSettled([
      store.get(keyNamed('a')),
      store.list({ resource: 'things' }),
      store.revision(),
      store.create(keyNamed('b'), {}),
      store.update(keyNamed('a'), {}, revision),
      store.notes('t').read(),
      store.notes('t').write(new Map([['a', 'b']])),
    ]);
    const codes = refusals.map((result) =>
      result.status === 'rejected' ? (result.reason as { code: unknown }).code : 'fulfilled',
    );
    expect(codes).toEqual(Array.from(refusals, () => 'unavailable'));
    cluster.intercept(undefined);
    expect((await store.list({ resource: 'things' })).entries).toHaveLength(1);
  });

  test('causes 504 when the outcome of a write is unknown', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), hasty());
    let isAway = false;
    cluster.intercept(({ verb }) => {
      if (isAway || verb === 'watch') return 'drop';
      isAway = verb === 'create';
      return isAway ? 'reset-after-commit' : undefined;
    });
    disconnect(cluster);
    await until(() => replica.store.condition.lastError !== undefined);
    const creating = replica.store.create(keyNamed('a'), {});
    await expect(creating).rejects.toMatchObject({ code: 504, reason: 'Timeout' });
    cluster.intercept(undefined);
    expect(await replica.store.get(keyNamed('a'))).toBeDefined();
  });

  test('does not end watches', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    const events: StoreEvent[] = [];
    let ends = 0;
    await replica.store.watch({ resource: 'things' }, await replica.store.revision(), {
      event: (event) => events.push(event),
      end: () => void ends++,
    });
    for (let i = 0; i < 5; i++) {
      await replica.store.create(keyNamed(`n${i}`), {});
      disconnect(cluster);
      // A create on a connection that is being closed may get no response; if the list that replaces the watch comes in between, its
      // outcome is unknown.
      await replica.store.get(keyNamed(`n${i}`));
    }
    await until(() => events.length === 5);
    expect(events.map(({ entry }) => entry.key.name)).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
    expect(ends).toBe(0);
  });

  test('is retried every two seconds, because this replica accepts revoked keys meanwhile', async () => {
    const delays: number[] = [];
    const noteDelay = ({ delayMs }: LogFields, message: string): void => {
      if (message === 'list-watch interrupted') delays.push(Number(delayMs));
    };
    const logger: Logger = { ...silentLogger, debug: noteDelay, info: noteDelay, warn: noteDelay };
    const options = { clock: hurried(1000), random: () => 0.999_999, logger };
    await using _replica = await openReplica(plainAccess(cluster.url), options);
    cluster.intercept(({ verb }) => (verb === 'watch' ? 'drop' : undefined));
    disconnect(cluster);
    await until(() => delays.length === 8);
    expect(delays).toEqual([800, 1600, 2000, 2000, 2000, 2000, 2000, 2000]);
  });

  test('does not delay closing', async () => {
    const replica = await openReplica(plainAccess(cluster.url));
    cluster.intercept(() => 'drop');
    const reading = replica.store.get(keyNamed('a'));
    const [refused] = await Promise.allSettled([reading, replica[Symbol.asyncDispose]()]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'closed' } });
  });

  test('that revokes permissions is unavailable, and the error names what to grant', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    cluster.intercept(() => ({ status: 403, reason: 'Forbidden', message: 'secrets is forbidden' }));
    const reading = replica.store.get(keyNamed('a'));
    await expect(reading).rejects.toMatchObject({ code: 'unavailable' });
    await expect(reading).rejects.toThrow('secrets is forbidden. Grant the store its Role');
  });

  test('without the namespace is unavailable, and the error names the namespace', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), { ...fast, namespace: 'nowhere' });
    const creating = replica.store.create(keyNamed('a'), {});
    await expect(creating).rejects.toMatchObject({ code: 'unavailable' });
    await expect(creating).rejects.toThrow('Create the namespace');
    await expect(replica.store.notes('t').write(new Map([['a', 'b']]))).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});

describe('a lost response', () => {
  test('to any kind of write is not a failure, and the write happens once', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    const { store } = replica;
    const events: StoreEvent[] = [];
    await store.watch({ resource: 'things' }, await store.revision(), {
      event: (event) => events.push(event),
      end: () => undefined,
    });
    failNext(cluster, 'reset-after-commit');
    const created = await store.create(keyNamed('a'), { x: 1 });
    failNext(cluster, 'reset-after-commit', { status: 500 });
    const updated = await store.update(keyNamed('a'), { x: 2 }, created.revision);
    failNext(cluster, 'reset-after-commit', 'drop', { status: 503 });
    const deleted = await store.delete(keyNamed('a'), updated.revision);
    await until(() => events.length === 3);
    expect(events.map(({ revision }) => revision)).toEqual(
      [created, updated, deleted].map((e) => e.revision),
    );
  });

  test('to a write that did not happen causes a retry', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    const { store } = replica;
    failNext(cluster, 'drop');
    const created = await store.create(keyNamed('a'), { x: 1 });
    failNext(cluster, 'drop');
    const updated = await store.update(keyNamed('a'), { x: 2 }, created.revision);
    failNext(cluster, { status: 500 });
    await store.delete(keyNamed('a'), updated.revision);
    expect(await store.get(keyNamed('a'))).toBeUndefined();
  });

  test('is distinguished from the conflict of a later attempt', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    await using other = await openReplica(plainAccess(cluster.url), fast);
    const key = keyNamed('a');
    const { revision } = await other.store.create(key, { x: 1 });
    failNext(cluster, 'drop');
    const creating = replica.store.create(key, { x: 2 });
    await expect(creating).rejects.toMatchObject({ code: 'exists', current: { revision } });
    const { revision: next } = await other.store.update(key, { x: 3 }, revision);
    failNext(cluster, 'drop');
    const updating = replica.store.update(key, { x: 4 }, revision);
    await expect(updating).rejects.toMatchObject({ code: 'conflict', current: { revision: next } });
  });
});
