/** Delays after writes that return 429 with various `Retry-After` values. */

import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ENDPOINTS } from '../../../src/kube/object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { listen } from '../../support/listen.ts';
import { until } from '../../kube/informer-harness.ts';
import { testClient } from '../../kube/test-client.ts';
import { ownController } from './own-controller.ts';

/** How many requests one object costs within this time on the clock of the queue. */
async function requestsWithin(durationMs: number, retryAfter: string, isInBody = false): Promise<number> {
  let requests = 0;
  let isAllowed = false;
  const server = createServer((request, response) => {
    requests += 1;
    request.resume();
    response.writeHead(isAllowed ? 200 : 429, isInBody ? {} : { 'retry-after': retryAfter });
    const details = isInBody ? { retryAfterSeconds: JSON.parse(retryAfter) as unknown } : {};
    const status = { kind: 'Status', status: 'Failure', code: 429, reason: 'TooManyRequests', details };
    const stored = { metadata: { name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '1' } };
    response.end(JSON.stringify(isAllowed ? { apiVersion: 'v1', kind: 'Endpoints', ...stored } : status));
  });
  const clock = new FakeClock();
  await using client = testClient(`http://127.0.0.1:${await listen(server)}`);
  let attempts = 0;
  const controller = ownController({
    clock,
    async reconcile() {
      try {
        await client.update(ENDPOINTS, { metadata: { namespace: 'ns', name: 'a' } });
        return { outcome: 'unchanged' };
      } finally {
        attempts += 1;
      }
    },
  });
  const running = controller.run();
  controller.enqueue('ns/a');
  for (let seen = 0; ;) {
    await until(() => attempts > seen && (clock.nextDelayMs ?? 0) > 0);
    seen = attempts;
    const nextMs = clock.nextDelayMs ?? Infinity;
    if (clock.monotonicMs() + nextMs > durationMs || requests > 1000) break;
    clock.advance(nextMs);
  }
  const counted = requests;
  isAllowed = true;
  clock.advance(clock.nextDelayMs ?? 0);
  await until(() => controller.queue.isIdle);
  controller.queue.shutDown();
  await running;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  return counted;
}

describe('writes that return 429', () => {
  test.each(['0', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'Retry-After: %s is no hot loop: the own back-off counts',
    async (header) => {
      // 5 ms × 2ⁿ: the tenth attempt is at 2.6 s, the eleventh at 5.1 s.
      expect(await requestsWithin(5000, header)).toBe(10);
    },
  );

  test.each(['-5', 'soon', '', '1.5'])('Retry-After: "%s" says nothing: a second each', async (header) => {
    expect(await requestsWithin(5000, header)).toBeLessThanOrEqual(6);
  });

  test.each(['-5', '"0"', 'null'])('retryAfterSeconds: %s says nothing: a second each', async (value) => {
    expect(await requestsWithin(5000, value, true)).toBeLessThanOrEqual(6);
  });

  test('Retry-After: 999999999 is limited to a minute', async () => {
    expect(await requestsWithin(59_999, '999999999')).toBe(1);
    expect(await requestsWithin(60_000, '999999999')).toBe(2);
  });
});
