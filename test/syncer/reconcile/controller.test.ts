import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { createWorkQueue } from '../../../src/kube/work-queue.ts';
import { createController } from '../../../src/syncer/reconcile/controller.ts';

const nothing = (): undefined => undefined;

describe('ten thousand decisions that need no request', () => {
  test('let timers and sockets have their turn', async () => {
    const queue = createWorkQueue({
      clock: systemClock,
      metrics: { depth: nothing, added: nothing, retried: nothing, queued: nothing, worked: nothing },
    });
    const decided: string[] = [];
    let decidedAtTurn: number | undefined;
    const controller = createController({
      queue,
      name: 'endpoints',
      kind: 'Endpoints',
      async reconcile(key) {
        if (decided.length === 0) setImmediate(() => (decidedAtTurn = decided.length));
        decided.push(key);
        for (const endMs = performance.now() + 0.01; performance.now() < endMs;);
        return Promise.resolve({ outcome: 'unchanged' });
      },
      warn: nothing,
      createNamespace: undefined,
      dryRun: undefined,
      clock: systemClock,
      logger: silentLogger,
      metrics: { reconciled: nothing, active: nothing, blocked: nothing, latency: nothing },
    });
    for (let i = 0; i < 10_000; i++) controller.enqueue(`ns/${i}`, 'initial');
    controller.enqueue('ns/changed');
    const running = controller.run();
    queue.shutDown();
    await running;
    expect(decided).toHaveLength(10_001);
    expect(decided[0]).toBe('ns/changed');
    // 100 ms of decisions in turns of 5 ms; at most one more decision of each worker ends after the limit.
    expect(decidedAtTurn).toBeLessThan(2000);
  });
});
