/** The work queue: deduplication, delays, back-off and priorities; and the semaphore. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backoffDelayMs } from '../../src/base/retry.ts';
import { createSemaphore } from '../../src/base/semaphore.ts';
import { WorkQueue } from '../../src/kube/work-queue.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

const silent = {
  depth: () => undefined,
  added: () => undefined,
  retried: () => undefined,
  queued: () => undefined,
  worked: () => undefined,
};

function setUp(): { queue: WorkQueue; clock: FakeClock } {
  const clock = new FakeClock();
  return { queue: new WorkQueue({ clock, metrics: silent }), clock };
}

describe('work queue', () => {
  test('returns a key once however often it was added', async () => {
    const { queue } = setUp();
    queue.add('a');
    queue.add('a');
    expect(await queue.take()).toBe('a');
    queue.done('a');
    expect(queue.isIdle).toBe(true);
  });

  test('the shortest of several delays applies', async () => {
    const { queue, clock } = setUp();
    queue.addAfter('a', 100);
    queue.addAfter('a', 50);
    queue.addAfter('a', 200);
    clock.advance(49);
    expect(queue.size).toBe(0);
    clock.advance(1);
    expect(queue.size).toBe(1);
    await queue.take();
    queue.done('a');
    clock.advance(1000);
    expect(queue.size).toBe(0);
  });

  test('backs off by 5 ms × 2ⁿ, and starts again after forget', () => {
    const { queue, clock } = setUp();
    const delays: (number | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      queue.addRateLimited('a');
      delays.push(clock.nextDelayMs);
      clock.advance(10_000);
      void queue.take();
      queue.done('a');
    }
    queue.forget('a');
    queue.addRateLimited('a');
    delays.push(clock.nextDelayMs);
    expect(delays).toEqual([5, 10, 20, 40, 5]);
  });

  test('returns queued keys after shutdown, then ends all waiting takers', async () => {
    const { queue } = setUp();
    queue.add('a');
    queue.addAfter('b', 10);
    queue.shutDown();
    queue.add('c');
    expect(await queue.take()).toBe('a');
    expect(await queue.take()).toBeUndefined();
  });

  test('property: every key is processed, as many at a time as allowed and no more, until the queue is shut down', async () => {
    const limit = fc.integer({ min: 1, max: 4 });
    const keys = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(limit, keys, fc.infiniteStream(fc.nat(9)), async (workersMax, added, picks) => {
        const { queue } = setUp();
        const working = new Map<string, () => void>();
        const processed = new Set<string>();
        const ended = queue.process(workersMax, async (key) => {
          processed.add(key);
          await new Promise<void>((resolve) => working.set(key, resolve));
          working.delete(key);
          queue.done(key);
        });
        for (const key of added) queue.add(`k${key}`);
        queue.shutDown();
        await settle();
        while (queue.size > 0) {
          expect(working.size).toBe(Math.min(workersMax, queue.size));
          const [, finish] = [...working][picks.next().value % working.size] ?? [];
          finish?.();
          await settle();
        }
        await ended;
        expect(processed).toEqual(new Set(added.map((key) => `k${key}`)));
      }),
      { numRuns: 100 },
    );
  });

  test('property: no key is lost, and none is processed twice at the same time', async () => {
    const step = fc.oneof(
      fc.record({ op: fc.constant('add' as const), key: fc.integer({ min: 0, max: 4 }) }),
      fc.record({ op: fc.constant('take' as const), key: fc.constant(0) }),
      fc.record({ op: fc.constant('done' as const), key: fc.integer({ min: 0, max: 4 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { queue } = setUp();
        const working = new Set<string>();
        const owed = new Set<string>();
        const twice: string[] = [];
        for (const { op, key: number } of steps) {
          const key = `k${number}`;
          if (op === 'add') {
            queue.add(key);
            owed.add(key);
          } else if (op === 'take' && queue.size > working.size) {
            const taken = (await queue.take()) ?? '';
            if (working.has(taken)) twice.push(taken);
            working.add(taken);
            owed.delete(taken);
          } else if (op === 'done' && working.delete(key)) {
            queue.done(key);
          }
        }
        for (const key of working) queue.done(key);
        while (queue.size > 0) {
          const key = (await queue.take()) ?? '';
          owed.delete(key);
          queue.done(key);
        }
        expect({ owed: [...owed], twice }).toEqual({ owed: [], twice: [] });
      }),
    );
  });
});

describe('back-off', () => {
  test('never exceeds its maximum and stays finite', () => {
    fc.assert(
      fc.property(fc.nat(), (failures) => {
        const delay = backoffDelayMs(failures, 5, 1_000_000);
        expect(delay).toBeGreaterThanOrEqual(5);
        expect(delay).toBeLessThanOrEqual(1_000_000);
      }),
    );
  });
});

describe('semaphore', () => {
  test('runs all tasks, at most as many as its limit at a time', async () => {
    const semaphore = createSemaphore(3);
    let running = 0;
    let most = 0;
    const task = async (fails: boolean): Promise<void> => {
      most = Math.max(most, (running += 1));
      await settle();
      running -= 1;
      if (fails) throw new Error('a failing task gives its place back');
    };
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => semaphore.run(() => task(i % 4 === 0))),
    );
    expect(results).toHaveLength(20);
    expect(most).toBe(3);
    expect(running).toBe(0);
  });
});

describe('keys of the first list', () => {
  async function take(queue: WorkQueue, count: number): Promise<(string | undefined)[]> {
    const keys: (string | undefined)[] = [];
    for (let i = 0; i < count; i++) keys.push(await queue.take());
    return keys;
  }

  test('that change get live priority, and keep it', async () => {
    const { queue } = setUp();
    for (const key of ['a', 'b', 'c']) queue.add(key, 'initial');
    queue.add('c');
    queue.add('c', 'initial');
    expect(queue.size).toBe(3);
    expect(await take(queue, 3)).toEqual(['c', 'a', 'b']);
  });

  test('of live priority precede initial ones', async () => {
    const { queue } = setUp();
    for (const key of ['a', 'b', 'c', 'd']) queue.add(key, 'initial');
    queue.add('c', 'changed');
    queue.add('x');
    queue.add('d', 'changed');
    queue.add('x', 'changed');
    expect(await take(queue, 5)).toEqual(['x', 'c', 'd', 'a', 'b']);
  });

  test('are processed during continuous changes', async () => {
    const { queue } = setUp();
    queue.add('first', 'initial');
    for (let i = 0; i < 100; i++) queue.add(`change-${i}`);
    expect((await take(queue, 20)).indexOf('first')).toBe(16);
  });

  test('are dropped with all other keys', () => {
    const { queue } = setUp();
    queue.add('a', 'initial');
    queue.add('b');
    expect(queue.abandon()).toBe(2);
    expect(queue.isIdle).toBe(true);
  });
});
