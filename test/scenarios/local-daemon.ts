/**
 * The daemon in the process of the test, composed as `run` composes it. Its modules are loaded already, so it starts in a tenth of the
 * processor time of a process. What only a process has (arguments, signals, exit code, a crash) is tested with `Daemon`.
 */

import { systemClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { reloadOnChange } from '../../src/cli/process-lifecycle.ts';
import { loadConfig, type LoadedConfig } from '../../src/cli/config/load.ts';
import { startDaemon, type Daemon } from '../../src/syncer/run.ts';
import { eventually } from '../support/eventually.ts';
import { RunningDaemon } from './running-daemon.ts';

interface Parts {
  readonly daemon: Daemon;
  /** What it logs. */
  readonly lines: { text: string };
  readonly watching: { close(): void };
}

export class LocalDaemon extends RunningDaemon {
  readonly #parts: Parts;
  #isStopped = false;

  private constructor(parts: Parts) {
    super(parts.daemon.healthUrl);
    this.#parts = parts;
  }

  /** Started and ready. */
  static async start(configPath: string): Promise<LocalDaemon> {
    const load = (): Promise<LoadedConfig> => loadConfig({ file: configPath, env: {}, flags: {} });
    const loaded = await load();
    const { config, textHash, warnings } = loaded;
    const lines = { text: '' };
    const destination = { write: (line: string) => void (lines.text += line) };
    const logger = await createLogger({ ...config.log, destination });
    for (const { path, message } of warnings) logger.warn({ path }, message);
    const daemon = await startDaemon({
      config,
      textHash,
      isDryRun: false,
      logger,
      clock: systemClock,
      random: systemRandom,
      version: 'test',
      signal: new AbortController().signal,
    });
    const watching = reloadOnChange({ loaded, load, daemon: daemon.sync, clock: systemClock, logger });
    await using resources = new AsyncDisposableStack();
    const local = resources.use(new LocalDaemon({ daemon, lines, watching }));
    await eventually(
      () => local.get('/readyz'),
      ({ status }) => status === 200,
      { what: 'readiness of the daemon' },
    );
    resources.move();
    return local;
  }

  override get stderr(): string {
    return this.#parts.lines.text;
  }

  override async stop(): Promise<void> {
    this.#isStopped = true;
    this.#parts.watching.close();
    await this.#parts.daemon.stop();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isStopped) await this.stop();
  }
}
