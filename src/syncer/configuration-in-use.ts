/** The configuration in use, and why that of the files is not: in readiness, metrics, the Lease, and Events on the Lease. */

import type { Clock } from '../base/clock.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import { messageOf } from '../base/errors.ts';
import { configurationHash, type Config } from '../config/config.ts';
import { LEASES } from '../kube/lease.ts';
import type { ClusterClient, EventRecorder } from '../kube/types.ts';
import { CONFIGURATION, leaseName, type Leadership } from './leadership.ts';
import type { SyncSeries } from './metrics/sync-series.ts';

interface ConfigurationInUseOptions {
  readonly leadership: Pick<Leadership, 'publish'>;
  readonly client: Pick<ClusterClient, 'get'>;
  readonly recorder: EventRecorder;
  readonly metrics: Pick<SyncSeries, 'configurationInUse' | 'configurationApplied'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ConfigurationInUse {
  readonly #options: ConfigurationInUseOptions;
  #detail = '';
  #isApplied = true;

  constructor(options: ConfigurationInUseOptions) {
    this.#options = options;
  }

  use(config: Config): void {
    const { leadership, metrics, clock } = this.#options;
    const hash = configurationHash(config);
    const nowMs = clock.now();
    this.#detail = `${hash}, since ${new Date(nowMs).toISOString()}`;
    metrics.configurationInUse(hash, nowMs / 1000);
    leadership.publish({ [CONFIGURATION]: hash });
  }

  /** The files were read; `problem` is why what they say is not in use, or not all of it. */
  read(config: Config, problem?: string): void {
    this.#isApplied = problem === undefined;
    this.#options.metrics.configurationApplied(this.#isApplied);
    if (problem !== undefined) void this.#report(config, problem);
  }

  check(): CheckResult {
    const rest = this.#isApplied ? '' : '; that of the files is not applied, the log says why';
    return { isOk: true, detail: `${this.#detail}${rest}` };
  }

  /** The right to create Events on the host is optional, and there may be no Lease. */
  async #report({ name, host }: Config, problem: string): Promise<void> {
    const { client, recorder, logger } = this.#options;
    try {
      const lease = await client.get(LEASES, { namespace: host.namespace, name: leaseName(name) });
      const note = `The changed configuration is not applied: ${problem}`;
      recorder.event(lease, LEASES, { type: 'Warning', reason: 'ConfigurationNotApplied', note });
    } catch (error) {
      logger.debug({ error: messageOf(error) }, 'no Event about the configuration');
    }
  }
}
