/** Lifecycle of a long-running command: signals, exit, keeping the process alive, reload of the configuration. */

import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InvalidConfigError, type FileTexts, readConfigText } from './config/files.ts';
import type { LoadedConfig } from './config/load.ts';
import { readDocument } from '../config-file/document.ts';
import { describeProblem, problemOf } from '../config-file/source-file.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { ConfigError, TerminalError, messageOf } from '../base/errors.ts';
import { isJsonObject, type JsonValue } from '../base/json.ts';
import type { LogFields, Logger } from '../base/logger.ts';

/**
 * The first SIGTERM or SIGINT requests a drain: it aborts `signal` and resolves `requested`. The second ends the process immediately with exit
 * code 1. `ignoresHangUp`: SIGHUP, with which logrotate asks a service to open its files again, does not end it: the audit log follows its path.
 * Once disposed, each signal does again what it does by default.
 */
export function stopSignals({ ignoresHangUp = false } = {}) {
  const controller = new AbortController();
  const { promise: requested, resolve } = Promise.withResolvers<void>();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
    resolve();
  };
  const listeners = new Map([
    ['SIGTERM', onSignal],
    ['SIGINT', onSignal],
    ...(ignoresHangUp ? [['SIGHUP', () => undefined] as const] : []),
  ]);
  for (const [name, listener] of listeners) process.on(name, listener);
  return {
    signal: controller.signal,
    requested,
    [Symbol.dispose]() {
      for (const [name, listener] of listeners) process.off(name, listener);
    },
  };
}

/** Kubernetes kills after 30 s; a drain that hangs must not last that long. */
const END_MAX_MS = 8000;

/** Ends the process with `code` if a handle still keeps it alive after the grace period. */
export function exitAfterGracePeriod(code: number): void {
  setTimeout(() => process.exit(code), END_MAX_MS).unref();
}

/** A daemon of either kind. */
interface Reloadable {
  reload(config: LoadedConfig['config'], textHash?: string): Promise<void>;
  reloadFailed(reason: string): void;
}

