/** Reports at start that the host namespace does not exist, which otherwise shows only when the first object is copied. */

import type { Config } from '../config/types.ts';
import type { Logger } from '../base/logger.ts';
import { NAMESPACES } from '../kube/object.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';

export interface HostNamespaceOptions {
  readonly config: Config;
  readonly client: ClusterClient;
  readonly logger: Logger;
}

/** Never rejects. Without the right to read namespaces, which is optional, nothing is reported. */
export async function reportMissingHostNamespace(options: HostNamespaceOptions): Promise<void> {
  const { config, client, logger } = options;
  const { namespace } = config.host;
  if (config.createNamespaces) return;
  try {
    await client.get(NAMESPACES, { namespace: '', name: namespace });
  } catch (error) {
    const hint = 'create it, or set endpointSyncer.host.namespace to the namespace of the virtual cluster';
    if (isNotFound(error)) logger.warn({ namespace, hint }, 'host namespace does not exist');
    else logger.debug({ namespace, error: String(error) }, 'host namespace cannot be checked');
  }
}
