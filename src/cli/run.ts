/** `run`: the daemon, until a signal ends it. */

import type { Command } from 'commander';
import { startDaemon, type Daemon, type DaemonOptions } from '../syncer/run.ts';
import type { ManagementConfig } from '../access-keys/config.ts';
import { loadConfig, type LoadedConfig } from './config/load.ts';
import { TerminalError } from '../base/errors.ts';
import { sleep, systemClock } from '../base/clock.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { type ExitWith, usageError, tell } from './output/terminal.ts';
import { exitAfterGracePeriod, logWarnings, reloadOnChange, stopSignals } from './process-lifecycle.ts';
import { formatListing, outputOption, resourceName } from './output/listing.ts';
import { parseKey } from '../kube/object.ts';
import { programParts } from './installation.ts';
import { keepCompiledCode } from './compiled-code.ts';
import { createStartupHeap, type StartupHeap } from './heap-growth.ts';

/** A longer first pass continues with limited memory. */
const FIRST_PASS_MS_MAX = 60_000;

/** Longer than any request: lists that make progress take as long as that takes. */
const ONCE_SILENCE_MS = 90_000;

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
  const { dryRun: isDryRun = false, once = false, output } = options;
  if (once && !isDryRun) return usageError('--once requires --dry-run');
  const load = (): Promise<LoadedConfig> =>
    loadConfig({ ...loaderInput(command), isStart: !isDryRun, acceptsFleet: !once });
  const loaded = await load();
  const { config, management, textHash } = loaded;
  const logger = await createLogger(config.log);
  logWarnings(loaded, logger);
  using stop = stopSignals({ ignoresHangUp: true });
  const heap = createStartupHeap();
  heap.grow();
  const { signal } = stop;
  const parts = { config, textHash, isDryRun, isCommand: once, logger, signal, ...programParts() };
  const running = await start({ ...parts, ...accessKeysCompanion(parts, management) });
  if (typeof running === 'number') return running;
  if (once && 'sync' in running) return await firstPass(running, signal, logger, output);
  const [daemon, failed] = 'sync' in running ? [running.sync, [running.sync.failed]] : [running, []];
  const watching = reloadOnChange({ loaded, load, daemon, clock: systemClock, logger });
  void releaseMemoryAfterStart(heap, running, signal);
  const failure = await Promise.race([stop.requested, ...failed]);
  const exitCode = failure === undefined ? 0 : 1;
  exitAfterGracePeriod(exitCode);
  watching.close();
  if (failure === undefined) logger.info({}, 'stopping');
  else logger.error({ reason: failure }, 'stopping because this replica lost the lease');
  await running.stop();
  return exitCode;
}

type Running = Exclude<Awaited<ReturnType<typeof start>>, number>;

/** The running daemon, or fleet, or the exit code of a failed start. The signal, which ends the process, may be why it failed. */
async function start(options: DaemonOptions) {
  const { config, logger, signal } = options;
  try {
    if (!config.fleet.enabled) return await startDaemon(options);
    const { startFleet } = await import('../fleet/fleet.ts');
    return await startFleet(options);
  } catch (error) {
    if (signal.aborted) {
      exitAfterGracePeriod(0);
      return 0;
    }
    // The message of a TerminalError says what to do; any other error is a bug, so its stack is logged.
    if (error instanceof TerminalError) logger.error({ reason: error.message }, 'cannot start');
    else logger.error({ err: error }, 'cannot start');
    return 1;
  }
}

/** A standby holds its first lists, but has no first pass until it leads. */
async function releaseMemoryAfterStart(
  heap: StartupHeap,
  running: Running,
  signal: AbortSignal,
): Promise<void> {
  if ('sync' in running && (await running.sync.isStandby(signal))) {
    heap.release();
    await running.sync.whenLeading(signal);
    if (!signal.aborted) heap.grow();
  }
  const started = 'sync' in running ? running.sync.firstPass(signal) : running.whenStarted(signal);
  await Promise.race([started, sleep(systemClock, FIRST_PASS_MS_MAX, signal)]);
  if (signal.aborted) return;
  keepCompiledCode();
  heap.release();
}

/** Ends a dry run after its first pass: exit code 0 if nothing would be written and nothing is refused. */
async function firstPass(
  daemon: Daemon,
  signal: AbortSignal,
  logger: Logger,
  output: string,
): Promise<number> {
  const { sync } = daemon;
  const isCached = await sync.whenCached(signal, ONCE_SILENCE_MS);
  const failed = sync.failedChecks();
  const changes = isCached ? await sync.firstPass(signal) : [];
  exitAfterGracePeriod(1);
  await daemon.stop();
  if (signal.aborted) return 1;
  if (!isCached) {
    const silence = `the clusters have returned no object of the first lists for ${ONCE_SILENCE_MS / 1000} s`;
    logger.error({ reason: failed.join('; ') }, silence);
    return 1;
  }
  if (changes.length === 0) tell('nothing to do');
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
export function accessKeysCompanion(
  options: DaemonOptions,
  config: ManagementConfig,
): Pick<DaemonOptions, 'startCompanion'> {
  const { isDryRun, logger } = options;
  if (!config.enabled) return {};
  if (isDryRun) {
    logger.info({}, 'the key and token API is not served by a dry run');
    return {};
  }
  return {
    async startCompanion(metrics, stopping) {
      const { startManagementApi } = await import('../access-keys/management-api.ts');
      const signal = AbortSignal.any([options.signal, stopping]);
      return startManagementApi({ ...options, config, metrics, signal });
    },
  };
}
