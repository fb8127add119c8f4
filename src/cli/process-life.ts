/** How a long-running command lives and ends: signals, a process that stays alive without connections, reloads. */

import type { Daemon } from '../app.ts';
import type { LoadedConfig } from '../config/load.ts';
import { ConfigError } from '../kube/errors.ts';
import type { Logger } from '../observe/logger.ts';

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
    logger.error({ err: error }, `${what}, the running configuration stays in force`);
  }
}
