/** Notices that nobody speaks any more: a half-open connection looks like a quiet one. */

import type { Clock, Timer } from '../lib/clock.ts';
import { SilenceError } from './outcome.ts';

export interface SilenceGuard extends Disposable {
  /** Aborts with a `SilenceError`. */
  readonly signal: AbortSignal;
}

/** `heardAtMs` is when something was last heard, monotonic. One timer, armed again when it fires: an event costs a clock reading. */
export function guardSilence(
  clock: Clock,
  limitMs: number,
  heardAtMs: () => number | undefined,
): SilenceGuard {
  const controller = new AbortController();
  const beganMs = clock.monotonicMs();
  let timer: Timer;
  const arm = (delayMs: number): void => {
    timer = clock.schedule(delayMs, () => {
      const silentMs = clock.monotonicMs() - Math.max(beganMs, heardAtMs() ?? 0);
      if (silentMs < limitMs) arm(limitMs - silentMs);
      else controller.abort(new SilenceError(`nothing was heard for ${Math.round(silentMs)} ms`));
    });
  };
  arm(limitMs);
  return { signal: controller.signal, [Symbol.dispose]: () => timer.cancel() };
}