interface ReloadOptions {
  readonly loaded: LoadedConfig;
  readonly load: () => Promise<LoadedConfig>;
  readonly daemon: Reloadable;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A valid configuration that was not applied, such as for a missing right, is tried again after this time. */
const RETRY_MS = 60_000;

/**
 * Reloads the configuration when one of its files changes. A configuration that is invalid, has been emptied, or needs a missing right, is
 * logged and changes nothing.
 */
export function reloadOnChange({ loaded, load, daemon, clock, logger }: ReloadOptions): Watching {
  let running = loaded.files;
  /** Why a valid configuration was not applied. */
  let reported = '';
  const reload = async (texts: FileTexts): Promise<FileTexts | undefined> => {
    let files: FileTexts | undefined;
    try {
      const next = await load();
      ({ files } = next);
      if (!agree(files, texts)) return files;
      rejectEmptied(files, running);
      await daemon.reload(next.config, next.textHash);
      running = files;
      reported = '';
      logWarnings(next, logger);
    } catch (error) {
      if (error instanceof InvalidConfigError) ({ files } = error);
      if (files !== undefined && !agree(files, texts)) return files;
      daemon.reloadFailed(describedReason(error));
      const isInvalid = error instanceof ConfigError;
      if (!isInvalid) watching.lookAgainAfter(RETRY_MS);
      const what = isInvalid ? 'configuration file is invalid' : 'configuration was not applied';
      const isRepeated = !isInvalid && reported === messageOf(error);
      reported = isInvalid ? '' : messageOf(error);
      logger[isRepeated ? 'debug' : 'error'](
        reasonFields(error),
        `${what}, keeping the running configuration`,
      );
    }
    return files;
  };
  const watching = watchConfigFiles(loaded.files, reload, clock);
  return watching;
}

/** Settings that are valid, and most likely a mistake. */
export function logWarnings({ warnings }: Pick<LoadedConfig, 'warnings'>, logger: Logger): void {
  for (const { path, message } of warnings) logger.warn({ path }, message);
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

function reasonFields(error: unknown): LogFields {
  const isExpected = error instanceof ConfigError || error instanceof TerminalError;
  return isExpected ? { reason: describedReason(error) } : { err: error };
}

/** A configuration error has the text that `validate` prints, in one line. */
function describedReason(error: unknown): string {
  if (!(error instanceof ConfigError)) return messageOf(error);
  const errors = error.problems.filter(({ severity }) => severity === 'error');
  return errors.map((problem) => describeProblem(problem)).join('; ');
}

// Watches the files of a configuration, also where they are replaced through a symbolic link, as mounted ConfigMaps are.

/** A file that has not changed for so long is not being written. */
const SETTLE_MS = 250;

/** For a folder that does not exist yet, or that the system cannot watch because all its inotify instances are in use. */
const POLL_MS = 5000;

interface Watching {
  close(): void;
}

/**
 * Calls `onChange` with the texts of the files when one has changed since it was read as `files`, and all have been still for
 * {@link SETTLE_MS}. `onChange` returns the texts that it read itself, as far as they are known: it may read other files, and what differs
 * from a text that was still is looked at again. One call runs at a time, whichever files change.
 */
export function watchConfigFiles(
  files: FileTexts,
  onChange: (texts: FileTexts) => Promise<FileTexts | undefined>,
  clock: Clock,
): Watching & { lookAgainAfter(ms: number): void } {
  const closing = new AbortController();
  const folders = new Map<string, Watching>();
  let paths = [...files.keys()];
  let known = files;
  let isChanged = false;
  let looking: Promise<void> | undefined;
  let again: Timer | undefined;

  const look = async (): Promise<void> => {
    while (isChanged && !closing.signal.aborted) {
      isChanged = false;
      const texts = await stillTexts(paths, clock, closing.signal);
      if (closing.signal.aborted || agree(texts, known)) continue;
      again?.cancel();
      const read = (await onChange(texts)) ?? texts;
      paths = [...read.keys()];
      known = new Map([...read].filter(([path, text]) => texts.has(path) && texts.get(path) === text));
      follow();
    }
    looking = undefined;
  };
  const schedule = (): void => {
    isChanged = true;
    looking ??= look();
  };
  const follow = (): void => {
    if (closing.signal.aborted) return;
    const wanted = new Set(paths.map((path) => dirname(path)));
    for (const [folder, watching] of folders) {
      if (wanted.has(folder)) continue;
      watching.close();
      folders.delete(folder);
    }
    for (const folder of wanted)
      if (!folders.has(folder)) folders.set(folder, watchFolder(folder, schedule, clock));
    // A file may have changed after it was read and before its folder was watched.
    schedule();
  };

  follow();
  return {
    /** Then, `onChange` is called although nothing has changed, unless it was called earlier. */
    lookAgainAfter(ms) {
      if (closing.signal.aborted) return;
      again = clock.schedule(ms, () => {
        known = new Map();
        schedule();
      });
    },
    close() {
      closing.abort();
      again?.cancel();
      for (const watching of folders.values()) watching.close();
    },
  };
}

/** Whether every text of `texts` is the one in `known`. */
function agree(texts: FileTexts, known: FileTexts): boolean {
  return [...texts].every(([path, text]) => known.has(path) && known.get(path) === text);
}

/** The folder, not the file: a watch on a file ends when the file is replaced. */
function watchFolder(folder: string, onChange: () => void, clock: Clock): Watching {
  try {
    return watch(folder, onChange);
  } catch {
    const poll = (): void => {
      onChange();
      timer = clock.schedule(POLL_MS, poll);
    };
    let timer = clock.schedule(POLL_MS, poll);
    return { close: () => timer.cancel() };
  }
}

/** The texts of the files once none of them has changed for {@link SETTLE_MS}, nor while it was read. */
async function stillTexts(paths: readonly string[], clock: Clock, signal: AbortSignal): Promise<FileTexts> {
  for (let before = await stampsOf(paths); ;) {
    await sleep(clock, SETTLE_MS, signal);
    const texts = await Promise.all(paths.map(async (path) => [path, await readText(path)] as const));
    const now = await stampsOf(paths);
    if (now === before || signal.aborted) return new Map(texts);
    before = now;
  }
}

/** Differs after every write to one of the files, and after its replacement. */
async function stampsOf(paths: readonly string[]): Promise<string> {
  const stamps = paths.map(async (path) => {
    try {
      const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
      return [ino, size, mtimeNs, ctimeNs].join(' ');
    } catch {
      return ''; // there is no such file
    }
  });
  return (await Promise.all(stamps)).join('\n');
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readConfigText(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return undefined;
  }
}
