/** Lifecycle of a long-running command: signals, exit, keeping the process alive, reload of the configuration. */

import type { Daemon } from '../../syncer/daemon.ts';
import { InvalidConfigError, type FileTexts, type LoadedConfig } from '../../config/load.ts';
import { ConfigError, TerminalError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';

export interface StopSignals {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Resolves at the first signal. */
  readonly requested: Promise<void>;
}

/** The first SIGTERM or SIGINT requests a drain; the second ends the process immediately with exit code 1. */
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

/** Kubernetes kills after 30 s; a drain that hangs must not last that long. */
const END_MAX_MS = 8000;

/** Ends the process with `code` if a handle still keeps it alive after the grace period. */
export function exitAfterGracePeriod(code: number): void {
  setTimeout(() => process.exit(code), END_MAX_MS).unref();
}

/** Keeps the process alive while no cluster can be reached: the program's timers do not, and there is no connection. */
export function keepAlive(): Disposable {
  const timer = setInterval(() => undefined, 2 ** 30);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/**
 * Reloads the configuration into the daemon and returns the files that it read, as far as they are known. A configuration that is invalid,
 * or needs a missing right, is logged and changes nothing.
 */
export async function reloadFrom(
  load: () => Promise<LoadedConfig>,
  daemon: Daemon,
  logger: Logger,
): Promise<FileTexts | undefined> {
  let files: FileTexts | undefined;
  try {
    const loaded = await load();
    ({ files } = loaded);
    await daemon.reload(loaded.config);
  } catch (error) {
    daemon.reloadFailed();
    const what =
      error instanceof ConfigError ? 'configuration file is invalid' : 'configuration was not applied';
    const isOurBug = !(error instanceof ConfigError) && !(error instanceof TerminalError);
    const why = error instanceof Error ? error.message : String(error);
    logger.error(isOurBug ? { err: error } : { reason: why }, `${what}, keeping the running configuration`);
    if (error instanceof InvalidConfigError) ({ files } = error);
  }
  return files;
}
