/** The workers of the controller: fairness of the event loop, and the log level of each result. */

import { describe, expect, test } from 'vitest';
import { PatchError, Postponed } from '../../../src/base/errors.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { later } from '../../../src/syncer/reconcile/left.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { kindWorld } from '../references/kind-world.ts';
import { ownController } from './own-controller.ts';

describe('ten thousand decisions that need no request', () => {
  test('do not block timers and sockets', async () => {
    const decided: string[] = [];
    let decidedAtTurn: number | undefined;
    const controller = ownController({
      async reconcile(key) {
        if (decided.length === 0) setImmediate(() => (decidedAtTurn = decided.length));
        decided.push(key);
        for (const endMs = performance.now() + 0.01; performance.now() < endMs;);
        return Promise.resolve({ outcome: 'unchanged' });
      },
    });
    for (let i = 0; i < 10_000; i++) controller.enqueue(`ns/${i}`, 'initial');
    controller.enqueue('ns/changed');
    const running = controller.run();
    controller.queue.shutDown();
    await running;
    expect(decided).toHaveLength(10_001);
    expect(decided[0]).toBe('ns/changed');
    // 100 ms of decisions in turns of 5 ms; at most one more decision of each worker ends after the limit.
    expect(decidedAtTurn).toBeLessThan(2000);
  });
});

test('virtual namespaces take turns', async () => {
  const decided: string[] = [];
  const controller = ownController({
    decisionsMax: 1,
    async reconcile(key) {
      decided.push(key);
      return Promise.resolve({ outcome: 'unchanged' });
    },
  });
  for (let at = 0; at < 1000; at++) controller.enqueue(`many/${at}`);
  for (const name of ['a', 'b']) controller.enqueue(`few/${name}`);
  const running = controller.run();
  controller.queue.shutDown();
  await running;
  expect(decided).toHaveLength(1002);
  expect(decided.slice(0, 5)).toEqual(['many/0', 'few/a', 'many/1', 'few/b', 'many/2']);
});

test('a write that fails is retried at once, however often a patch of its object has been stopped before', async () => {
  const clock = new FakeClock();
  const details = { index: 0, path: 'a', kind: 'killed', retryAfterMs: 30_000 } as const;
  let attempts = 0;
  const controller = ownController({
    clock,
    async reconcile() {
      attempts++;
      return Promise.reject(
        attempts <= 20 ? new PatchError('is stopped', details) : failure(500, 'InternalError', 'away'),
      );
    },
  });
  controller.enqueue('ns/a');
  const running = controller.run();
  for (let stopped = 1; stopped <= 20; stopped++) {
    await eventually(
      () => [attempts, clock.nextDelayMs],
      ([count, delayMs]) => count === stopped && delayMs === 30_000,
    );
    clock.advance(30_000);
  }
  await eventually(
    () => [attempts, clock.nextDelayMs],
    ([count, delayMs]) => count === 21 && delayMs === 5,
  );
  expect(controller.queue.failures('ns/a')).toBe(1);
  controller.queue.shutDown();
  await running;
});

