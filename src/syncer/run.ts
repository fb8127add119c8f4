/** The daemon of one virtual cluster: its sync, the server of health and metrics, and the key and token API beside it. */

import { type CheckResult, type Checks, startHealthServer } from '../base/health.ts';
import { COMMAND_GIVES_UP_MS } from './clusters.ts';
import { startCompanion, type StartCompanion } from './companion.ts';
import { createMetrics } from './metrics/metrics.ts';
import { startSync, type Sync, type SyncOptions } from './sync.ts';

export interface DaemonOptions extends Omit<SyncOptions, 'metrics'> {
  /** It gives up on a cluster that does not respond, as a command does. */
  readonly isCommand?: boolean;
  readonly startCompanion?: StartCompanion;
}

export interface Daemon {
  /** `http://host:port` of `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  readonly sync: Sync;
  stop(): Promise<void>;
}

const NOT_CONNECTED: CheckResult = { isOk: false, detail: 'clusters are not connected yet' };

export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { clock, config, isDryRun, logger, version } = options;
  const metrics = createMetrics({ monotonicMs: () => clock.monotonicMs(), version });
  const readiness = { checks: (): Checks => ({ connected: () => NOT_CONNECTED }) };
  await using resources = new AsyncDisposableStack();
  const health = resources.use(
    await startHealthServer({
      bindAddress: config.http.bindAddress,
      healthChecks: { ping: () => ({ isOk: true }) },
      readyChecks: () => readiness.checks(),
      metrics,
      logger,
    }),
  );
  logger.info({ version, isDryRun, http: health.url, name: config.name }, 'starting');
  const companion = resources.use(startCompanion(options.startCompanion, metrics.registry, logger));
  const giveUpMs = options.isCommand === true ? COMMAND_GIVES_UP_MS : options.giveUpMs;
  const sync = await startSync({ ...options, metrics, giveUpMs });
  readiness.checks = () => ({ ...sync.checks(), 'management-api': () => companion.check() });
  const running = resources.move();
  return {
    healthUrl: health.url,
    sync,
    async stop() {
      const [left] = await Promise.all([sync.stop(), companion[Symbol.asyncDispose]()]);
      await running.disposeAsync();
      if (left === 0) logger.info({ left }, 'stopped');
      else logger.warn({ left }, 'stopped');
    },
  };
}
