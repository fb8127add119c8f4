/** `run`: the daemon, until a signal ends it. */

import { flushCompileCache } from 'node:module';
import type { Command } from 'commander';
import type { ClusterSync } from '../syncer/cluster-sync.ts';
import { startDaemon, type Daemon, type DaemonOptions } from '../syncer/daemon.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { TerminalError } from '../base/errors.ts';
import { sleep, systemClock } from '../base/clock.ts';
import { systemRandom } from '../base/random.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { addConfigOptions, ALL_FIELDS, CONFIG_CHECKS, loaderInput } from './config-options.ts';
import { type ExitWith, usageError } from './output/terminal.ts';
import {
  exitAfterGracePeriod,
  keepAlive,
  reloadOnChange,
  stopSignals,
  type StopSignals,
} from './process-lifecycle.ts';
import { formatListing, outputOption, resourceName } from './output/listing.ts';
import { parseKey } from '../kube/object.ts';
import { packageVersion } from './installation.ts';
import { createStartupHeap, type StartupHeap } from './heap-growth.ts';

/** A longer first pass continues with limited memory. */
const FIRST_PASS_MS_MAX = 60_000;

/** The daemon waits for a cluster that does not respond; `--once` does not. */
const ONCE_CONNECT_MS = 15_000;
const ONCE_LISTS_MS = 60_000;

interface RunOptions {
  readonly dryRun?: boolean;
  readonly once?: boolean;
  /** Format of the table of `--once`. */
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, ALL_FIELDS, true);
  command
    .option('--dry-run', 'send each write with dryRun=All and log what it would change')
    .option(
      '--once',
      'with --dry-run: print a table after the first pass and exit; exit code 1 if there are differences',
    )
    .addOption(outputOption('with --once: '))
    .action((options: RunOptions) => exitWith(() => run(command, options)));
}

async function run(command: Command, options: RunOptions): Promise<number> {
  const { dryRun = false, once = false, output } = options;
  if (once && !dryRun) return usageError('--once requires --dry-run');
  const load = (): Promise<LoadedConfig> =>
    loadConfig({ ...loaderInput(command), isStart: !dryRun, acceptsFleet: !once });
  const loaded = await load();
  const logger = await createLogger(loaded.config.log);
  for (const { path, message } of loaded.warnings) logger.warn({ path }, message);
  const stop = stopSignals({ ignoresHangUp: true });
  using _alive = keepAlive();
  const heap = createStartupHeap();
  heap.grow();
  if (loaded.config.fleet.enabled)
    return await runFleet(loaded, load, { isDryRun: dryRun, logger, stop, heap });
  const waiting = once ? [AbortSignal.timeout(ONCE_CONNECT_MS)] : [];
  const signal = AbortSignal.any([stop.signal, ...waiting]);
  const daemon = await start(loaded, { isDryRun: dryRun, logger, signal }, stop.signal);
  if (typeof daemon === 'number') return daemon;
  if (once) return await firstPass(daemon, stop.signal, logger, output);
  const watching = reloadOnChange({ loaded, load, daemon: daemon.sync, clock: systemClock, logger });
  void releaseMemoryAfterStart(heap, daemon.sync, stop.signal);
  flushCompileCache(); // for the next start, even if this process is killed
  const failure = await Promise.race([stop.requested, daemon.sync.failed]);
  const exitCode = failure === undefined ? 0 : 1;
  exitAfterGracePeriod(exitCode);
  watching.close();
  if (failure === undefined) logger.info({}, 'stopping');
  else logger.error({ reason: failure }, 'stopping because this replica lost the lease');
  await daemon.stop();
  return exitCode;
}

/** A standby holds its first lists, but has no first pass until it leads. */
async function releaseMemoryAfterStart(
  heap: StartupHeap,
  sync: ClusterSync,
  signal: AbortSignal,
): Promise<void> {
  if (await sync.isStandby(signal)) {
    heap.release();
    await sync.whenLeading(signal);
    if (!signal.aborted) heap.grow();
  }
  await releaseMemoryWhen(sync.firstPass(signal), heap, signal);
}

async function releaseMemoryWhen(
  started: Promise<unknown>,
  heap: StartupHeap,
  signal: AbortSignal,
): Promise<void> {
  await Promise.race([started, sleep(systemClock, FIRST_PASS_MS_MAX, signal)]);
  if (!signal.aborted) heap.release();
}

