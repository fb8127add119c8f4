/** The server that runs beside the sync: the key and token API. If it cannot start, the sync continues. */

import { TerminalError } from '../base/errors.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';

/** Starts the companion, which registers its metrics in `metrics`. */
export type StartCompanion = (metrics: SeriesRegistry) => Promise<AsyncDisposable>;

export interface Companion extends AsyncDisposable {
  check(): CheckResult;
}

/** Without `start`, nothing is served. A `TerminalError`, which only another configuration can fix, is logged and fails readiness. */
export async function startCompanion(
  start: StartCompanion | undefined,
  metrics: SeriesRegistry,
  logger: Logger,
): Promise<Companion> {
  if (start === undefined) return companion({ isOk: true, detail: 'not enabled' });
  try {
    return companion({ isOk: true }, await start(metrics));
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    logger.error({ reason: error.message }, 'the key and token API cannot start');
    return companion({ isOk: false, detail: error.message });
  }
}

function companion(result: CheckResult, running?: AsyncDisposable): Companion {
  let disposal: Promise<void> | undefined;
  return {
    check: () => result,
    async [Symbol.asyncDispose]() {
      disposal ??= Promise.resolve(running?.[Symbol.asyncDispose]());
      await disposal;
    },
  };
}
