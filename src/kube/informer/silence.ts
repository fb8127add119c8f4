/** Aborts a watch that receives no data, because its connection may be half open. */

import type { Clock, Timer } from '../../base/clock.ts';
import { SilenceError } from './attempt-end.ts';

export interface SilenceGuard extends Disposable {
  /** Aborts with a `SilenceError`. */
  readonly signal: AbortSignal;
}

/** `receivedAtMs` is the monotonic time of the last data. There is one timer, set again when it fires, so that an event only costs a clock reading. */
export function guardSilence(
  clock: Clock,
  limitMs: number,
  receivedAtMs: () => number | undefined,
): SilenceGuard {
  const controller = new AbortController();
  const beganMs = clock.monotonicMs();
  let timer: Timer;
  const arm = (delayMs: number): void => {
    timer = clock.schedule(delayMs, () => {
      const silentMs = clock.monotonicMs() - Math.max(beganMs, receivedAtMs() ?? 0);
      if (silentMs < limitMs) arm(limitMs - silentMs);
      else controller.abort(new SilenceError(`nothing was received for ${Math.round(silentMs)} ms`));
    });
  };
  arm(limitMs);
  return { signal: controller.signal, [Symbol.dispose]: () => timer.cancel() };
}
