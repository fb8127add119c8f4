/** Removes from the host what was made for vClusters that no longer exist: their copies, then the Leases of their syncs. */

import type { Logger } from '../base/logger.ts';
import type { Config } from '../syncer/config/config.ts';
import { LEASES } from '../kube/lease.ts';
import { asJson, keyOf, type KubeObject, type NamespacedName, type Resource } from '../kube/object.ts';
import { textAt } from '../base/json.ts';
import { ignoreNotFound, isNotFound } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';
import { leaseName } from '../syncer/leadership.ts';
import { FIELD_MANAGER } from '../syncer/translate/bookkeeping.ts';
import { recordedCopies } from '../syncer/recorded-copies.ts';
import { FLEET } from './vcluster.ts';

export interface RemovalOptions {
  /** That all of them are in. */
  readonly namespace: string;
  /** The configuration that each was synced with last. */
  readonly configs: readonly Config[];
  /** For requests about one of them. */
  readonly clientOf: (config: Config) => ClusterClient;
  readonly client: ClusterClient;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Resolves when nothing of them is left in their namespace. Rejects as the requests do; a repetition removes the rest. */
export async function removeCopies(options: RemovalOptions): Promise<void> {
  const { configs, logger, namespace, signal } = options;
  const deleted = new Map<Config, number>(configs.map((config) => [config, 0]));
  for await (const { resource, copy, config } of recordedCopies(options)) {
    const isGone = await isDeleted(resource, copy, { signal, client: options.clientOf(config) });
    if (isGone) deleted.set(config, (deleted.get(config) ?? 0) + 1);
  }
  for (const [config, copies] of deleted) {
    await removeLease(config, { signal, client: options.clientOf(config) });
    const vcluster = keyOf({ namespace, name: config.name });
    logger.info({ vcluster, copies }, 'the vCluster was deleted, and its copies with it');
  }
}

/** The longest value of a label, which the name of a vCluster is on its copies. */
const NAME_CHARS_MAX = 63;

/** The vCluster of a Lease that looks as if a fleet had written it. */
export function formerMember(lease: KubeObject): NamespacedName | undefined {
  const { namespace = '', name: leaseOf } = lease.metadata;
  const prefix = leaseName('');
  const name = leaseOf.slice(prefix.length);
  const isMember = textAt(asJson(lease), 'metadata', 'annotations', FLEET) !== '';
  return isMember && leaseOf.startsWith(prefix) && name !== '' && name.length <= NAME_CHARS_MAX
    ? { namespace, name }
    : undefined;
}

type RequestsOf = Pick<RemovalOptions, 'client' | 'signal'>;

/** False if the host or another client has deleted it. Rejects on a conflict: a repetition lists again what has taken its place. */
async function isDeleted(
  resource: Resource,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
  { client, signal }: RequestsOf,
): Promise<boolean> {
  try {
    await client.delete(resource, { namespace, name }, { uid }, { fieldManager: FIELD_MANAGER, signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** The next vCluster of the name is another one. */
async function removeLease(config: Config, requests: RequestsOf): Promise<void> {
  const { client, signal } = requests;
  const key = { namespace: config.host.namespace, name: leaseName(config.name) };
  const lease = await ignoreNotFound(client.get(LEASES, key, { signal }));
  if (lease !== undefined) await isDeleted(LEASES, lease, requests);
}
