/** Removes from the host what was made for a vCluster that no longer exists: its copies, then the Lease of its sync. */

import type { Logger } from '../base/logger.ts';
import type { Config } from '../config/config.ts';
import { createDiscovery } from '../kube/discovery.ts';
import { LEASES } from '../kube/lease.ts';
import { asJson, keyOf, type KubeObject, type Resource } from '../kube/object.ts';
import { textAt } from '../base/json.ts';
import { ignoreNotFound, isNotFound } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';
import { TerminalError } from '../base/errors.ts';
import { leaseName } from '../syncer/leadership.ts';
import { SYNCABLE_RESOURCES } from '../syncer/kinds/synced-kinds.ts';
import { isOptedOut } from '../syncer/reconcile/decide.ts';
import { FIELD_MANAGER } from '../syncer/reconcile/writer.ts';
import { partsOfKind } from '../syncer/references/referenced-kind.ts';
import { listMarked } from '../syncer/reconcile/marked-copies.ts';
import { recordedKinds, recordOf, type KindId } from '../syncer/translate/last-synced.ts';
import { namedVirtual } from '../syncer/translate/bookkeeping.ts';
import { createTranslators } from '../syncer/translation.ts';
import { FLEET } from './vcluster.ts';

export interface RemovalOptions {
  /** That the vCluster was synced with last. */
  readonly config: Config;
  readonly client: ClusterClient;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Resolves when nothing is left. Rejects as the requests do; a repetition removes the rest. */
export async function removeCopies(options: RemovalOptions): Promise<void> {
  const { client, logger, signal } = options;
  const kinds = new Set<KindId>();
  let deleted = 0;
  const remove = async (resource: Resource): Promise<void> => {
    for (const copy of await copiesOf(resource, options)) {
      for (const kind of recordedKinds(copy)) kinds.add(kind);
      if (await isDeleted(resource, copy, options)) deleted += 1;
    }
  };
  for (const resource of SYNCABLE_RESOURCES) await remove(resource);
  const discovery = createDiscovery(client);
  for (const id of kinds) {
    const { apiVersion, kind } = partsOfKind(id);
    try {
      await remove(await discovery.resolveNamespaced(apiVersion, kind, { signal }));
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error; // it is not served any more, so nothing of it is left
    }
  }
  await removeLease(options);
  logger.info({ copies: deleted }, 'the vCluster was deleted, and its copies with it');
}

/** The vCluster of a Lease that a fleet wrote. */
export function formerMember(lease: KubeObject): string | undefined {
  const { namespace = '', name } = lease.metadata;
  const prefix = leaseName('');
  const isMember = textAt(asJson(lease), 'metadata', 'annotations', FLEET) !== '';
  return isMember && name.startsWith(prefix)
    ? keyOf({ namespace, name: name.slice(prefix.length) })
    : undefined;
}

/** With our record: others are vCluster's own. */
async function copiesOf(
  resource: Resource,
  { config, client, signal }: RemovalOptions,
): Promise<readonly KubeObject[]> {
  const { names } = createTranslators(config);
  const marked = await listMarked(client, resource, {
    vcluster: config.name,
    namespaces: [config.host.namespace],
    signal,
  });
  return marked.filter(
    (object) =>
      recordOf(object) !== undefined &&
      !isOptedOut(object) &&
      namedVirtual(object, resource, names) !== undefined,
  );
}

/** False if the host or another client has deleted it. Rejects on a conflict: a repetition lists again what has taken its place. */
async function isDeleted(
  resource: Resource,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
  { client, signal }: RemovalOptions,
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
async function removeLease(options: RemovalOptions): Promise<void> {
  const { config, client, signal } = options;
  const key = { namespace: config.host.namespace, name: leaseName(config.name) };
  const lease = await ignoreNotFound(client.get(LEASES, key, { signal }));
  if (lease !== undefined) await isDeleted(LEASES, lease, options);
}
