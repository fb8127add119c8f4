/** How a long-running command lives and ends: signals, a process that stays alive without connections, reloads. */

import type { Daemon } from '../../syncer/daemon.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { ConfigError, TerminalError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';

export interface StopSignals {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Resolves at the first signal. */
  readonly requested: Promise<void>;
}

/** The first SIGTERM or SIGINT asks for a drain, the second ends the process at once with exit code 1. */
export function stopSignals(): StopSignals {
  const controller = new AbortController();
  const requested = new Promise<void>((resolve) => {
    const onSignal = (): void => {
      if (controller.signal.aborted) process.exit(1);
      controller.abort();
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
  return { signal: controller.signal, requested };
}

/** Kubernetes kills after 30 s; whatever hangs, the process has ended long before. */
const END_MAX_MS = 8000;

/** Ends the process with `code` when something still keeps it alive after 8 s. */
export function endSoon(code: number): void {
  setTimeout(() => process.exit(code), END_MAX_MS).unref();
}

/** No timer of the program keeps the process alive, and while no cluster can be reached there is no connection either. */
export function keepAlive(): Disposable {
  const timer = setInterval(() => undefined, 2 ** 30);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Loads the file again and hands it to the daemon; one that is invalid, or lacks a right, is said and changes nothing. */
export async function reloadFrom(
  load: () => Promise<LoadedConfig>,
  daemon: Daemon,
  logger: Logger,
): Promise<void> {
  try {
    const { config } = await load();
    await daemon.reload(config);
  } catch (error) {
    daemon.reloadFailed();
    const what =
      error instanceof ConfigError ? 'configuration file is invalid' : 'configuration was not taken over';
    const isOurBug = !(error instanceof ConfigError) && !(error instanceof TerminalError);
    const why = error instanceof Error ? error.message : String(error);
    logger.error(
      isOurBug ? { err: error } : { reason: why },
      `${what}, the running configuration stays in force`,
    );
  }
}
