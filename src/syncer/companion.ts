/** The server that runs beside the sync: the key and token API. Neither waits for the other, or ends with it. */

import { TerminalError, messageOf } from '../base/errors.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';

/** Starts the companion, which registers its metrics in `metrics`. `signal` aborts a start that waits. */
export type StartCompanion = (metrics: SeriesRegistry, signal: AbortSignal) => Promise<AsyncDisposable>;

export interface Companion extends AsyncDisposable {
  check(): CheckResult;
}

/** Without `start`, nothing is served. A start that fails is logged and fails readiness. */
export function startCompanion(
  start: StartCompanion | undefined,
  metrics: SeriesRegistry,
  logger: Logger,
): Companion {
  const stopping = new AbortController();
  let result: CheckResult = { isOk: false, detail: 'not started yet' };
  const run = async (): Promise<AsyncDisposable | undefined> => {
    try {
      const running = await start?.(metrics, stopping.signal);
      result = running ? { isOk: true } : { isOk: true, detail: 'not enabled' };
      return running;
    } catch (error) {
      if (stopping.signal.aborted) return undefined;
      const detail = messageOf(error);
      result = { isOk: false, detail };
      // Any error but a TerminalError is a defect, so its stack is logged.
      const fields = error instanceof TerminalError ? { reason: detail } : { err: error };
      logger.error(fields, 'the key and token API cannot start');
      return undefined;
    }
  };
  const starting = run();
  let disposal: Promise<void> | undefined;
  return {
    check: () => result,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      disposal ??= starting.then((running) => running?.[Symbol.asyncDispose]());
      await disposal;
    },
  };
}
