/** Both clusters of a configuration, for one command: connected, with the host namespace filled in. */

import { systemClock } from '../../../base/clock.ts';
import { TerminalError } from '../../../base/errors.ts';
import { silentLogger } from '../../../base/logger.ts';
import { systemRandom } from '../../../base/random.ts';
import type { Config } from '../../../config/types.ts';
import { connectClusters, type Clusters } from '../../../syncer/clusters.ts';
import { createMetrics } from '../../../syncer/metrics/metrics.ts';
import { packageVersion } from '../../version.ts';

export interface Connection extends AsyncDisposable {
  /** With the host namespace, where it is the context's own. */
  readonly config: Config;
  readonly clusters: Clusters;
}

/** The daemon waits for a cluster that does not respond; a command does not. */
const CONNECT_TIMEOUT_MS = 15_000;

/** Rejects with `TerminalError` where a kubeconfig or Secret is missing or a cluster cannot be reached. */
export async function connect(config: Config): Promise<Connection> {
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  try {
    const clusters = await connectClusters({
      config,
      isDryRun: true,
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      metrics: createMetrics({ monotonicMs: () => systemClock.monotonicMs(), version: packageVersion() }),
      version: packageVersion(),
      signal,
    });
    const located = { ...config, host: { ...config.host, namespace: clusters.hostNamespace } };
    return { config: located, clusters, [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose]() };
  } catch (error) {
    if (!signal.aborted || error instanceof TerminalError) throw error;
    throw new TerminalError('cannot connect to the host cluster; check its kubeconfig and whether it runs', {
      cause: error,
    });
  }
}
