/** Notices that a watch receives no data: its connection may be half open, or the server may wait for a version that it has never had. */

import type { Clock, Timer } from '../../base/clock.ts';

/**
 * Calls `action` after each `limitMs` without data, until disposed. `receivedAtMs` is the monotonic time of the last data. There is one timer,
 * set again when it fires, so that an event only costs a clock reading.
 */
export function onSilence(
  clock: Clock,
  limitMs: number,
  receivedAtMs: () => number | undefined,
  action: () => void,
): Disposable {
  let sinceMs = clock.monotonicMs();
  let timer: Timer;
  const arm = (delayMs: number): void => {
    timer = clock.schedule(delayMs, () => {
      const nowMs = clock.monotonicMs();
      const silentMs = nowMs - Math.max(sinceMs, receivedAtMs() ?? 0);
      if (silentMs < limitMs) return arm(limitMs - silentMs);
      sinceMs = nowMs;
      arm(limitMs);
      action();
    });
  };
  arm(limitMs);
  return { [Symbol.dispose]: () => timer.cancel() };
}