describe('a reconcile that is postponed', () => {
  function postponing() {
    const decided: string[] = [];
    const awaited = Promise.withResolvers<void>();
    const controller = ownController({
      decisionsMax: 1,
      async reconcile(key) {
        decided.push(key);
        if (key === 'ns/slow' && decided.filter((one) => one === key).length === 1)
          throw new Postponed('it waits', awaited.promise);
        return Promise.resolve({ outcome: 'unchanged' });
      },
    });
    controller.enqueue('ns/slow');
    const running = controller.run();
    const stop = async (): Promise<void> => {
      controller.queue.shutDown();
      await running;
    };
    return { decided, awaited, controller, stop };
  }

  test('holds no worker, and its key is reconciled when what it waits for is there', async ({ expect }) => {
    const { decided, awaited, controller, stop } = postponing();
    controller.enqueue('ns/other');
    await eventually(
      () => controller.queue.isIdle,
      (isIdle) => isIdle,
    );
    expect([decided, controller.isIdle]).toEqual([['ns/slow', 'ns/other'], false]);
    awaited.resolve();
    await eventually(
      () => controller.isIdle,
      (isIdle) => isIdle,
    );
    expect(decided).toEqual(['ns/slow', 'ns/other', 'ns/slow']);
    await stop();
  });

  test('is made earlier by an event of its key, and then not again', async ({ expect }) => {
    const { decided, awaited, controller, stop } = postponing();
    await eventually(
      () => controller.queue.isIdle,
      (isIdle) => isIdle,
    );
    controller.enqueue('ns/slow');
    await eventually(
      () => controller.isIdle,
      (isIdle) => isIdle,
    );
    awaited.resolve();
    await awaited.promise;
    await stop();
    expect(decided).toEqual(['ns/slow', 'ns/slow']);
  });
});

test('waiting for a pending operation is logged at debug level, and does not count as blocked', async () => {
  const logged: string[] = [];
  const logs = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const blocked: string[] = [];
  const { metrics } = kindWorld().environment;
  const controller = ownController({
    reconcile: async (key) => {
      const left = later(key, 1000);
      return key === 'in progress' ? { outcome: 'again', left } : { outcome: 'pending', reason: key, left };
    },
    logger: { ...silentLogger, debug: logs('debug'), info: logs('info'), warn: logs('warn') },
    metrics: {
      ...metrics,
      controller: (...of) => ({
        ...metrics.controller(...of),
        blocked: (reason, count) => void blocked.push(`${reason} ${count}`),
      }),
    },
  });
  controller.enqueue('in progress');
  controller.enqueue('contested');
  const running = controller.run();
  controller.queue.shutDown();
  await running;
  expect(logged.map((line) => line.split(' {')[0])).toEqual(['debug reconciled', 'warn not synced']);
  // A controller that has ended blocks nothing.
  expect(blocked).toEqual(['contested 1', 'contested 0']);
});

test('all that is known of a key is logged at trace level after each reconcile', async () => {
  const logged: unknown[] = [];
  const controller = ownController({
    reconcile: async (key) => {
      if (key === 'ns/failing') throw new Error('it fails');
      return { outcome: 'unchanged' };
    },
    stateOf: (key) => ({ of: key }),
    logger: { ...silentLogger, trace: (fields) => void logged.push(fields) },
  });
  controller.enqueue('ns/web');
  controller.enqueue('ns/failing');
  const running = controller.run();
  controller.queue.shutDown();
  await running;
  expect(logged).toEqual(
    ['ns/web', 'ns/failing'].map((key) => ({ controller: 'endpoints', key, state: { of: key } })),
  );
});

test('a write is logged at debug level if only the first lists have queued its object, and counted', async () => {
  const logged: string[] = [];
  const logs = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${(fields as { key: string }).key}`);
  const controller = ownController({
    reconcile: async (key) => ({ outcome: key.startsWith('new') ? 'created' : 'updated' }),
    logger: { ...silentLogger, debug: logs('debug'), info: logs('info') },
  });
  controller.enqueue('new/1', 'initial');
  controller.enqueue('new/2', 'initial');
  controller.enqueue('new/2', 'changed');
  controller.enqueue('old/1', 'changed');
  controller.enqueue('listed, then changed', 'initial');
  controller.enqueue('listed, then changed');
  controller.enqueue('live');
  controller.enqueue('live', 'initial');
  const running = controller.run();
  controller.queue.shutDown();
  await running;
  expect(logged.toSorted()).toEqual([
    'debug synced new/1',
    'debug synced new/2',
    'debug synced old/1',
    'info synced listed, then changed',
    'info synced live',
  ]);
  expect(Object.fromEntries(controller.initialOutcomes)).toEqual({ created: 2, updated: 1 });
});
