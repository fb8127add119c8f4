/** Lifecycle of a long-running command: signals, exit, keeping the process alive, reload of the configuration. */

import type { Daemon } from '../../syncer/daemon.ts';
import { InvalidConfigError, type FileTexts, type LoadedConfig } from '../../config/load.ts';
import { readDocument } from '../../config/source/document.ts';
import { problemOf } from '../../config/source/problem.ts';
import type { Clock } from '../../base/clock.ts';
import { ConfigError, TerminalError } from '../../base/errors.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { LogFields, Logger } from '../../base/logger.ts';
import { describeProblem } from '../output/config-report.ts';
import { agree, watchConfigFiles, type Watching } from './watch-file.ts';

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

interface ReloadOptions {
  /** The running configuration. */
  readonly loaded: LoadedConfig;
  readonly load: () => Promise<LoadedConfig>;
  readonly daemon: Pick<Daemon, 'reload' | 'reloadFailed'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Reloads the configuration when one of its files changes. A configuration that is invalid, has been emptied, or needs a missing right, is
 * logged and changes nothing.
 */
export function reloadOnChange({ loaded, load, daemon, clock, logger }: ReloadOptions): Watching {
  let running = loaded.files;
  const reload = async (texts: FileTexts): Promise<FileTexts | undefined> => {
    let files: FileTexts | undefined;
    try {
      const next = await load();
      ({ files } = next);
      if (!agree(files, texts)) return files;
      rejectEmptied(files, running);
      await daemon.reload(next.config);
      running = files;
    } catch (error) {
      if (error instanceof InvalidConfigError) ({ files } = error);
      if (files !== undefined && !agree(files, texts)) return files;
      daemon.reloadFailed();
      const what =
        error instanceof ConfigError ? 'configuration file is invalid' : 'configuration was not applied';
      logger.error(reasonFields(error), `${what}, keeping the running configuration`);
    }
    return files;
  };
  return watchConfigFiles(loaded.files, reload, clock);
}

/** A file without any setting is valid, but where the running one had some it is more likely an accident, such as a full disk. */
function rejectEmptied(files: FileTexts, running: FileTexts): void {
  const has = (file: string, text = ''): boolean => hasSettings(readDocument(file, text).value);
  const emptied = [...files].filter(([file, text]) => !has(file, text) && has(file, running.get(file)));
  if (emptied.length === 0) return;
  const message = 'has no settings any more; restart if the defaults are to be used';
  throw new ConfigError(emptied.map(([file]) => problemOf(file, message)));
}

function hasSettings(value: JsonValue): boolean {
  return isJsonObject(value) ? Object.values(value).some(hasSettings) : value !== null;
}

/** The stack is logged of bugs only. A configuration error has the text that `validate` prints, in one line. */
function reasonFields(error: unknown): LogFields {
  if (error instanceof ConfigError) {
    const errors = error.problems.filter(({ severity }) => severity === 'error');
    return { reason: errors.map((problem) => describeProblem(problem)).join('; ') };
  }
  return error instanceof TerminalError ? { reason: error.message } : { err: error };
}