/** The running daemon, or the exit code of a failed start. */
async function start(
  { config }: LoadedConfig,
  parts: Pick<DaemonOptions, 'isDryRun' | 'logger' | 'signal'>,
  stop: AbortSignal,
): Promise<Daemon | number> {
  const options: DaemonOptions = {
    ...parts,
    config,
    clock: systemClock,
    random: systemRandom,
    version: packageVersion(),
  };
  try {
    return await startDaemon({ ...options, ...accessKeysCompanion(options) });
  } catch (error) {
    return failedStart(error, parts, stop);
  }
}

/** The exit code; `stop`: of the signal that ends the process, which may be why the start failed. */
function failedStart(
  error: unknown,
  { logger, signal }: Pick<DaemonOptions, 'logger' | 'signal'>,
  stop: AbortSignal,
): number {
  if (stop.aborted) {
    exitAfterGracePeriod(0);
    return 0;
  }
  // The message of a TerminalError says what to do; any other error is a bug, so its stack is logged.
  if (error instanceof TerminalError) logger.error({ reason: error.message }, 'cannot start');
  else if (signal.aborted) logger.error({ reason: 'the clusters do not respond' }, 'cannot start');
  else logger.error({ err: error }, 'cannot start');
  return 1;
}

interface FleetRun extends Pick<DaemonOptions, 'isDryRun' | 'logger'> {
  readonly stop: StopSignals;
  readonly heap: StartupHeap;
}

/** Until a signal ends it: no member does. */
async function runFleet(
  loaded: LoadedConfig,
  load: () => Promise<LoadedConfig>,
  { isDryRun, logger, stop, heap }: FleetRun,
): Promise<number> {
  const { signal } = stop;
  const options: DaemonOptions = {
    config: loaded.config,
    isDryRun,
    logger,
    signal,
    clock: systemClock,
    random: systemRandom,
    version: packageVersion(),
  };
  const { startFleet } = await import('../fleet/fleet.ts');
  let fleet: Fleet;
  try {
    fleet = await startFleet({ ...options, checks: CONFIG_CHECKS, ...accessKeysCompanion(options) });
  } catch (error) {
    return failedStart(error, options, signal);
  }
  const watching = reloadOnChange({ loaded, load, daemon: fleet, clock: systemClock, logger });
  void releaseMemoryWhen(fleet.whenStarted(signal), heap, signal);
  await stop.requested;
  exitAfterGracePeriod(0);
  watching.close();
  logger.info({}, 'stopping');
  await fleet.stop();
  return 0;
}

/** Ends a dry run after its first pass: exit code 0 if nothing would be written and nothing is refused. */
async function firstPass(
  daemon: Daemon,
  signal: AbortSignal,
  logger: Logger,
  output: string,
): Promise<number> {
  const { sync } = daemon;
  const isCached = await sync.whenCached(AbortSignal.any([signal, AbortSignal.timeout(ONCE_LISTS_MS)]));
  const failed = sync.failedChecks();
  const changes = isCached ? await sync.firstPass(signal) : [];
  exitAfterGracePeriod(1);
  await daemon.stop();
  if (signal.aborted) return 1;
  if (!isCached) {
    logger.error({ reason: failed.join('; ') }, `the first lists took longer than ${ONCE_LISTS_MS / 1000} s`);
    return 1;
  }
  if (changes.length === 0) process.stderr.write('nothing to do\n');
  const rows = changes.map(({ cluster, group, kind, key, action, reason }) => ({
    cells: [cluster, kind, key, action, reason.split('\n')[0] ?? ''],
    name: resourceName(kind, group, parseKey(key).name),
    json: { cluster, kind, key, action, reason },
  }));
  const heading = ['CLUSTER', 'KIND', 'OBJECT', 'ACTION', 'REASON'];
  process.stdout.write(formatListing({ heading, rows }, output));
  return changes.length === 0 ? 0 : 1;
}

// Serves the key and token API in the process of the syncer. Its modules are loaded only when it is enabled.

/** Empty if the API is not enabled, and in a dry run, because the API would write to its store. */
export function accessKeysCompanion(options: DaemonOptions): Pick<DaemonOptions, 'startCompanion'> {
  const { config, isDryRun, logger } = options;
  if (!config.management.enabled) return {};
  if (isDryRun) {
    logger.info({}, 'the key and token API is not served by a dry run');
    return {};
  }
  return {
    async startCompanion(metrics, stopping) {
      const { startManagementApi } = await import('../access-keys/management-api.ts');
      const signal = AbortSignal.any([options.signal, stopping]);
      return startManagementApi({ ...options, config: config.management, metrics, signal });
    },
  };
}
