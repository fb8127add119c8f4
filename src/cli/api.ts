/** `api`: the key and token API alone, until a signal ends it. */

import { flushCompileCache } from 'node:module';
import type { Command } from 'commander';
import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { TerminalError } from '../kube/errors.ts';
import { systemClock } from '../lib/clock.ts';
import { systemRandom } from '../lib/random.ts';
import { startManagementApi, type ManagementApi } from '../management/management-api.ts';
import { createLogger, type Logger } from '../observe/logger.ts';
import { addConfigOptions, API_FIELDS, managementInput } from './config-options.ts';
import { reportConfigError } from './config-report.ts';
import { keepAlive, stopSignals } from './process-life.ts';
import { packageVersion } from './version.ts';
import { growYoungGeneration } from './young-generation.ts';

export function define(command: Command, exit: (code: number) => void): void {
  addConfigOptions(command, API_FIELDS);
  command.action(async () => exit(await api(command)));
}

async function api(command: Command): Promise<number> {
  let loaded: LoadedConfig;
  try {
    loaded = await loadConfig(managementInput(command));
  } catch (error) {
    return reportConfigError(error);
  }
  growYoungGeneration();
  const logger = await createLogger(loaded.config.log);
  for (const { path, message } of loaded.warnings) logger.warn({ path }, message);
  const stop = stopSignals();
  using _alive = keepAlive();
  const running = await start(loaded, logger, stop.signal);
  if (typeof running === 'number') return running;
  announce(running);
  flushCompileCache(); // for the next start, even if this process is killed one day
  await stop.requested;
  logger.info({}, 'stopping');
  await running[Symbol.asyncDispose]();
  return 0;
}

async function start(
  { config }: LoadedConfig,
  logger: Logger,
  signal: AbortSignal,
): Promise<ManagementApi | number> {
  try {
    return await startManagementApi({
      config: config.management,
      clock: systemClock,
      random: systemRandom,
      logger,
      version: packageVersion(),
      signal,
    });
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof TerminalError)) throw error;
    logger.error({ reason: error.message }, 'cannot start');
    process.stderr.write(`error: ${error.message}\n`);
    return 1;
  }
}

/** Data for scripts on standard output: where it listens, and whom to trust. */
function announce({ url, caFile }: ManagementApi): void {
  process.stdout.write(`server: ${url}\n`);
  if (caFile !== '') process.stdout.write(`certificate-authority: ${caFile}\n`);
}
