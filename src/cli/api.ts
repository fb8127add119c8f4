/** `api`: the key and token API alone, until a signal ends it. */

import { flushCompileCache } from 'node:module';
import type { Command } from 'commander';
import { loadApiConfig, type ApiConfig } from './config/load-api.ts';
import { TerminalError } from '../base/errors.ts';
import { startHealthServer, type CheckResult } from '../base/health.ts';
import { processSeries } from '../base/metrics/process-series.ts';
import { SeriesRegistry } from '../base/metrics/series.ts';
import { startManagementApi, type ManagementApi } from '../access-keys/management-api.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { addConfigOptions, API_FIELDS, loaderInput } from './config-options.ts';
import { tell, type ExitWith } from './output/terminal.ts';
import { logWarnings, stopSignals } from './process-lifecycle.ts';
import { packageVersion, programParts } from './installation.ts';
import { growYoungGeneration } from './heap-growth.ts';

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, API_FIELDS, true);
  command.action(() => exitWith(() => api(command)));
}

async function api(command: Command): Promise<number> {
  const loaded = await loadApiConfig(loaderInput(command));
  growYoungGeneration();
  const logger = await createLogger(loaded.log);
  logWarnings(loaded, logger);
  using stop = stopSignals({ ignoresHangUp: true });
  const metrics = new SeriesRegistry();
  processSeries(metrics, packageVersion());
  const readiness: { check: CheckResult } = { check: { isOk: false, detail: 'not started yet' } };
  await using _health = await serveHealth(loaded, logger, metrics, readiness);
  const running = await start(loaded, logger, metrics, stop.signal);
  if (typeof running === 'number') return running;
  readiness.check = { isOk: true };
  announce(running, loaded);
  flushCompileCache(); // for the next start, even if this process is killed one day
  await stop.requested;
  logger.info({}, 'stopping');
  await running[Symbol.asyncDispose]();
  return 0;
}

/** An address that is in use, such as by `run` on the same machine, stops no keys from being served. */
async function serveHealth(
  { http: { bindAddress } }: ApiConfig,
  logger: Logger,
  metrics: SeriesRegistry,
  readiness: { readonly check: CheckResult },
): Promise<AsyncDisposable | null> {
  const healthChecks = { ping: () => ({ isOk: true }) };
  const readyChecks = () => ({ 'management-api': () => readiness.check });
  try {
    const health = await startHealthServer({ bindAddress, healthChecks, readyChecks, metrics, logger });
    logger.info({ http: health.url }, 'serving health and metrics');
    return health;
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    logger.warn({ reason: error.message }, 'health and metrics are not served');
    return null;
  }
}

async function start(
  { management: config }: ApiConfig,
  logger: Logger,
  metrics: SeriesRegistry,
  signal: AbortSignal,
): Promise<ManagementApi | number> {
  try {
    return await startManagementApi({
      ...programParts(),
      config,
      logger,
      metrics,
      signal,
    });
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof TerminalError)) throw error;
    logger.error({ reason: error.message }, 'cannot start');
    tell(`error: ${error.message}`);
    return 1;
  }
}

function announce({ url, caFile, hasKeys }: ManagementApi, { file }: ApiConfig): void {
  const config = file === undefined ? '' : ` --config ${file}`;
  const lines = [
    `server: ${url}`,
    ...(caFile === '' ? [] : [`certificate-authority: ${caFile}`]),
    `next: endpoint-syncer keys ${hasKeys ? 'list' : 'bootstrap'}${config}`,
  ];
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}
