/** `run`: the daemon, until a signal ends it. */

import { flushCompileCache } from 'node:module';
import type { Command } from 'commander';
import { startDaemon, type Daemon } from '../app.ts';
import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { TerminalError } from '../kube/errors.ts';
import { systemClock } from '../lib/clock.ts';
import { systemRandom } from '../lib/random.ts';
import { createLogger } from '../observe/logger.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { reportConfigError } from './config-report.ts';
import { keepAlive, reloadFrom, stopSignals } from './process-life.ts';
import { packageVersion } from './version.ts';
import { watchFile } from './watch-file.ts';

interface RunOptions {
  readonly dryRun?: boolean;
}

export function define(command: Command, exit: (code: number) => void): void {
  addConfigOptions(command, ALL_FIELDS);
  command
    .option('--dry-run', 'log each write instead of doing it')
    .action(async (options: RunOptions) => exit(await run(command, options)));
}

async function run(command: Command, { dryRun = false }: RunOptions): Promise<number> {
  const load = (): Promise<LoadedConfig> => loadConfig(loaderInput(command));
  let loaded: LoadedConfig;
  try {
    loaded = await load();
  } catch (error) {
    return reportConfigError(error);
  }
  const logger = await createLogger(loaded.config.log);
  for (const { path, message } of loaded.warnings) logger.warn({ path }, message);
  let daemon: Daemon;
  const stop = stopSignals();
  using _alive = keepAlive();
  try {
    daemon = await startDaemon({
      config: loaded.config,
      isDryRun: dryRun,
      logger,
      clock: systemClock,
      random: systemRandom,
      version: packageVersion(),
      signal: stop.signal,
    });
  } catch (error) {
    if (stop.signal.aborted) return 0;
    if (!(error instanceof TerminalError)) throw error;
    // A person must act, and a stack would not help: the message is for reading.
    logger.error({ reason: error.message }, 'cannot start');
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
  const watcher =
    loaded.file === undefined ? undefined : watchFile(loaded.file, () => reloadFrom(load, daemon, logger));
  flushCompileCache(); // for the next start, even if this process is killed one day
  await stop.requested;
  watcher?.close();
  logger.info({}, 'stopping');
  await daemon.stop();
  return 0;
}
