/** Whether it was a user who deleted a copy on the host, and not one of the host's controllers. What the copy depended on is read, because the caches
 * may be behind its deletion. */

import {
  apiVersionOf,
  isTerminating,
  parseKey,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import {
  isAlreadyExists,
  isNamespaceGone,
  isTransient,
  NO_STATUS,
  StatusError,
} from '../../kube/status-error.ts';
import { hasSelector } from '../kinds/kind.ts';
import { readHostService } from './cache-refresh.ts';
import type { Streak } from './guards.ts';
import type { KindSync } from './kind-sync.ts';

/** A copy that is gone. */
export interface LostCopy {
  readonly target: NamespacedName;
  /** The host Services that it may have got traffic from. */
  readonly services: readonly ObjectKey[];
}

export async function isByUser(
  sync: KindSync,
  { target, services }: LostCopy,
  { ownerUids = [], serviceUid }: Streak,
): Promise<boolean> {
  if (!(await hasOwner(sync, ownerUids)) || (await isWithNamespace(sync, target))) return false;
  return !sync.kind.isDeletedByControllers || (await hasService(sync, services, serviceUid));
}

/** Else the garbage collector deletes it. */
async function hasOwner({ environment }: KindSync, uids: readonly string[]): Promise<boolean> {
  return uids.length === 0 || uids.includes((await environment.owner.refresh())?.uid ?? '');
}

/** The namespace controller deletes what is in a namespace that ends, such as the RoleBinding and the ServiceAccount of this program. The answer to a
 * creation says so, with no right to read namespaces. */
async function isWithNamespace(
  { environment, kind }: KindSync,
  { name, namespace }: NamespacedName,
): Promise<boolean> {
  const { clients, expectedDeletions } = environment;
  if (expectedDeletions.ofNamespaces.get(namespace) === true) return true;
  const { resource } = kind;
  const probe = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: { name, namespace } };
  try {
    await clients.host.create(resource, probe, { isDryRun: true });
  } catch (error) {
    if (!(error instanceof StatusError) || isTransient(error) || error.reason === NO_STATUS) throw error;
    // There is a copy again: a retry reads it, and then nothing is lost.
    if (isAlreadyExists(error)) throw error;
    if (isNamespaceGone(error)) expectedDeletions.ofNamespaces.set(namespace, true);
    // Validation comes after the namespace was asked for. Any other refusal may be because of its end, such as that of credentials or rights.
    return error.code !== 422;
  }
  return false;
}

/** Else the endpoints controller deletes it, or an API server along with the Service. */
async function hasService(
  sync: KindSync,
  keys: readonly ObjectKey[],
  uid: string | undefined,
): Promise<boolean> {
  for (const key of keys) {
    const service = await readHostService(sync, parseKey(key));
    const isThere = service !== undefined && service.metadata.uid === uid && !isTerminating(service);
    if (isThere && !hasSelector(service)) return true;
  }
  return false;
}
