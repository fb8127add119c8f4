/** Missing host namespaces: created with `createNamespaces`. */

import type { Config } from '../../config/types.ts';
import { NAMESPACES } from '../../kube/object.ts';
import { isAlreadyExists } from '../../kube/status-error.ts';
import type { SyncEnvironment } from './environment.ts';

type NamespaceSettings = Pick<Config, 'createNamespaces' | 'sync'>;

/** What the user can do about a missing host namespace. */
export function namespaceAdvice({ createNamespaces, sync }: NamespaceSettings): string {
  if (createNamespaces) return 'create it';
  const correct = sync.namespaces.kind === 'single' ? 'correct endpointSyncer.host.namespace, ' : '';
  return `create it, ${correct}or set endpointSyncer.createNamespaces to true`;
}

/** Creates the host namespace of a virtual one. Undefined if this configuration, or a dry run, creates none. */
export function namespaceCreator({
  config,
  clients,
  names,
  dryRun,
  logger,
}: SyncEnvironment): ((virtualNamespace: string) => Promise<void>) | undefined {
  if (!config.createNamespaces || dryRun !== undefined) return undefined;
  return async (virtualNamespace) => {
    const name = names.namespaceToHost(virtualNamespace);
    if (name === undefined) return;
    try {
      await clients.host.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      logger.info({ namespace: name }, 'host namespace created');
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  };
}
