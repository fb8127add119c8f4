/** Single GETs for when a cache is, or may be, behind its API server. Each GET updates the cache. */

import {
  keyOf,
  parseKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  compareVersions,
  isOlder,
} from '../../kube/object.ts';
import { ignoreNotFound, isAlreadyExists, isConflict, isNotFound } from '../../kube/status-error.ts';
import { recordedRevision, recordOf } from '../translate/last-synced.ts';
import type { Observation } from './decide.ts';
import type { KindSync } from './kind-sync.ts';

/** Objects that the caches leave out, read from their API servers. */
export type LeftOut = Pick<Partial<Observation>, 'virtual' | 'host'>;

/** Reads the virtual object if the host object was made from a later version than the cached one, or may have been: `isOfAnother`, it was made from
 * another object; or it has lost its record, and the virtual object has one of it. True: the cache has a later version now. */
export async function isVirtualBehind(
  sync: KindSync,
  virtual: KubeObject,
  host: KubeObject,
  isOfAnother = false,
): Promise<boolean> {
  const { resourceVersion } = virtual.metadata;
  const copied = recordedRevision(recordOf(host));
  const isUnknown = copied === undefined && (isOfAnother || recordOf(virtual) !== undefined);
  if (!isUnknown && !isOlder(resourceVersion, copied)) return false;
  const current = await readVirtual(sync, virtual);
  return current === undefined || isOlder(resourceVersion, current.metadata.resourceVersion);
}

/** Reads the virtual object if another replica may have made the copy from a version that the cache has not reached, or another syncer did, of which
 * that is not known. True: the object exists. */
export async function isMissedByCache(sync: KindSync, key: ObjectKey, host: KubeObject): Promise<boolean> {
  const revision = sync.decide.isSyncedByVcluster ? undefined : recordedRevision(recordOf(host));
  if (revision !== undefined && !isOlder(sync.virtual.resourceVersion, revision)) return false;
  return (await readVirtual(sync, { metadata: { ...parseKey(key) } })) !== undefined;
}

/** To a watch with a label selector, an object that is deleted and one whose labels no longer match look the same. So before a copy is deleted, or
 * created once more, the other object is read. Undefined: the caches hold everything. */
export async function readLeftOut(
  sync: KindSync,
  { key, virtual, host, target }: Observation,
  isCopyGone: boolean,
): Promise<LeftOut | undefined> {
  const { kind, states } = sync;
  if (kind.labelSelector === undefined) return undefined;
  if (virtual === undefined && host !== undefined) {
    const read = await readVirtual(sync, { metadata: { ...parseKey(key) } });
    return read && { virtual: read };
  }
  if (host !== undefined || target === undefined) return undefined;
  if (!isCopyGone && states.find(key)?.isLeftOut !== true) return undefined;
  const read = await readHost(sync, target);
  if (read === undefined) states.of(key).isLeftOut = false;
  return read && { host: read };
}

async function readHost(sync: KindSync, target: NamespacedName): Promise<KubeObject | undefined> {
  const { environment, host, kind } = sync;
  const current = await ignoreNotFound(environment.clients.host.get(kind.resource, target));
  if (current !== undefined) host.observeRead(current);
  return current;
}

export async function readVirtual(
  sync: KindSync,
  { metadata: { name, namespace = '', uid = '' } }: KubeObject,
): Promise<KubeObject | undefined> {
  const { environment, virtual, kind } = sync;
  const current = await ignoreNotFound(environment.clients.virtual.get(kind.resource, { name, namespace }));
  if (current === undefined) virtual.observeAbsence(keyOf({ name, namespace }), uid);
  else virtual.observeRead(current);
  return current;
}

/** Take-overs are rare, so the host Service is read on demand instead of watched. */
export function readHostService(sync: KindSync, target: NamespacedName): Promise<KubeObject | undefined> {
  return ignoreNotFound(sync.environment.clients.host.get(SERVICES, target));
}

/** A Service with a selector exists before its Endpoints and slices, so one that the cache may lack is read before a first copy. True: it is there. */
export async function learnService(sync: KindSync, seen: Observation, virtual: KubeObject): Promise<boolean> {
  const { environment, kind, services } = sync;
  const serviceKey = kind.serviceKey(seen.key, virtual);
  if (serviceKey === undefined || seen.service !== undefined) return false;
  if (hasReached(services.resourceVersion, virtual.metadata.resourceVersion)) return false;
  const service = await ignoreNotFound(environment.clients.virtual.get(SERVICES, parseKey(serviceKey)));
  // Published to the subscribers, because the Service itself may have to be synced.
  if (service !== undefined) services.observeRead(service);
  return service !== undefined;
}

/** After a conflict, the host cache is behind. What is read is published: it may concern other copies, and a deletion by another client counts. */
export async function afterConflict(
  sync: KindSync,
  error: unknown,
  { key, target, host }: Observation,
): Promise<void> {
  const cache = sync.host;
  if (target === undefined || !(isConflict(error) || isAlreadyExists(error) || isNotFound(error))) return;
  try {
    const current = await readHost(sync, target);
    if (current !== undefined && cache.get(keyOf(target)) === undefined) noteLeftOut(sync, key, current);
    if (current === undefined && host?.metadata.uid) cache.observeAbsence(keyOf(target), host.metadata.uid);
  } catch {
    // Any other failure leaves the cache unchanged; `error` already causes a retry.
  }
}

/** The host object may be the copy of another object, or of none: without an event, only this brings up its key. */
function noteLeftOut(sync: KindSync, key: ObjectKey, host: KubeObject): void {
  const { states } = sync;
  states.of(key).isLeftOut = true;
  const owner = sync.ownerOf(host);
  if (owner === undefined || owner === key) return;
  states.of(owner).isLeftOut = true;
  sync.enqueue(owner);
}

function hasReached(reached: string, wanted: string | undefined): boolean {
  return (compareVersions(reached, wanted) ?? -1) >= 0;
}
