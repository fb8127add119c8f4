/** What one member may use of what all members share, and which objects it may request. */

import { totalmem } from 'node:os';
import { TerminalError } from '../base/errors.ts';
import type { Clock } from '../base/clock.ts';
import { containerMemoryLimit } from '../base/container-memory.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import type { FleetConfig } from '../syncer/config/config.ts';
import type { BorrowedOptions } from '../kube/borrowed-client.ts';
import { InputBudget } from '../kube/client/input-budget.ts';
import { ReadPace } from '../kube/client/read-pace.ts';
import type { TransportLimits } from '../kube/client/transport.ts';
import type { CacheLimits, Excess } from '../kube/informer/cache-budget.ts';
import type { Resource } from '../kube/object.ts';
import { failure } from '../kube/status-error.ts';
import type { WatchClient } from '../kube/types.ts';
import { SharedCaches } from './shared-caches.ts';

const MIB = 2 ** 20;

/** Bytes: of a list of 10 000 Endpoints. */
const LIST_RATE: Rate = { burst: 32 * MIB, perSecond: MIB / 2 };
/** Of the changes of as many objects as may be written at once: what is read cannot be written sooner. */
const WATCH_RATE: Rate = { burst: 2 * MIB, perSecond: MIB / 2 };
/** Milliseconds of the event loop: what an event costs has no bound in its bytes. Deciding and writing take as much again. */
const LOOP_RATE: Rate = { burst: 500, perSecond: 100 };

/** Of what reading takes: for all members of a namespace, whose owner chooses how many there are. */
export function loopShare(clock: Clock): TokenBucket {
  return new TokenBucket(LOOP_RATE, clock);
}

/** A watch has one connection, and one kind one watch: the synced kinds, Services, and what patches reference. */
const WATCHES_MAX = 32;

/**
 * Of the clients of one member's virtual cluster, whose API server may return anything. What is being read is not in the caches yet: at most these
 * connections with a response each.
 */
export function virtualLimits(clock: Clock, input: InputBudget, loop: TokenBucket): TransportLimits {
  return {
    connections: 4,
    watchesMax: WATCHES_MAX,
    responseBytesMax: 4 * MIB,
    pace: {
      responses: new ReadPace({ bytes: new TokenBucket(LIST_RATE, clock), loop, clock }),
      // Of their own: a list that may be large lets no watch be, and watches that are behind delay no list.
      watches: new ReadPace({ bytes: new TokenBucket(WATCH_RATE, clock), loop, clock }),
    },
    input,
  };
}

/** Of the memory of the container. */
export const INPUT_SHARE = 1 / 8;
/** That of the chart, where there is no limit. */
const CONTAINER_BYTES = 1024 * MIB;

/** Of all members together: what their API servers have begun to send. */
export function inputBudget(containerBytes = containerMemoryLimit() ?? CONTAINER_BYTES): InputBudget {
  return new InputBudget(containerBytes * INPUT_SHARE);
}

/** Of the host, on the connections of the process. */
export function hostLimits(
  { limits: { hostRequests, hostWrites } }: FleetConfig,
  clock: Clock,
): BorrowedOptions {
  const rate = { burst: 10 * hostWrites, perSecond: hostWrites };
  return { requestsMax: hostRequests, writeRate: { rate, clock } };
}

/** A limited member is synced again when it needs this share of the limit. */
const RESUME_SHARE = 0.9;

export function cacheLimits({ limits: { objects, cacheBytes } }: FleetConfig): CacheLimits {
  return { objectsMax: objects, bytesMax: cacheBytes };
}

export function resumeLimits({ objectsMax, bytesMax }: CacheLimits): CacheLimits {
  return {
    objectsMax: Math.floor(objectsMax * RESUME_SHARE),
    bytesMax: Math.floor(bytesMax * RESUME_SHARE),
  };
}

export class LimitExceededError extends TerminalError {
  constructor({ of, found, max }: Excess, limits: CacheLimits) {
    const isObjects = of === 'objects';
    const text = (count: number): string =>
      isObjects ? `${count} objects` : `${Math.round(count / MIB)} MiB`;
    const setting = `endpointSyncer.fleet.limits.${isObjects ? 'objects' : 'cacheBytes'}`;
    const resumed = resumeLimits(limits)[isObjects ? 'objectsMax' : 'bytesMax'];
    const key = isObjects ? 'objectsMax' : 'bytesMax';
    super(
      of === 'bytes of all members'
        ? `the caches of all members need more than ${text(max)}, 40 % of the memory of the container, and this one is the largest of the namespace that has most: not synced, ` +
            'its copies stay; delete objects of the virtual clusters of this namespace, or give the fleet more memory'
        : `at least ${text(found)} in its caches, ${setting} is ${text(limits[key])}: not synced, its copies stay; delete objects of the virtual cluster, ` +
            `or in its host namespace, until ${text(resumed)} are enough, or raise the limit`,
    );
  }
}

export const CACHES_SHARE = 0.4;

/** Of all members together: bytes in their caches. */
export function sharedCaches(containerBytes = containerMemoryLimit() ?? totalmem()): SharedCaches {
  return new SharedCaches(containerBytes * CACHES_SHARE);
}

/**
 * A client of one namespace only. The identity of a fleet may have rights in every namespace, but its members are separate tenants, and vClusters of one name are common: a member that
 * lists the copies of its name everywhere reads those of all others. Its sync gets what it gets with a Role in its own namespace. Resources without
 * namespaces, discovery and access reviews are left to the rights of the identity.
 */
export function confinedClient(client: WatchClient, namespace: string): WatchClient {
  const check = ({ plural, isNamespaced }: Resource, requested: string | undefined): void => {
    if (!isNamespaced || requested === namespace) return;
    const where = requested === undefined || requested === '' ? 'all namespaces' : `namespace "${requested}"`;
    throw failure(403, 'Forbidden', `${plural} in ${where}: the member is confined to "${namespace}"`);
  };
  return {
    cluster: client.cluster,
    async get(resource, key, options) {
      check(resource, key.namespace);
      return client.get(resource, key, options);
    },
    async list(resource, options) {
      check(resource, options?.namespace);
      return client.list(resource, options);
    },
    async watch(resource, options, handler) {
      check(resource, options.namespace);
      return client.watch(resource, options, handler);
    },
    async create(resource, object, options) {
      check(resource, object.metadata.namespace);
      return client.create(resource, object, options);
    },
    async update(resource, object, options) {
      check(resource, object.metadata.namespace);
      return client.update(resource, object, options);
    },
    async patch(resource, key, patch, options) {
      check(resource, key.namespace);
      return client.patch(resource, key, patch, options);
    },
    async delete(resource, key, preconditions, options) {
      check(resource, key.namespace);
      return client.delete(resource, key, preconditions, options);
    },
    request: (method, path, body, options) => client.request(method, path, body, options),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
