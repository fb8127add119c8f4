/** Both clusters of a configuration, for one command: connected, with the host namespace filled in. */

import { silentLogger } from '../../base/logger.ts';
import type { ServerAccess } from '../../kube/access.ts';
import type { WatchClient } from '../../kube/types.ts';
import {
  COMMAND_GIVES_UP_MS,
  COMMAND_LIMITS,
  connectClusters,
  measuredClient,
  withPlace,
  type Clusters,
  type ClustersOptions,
} from '../clusters.ts';
import type { Config } from '../config/config.ts';
import { createMetrics } from '../metrics/metrics.ts';

export interface Connection extends AsyncDisposable {
  /** With the host namespace, where it is the context's own. */
  readonly config: Config;
  readonly clusters: Clusters;
  /** The configuration was read from the host: nothing outside of the namespaces that it maps is written or deleted. */
  readonly isHosted?: boolean;
}

interface ConnectOptions extends Pick<ClustersOptions, 'clock' | 'random' | 'version'> {
  /** The URL to use instead of the one in the Secret of the virtual cluster. */
  readonly serverOf?: ((ofSecret: string) => string) | undefined;
  readonly isHosted?: boolean;
  /** See {@link ClustersOptions}. */
  readonly giveUpMs?: number;
}

/** Rejects with `TerminalError` where a kubeconfig or Secret is missing or a cluster cannot be reached. */
export async function connect(
  config: Config,
  { isHosted = false, giveUpMs = COMMAND_GIVES_UP_MS, ...options }: ConnectOptions,
): Promise<Connection> {
  // Afterwards, the connection closes its clients itself, however long the command takes.
  const connecting = new AbortController();
  try {
    const clusters = await connectClusters({
      ...options,
      metrics: metricsOf(options),
      config,
      isDryRun: true,
      logger: silentLogger,
      signal: connecting.signal,
      giveUpMs,
    });
    return {
      config: withPlace(config, clusters.place),
      clusters,
      isHosted,
      [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose](),
    };
  } catch (error) {
    connecting.abort();
    throw error;
  }
}

/** For a command that reads the host before it has a configuration. */
export function hostClient(
  access: ServerAccess,
  parts: Pick<ClustersOptions, 'clock' | 'version'>,
): WatchClient {
  return measuredClient('host', access, { ...parts, metrics: metricsOf(parts), limits: COMMAND_LIMITS });
}

/** Which nothing reads. */
function metricsOf({ clock, version }: Pick<ClustersOptions, 'clock' | 'version'>) {
  return createMetrics({ monotonicMs: () => clock.monotonicMs(), version });
}
