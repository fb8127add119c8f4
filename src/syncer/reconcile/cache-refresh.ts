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
import type { ObjectStates } from './object-state.ts';
import type { LeftOut } from './observer.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { ClusterClient, Informer } from '../../kube/types.ts';

export interface CacheRefreshOptions {
  readonly kind: SyncedKind;
  readonly host: { readonly client: ClusterClient; readonly cache: Informer };
  readonly virtual: { readonly client: ClusterClient; readonly cache: Informer; readonly services: Informer };
  readonly states: ObjectStates;
  readonly enqueue: (key: ObjectKey) => void;
  /** The virtual object that the bookkeeping of a host object names. */
  readonly ownerOf: (host: KubeObject) => ObjectKey | undefined;
}

export class CacheRefresh {
  readonly #options: CacheRefreshOptions;

  constructor(options: CacheRefreshOptions) {
    this.#options = options;
  }

  /**
   * Reads the virtual object if the host object was made from a later version than the cached one. `isOfAnother`: it was made from another
   * object, which is a later one, too, for all that an object without a record tells. A virtual object with a record of its copy may hold values of
   * that copy, too, which nothing proves if the copy has lost its record. True: the cache has a later version now.
   */
  async isVirtualBehind(virtual: KubeObject, host: KubeObject, isOfAnother = false): Promise<boolean> {
    const { resourceVersion } = virtual.metadata;
    const copied = recordedRevision(recordOf(host));
    const isUnknown = copied === undefined && (isOfAnother || recordOf(virtual) !== undefined);
    if (!isUnknown && !isOlder(resourceVersion, copied)) return false;
    const current = await this.readVirtual(virtual);
    return current === undefined || isOlder(resourceVersion, current.metadata.resourceVersion);
  }

  /** Reads the virtual object if another replica made the copy from a version that the cache has not reached. True: the object exists. */
  async isMissedByCache(key: ObjectKey, host: KubeObject): Promise<boolean> {
    const { cache } = this.#options.virtual;
    if (!isOlder(cache.resourceVersion, recordedRevision(recordOf(host)))) return false;
    return (await this.readVirtual({ metadata: { ...parseKey(key) } })) !== undefined;
  }

  /**
   * To a watch with a label selector, an object that is deleted and one whose labels no longer match look the same. So before a copy is deleted, or
   * created once more, the other object is read. Undefined: the caches hold everything.
   */
  async readLeftOut(
    { key, virtual, host, target }: Observation,
    isCopyGone: boolean,
  ): Promise<LeftOut | undefined> {
    const { kind } = this.#options;
    if (kind.labelSelector === undefined) return undefined;
    if (virtual === undefined && host !== undefined) {
      const read = await this.readVirtual({ metadata: { ...parseKey(key) } });
      return read && { virtual: read };
    }
    if (host !== undefined || target === undefined) return undefined;
    const { states } = this.#options;
    if (!isCopyGone && states.find(key)?.isLeftOut !== true) return undefined;
    const read = await this.#readHost(target);
    if (read === undefined) states.of(key).isLeftOut = false;
    return read && { host: read };
  }

  async #readHost(target: NamespacedName): Promise<KubeObject | undefined> {
    const { client, cache } = this.#options.host;
    const current = await ignoreNotFound(client.get(this.#options.kind.resource, target));
    if (current !== undefined) cache.observeRead(current);
    return current;
  }

  /** Undefined: it no longer exists. */
  async readVirtual({
    metadata: { name, namespace = '', uid = '' },
  }: KubeObject): Promise<KubeObject | undefined> {
    const { client, cache } = this.#options.virtual;
    const current = await ignoreNotFound(client.get(this.#options.kind.resource, { name, namespace }));
    if (current === undefined) cache.observeAbsence(keyOf({ name, namespace }), uid);
    else cache.observeRead(current);
    return current;
  }

  /** Take-overs are rare, so the host Service is read on demand instead of watched. */
  readHostService(target: NamespacedName): Promise<KubeObject | undefined> {
    return ignoreNotFound(this.#options.host.client.get(SERVICES, target));
  }

  /** Reads the Service before the first copy of an object whose Service is not in the cache. This is not needed if the cache has reached the
   * version of the object, because a Service with a selector exists before its Endpoints and slices. True: the cache has the Service now.
   */
  async learnService(seen: Observation, virtual: KubeObject): Promise<boolean> {
    const { client, services } = this.#options.virtual;
    const serviceKey = this.#options.kind.serviceKey(seen.key, virtual);
    if (serviceKey === undefined || seen.service !== undefined) return false;
    if (hasReached(services.resourceVersion, virtual.metadata.resourceVersion)) return false;
    const service = await ignoreNotFound(client.get(SERVICES, parseKey(serviceKey)));
    // Published to the subscribers, because the Service itself may have to be synced.
    if (service !== undefined) services.observeRead(service);
    return service !== undefined;
  }

  /** After a conflict, the host cache is behind. Reads the object once, so that the next attempt uses its current state. The state is
   * published, because it may concern the copies of other objects too, and a deletion by another client counts.
   */
  async afterConflict(error: unknown, { key, target, host }: Observation): Promise<void> {
    const { cache } = this.#options.host;
    if (target === undefined || !(isConflict(error) || isAlreadyExists(error) || isNotFound(error))) return;
    try {
      const current = await this.#readHost(target);
      if (current !== undefined && cache.get(keyOf(target)) === undefined) this.#noteLeftOut(key, current);
      if (current === undefined && host?.metadata.uid) cache.observeAbsence(keyOf(target), host.metadata.uid);
    } catch {
      // Any other failure leaves the cache unchanged; `error` already causes a retry.
    }
  }

  /** The host object may be the copy of another object, or of none: without an event, only this brings up its key. */
  #noteLeftOut(key: ObjectKey, host: KubeObject): void {
    const { states } = this.#options;
    states.of(key).isLeftOut = true;
    const owner = this.#options.ownerOf(host);
    if (owner === undefined || owner === key) return;
    states.of(owner).isLeftOut = true;
    this.#options.enqueue(owner);
  }
}

/** True if a cache at version `reached` holds all changes up to `wanted`; false if the versions cannot be compared. */
function hasReached(reached: string, wanted: string | undefined): boolean {
  return (compareVersions(reached, wanted) ?? -1) >= 0;
}
