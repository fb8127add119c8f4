/** What one member may use of what all members share. */

import { TerminalError } from '../base/errors.ts';
import type { Clock } from '../base/clock.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import type { FleetConfig } from '../config/config.ts';
import type { BorrowedOptions } from '../kube/borrowed-client.ts';
import type { TransportLimits } from '../kube/client/transport.ts';
import type { CacheLimits, Excess } from '../kube/informer/cache-budget.ts';

const MIB = 2 ** 20;

/** Bytes: of a list of 10 000 Endpoints, and of their changes. Bounds the processor time that reading takes. */
const READ_RATE: Rate = { burst: 32 * MIB, perSecond: MIB / 2 };

/**
 * Of the clients of one member's virtual cluster, whose API server may return anything. What is being read is not in the caches yet: at most these
 * connections with a response each.
 */
export function virtualLimits(clock: Clock): TransportLimits {
  return { connections: 4, responseBytesMax: 4 * MIB, pace: new TokenBucket(READ_RATE, clock) };
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

/** Of a member that was limited. */
export function resumeLimits({ objectsMax, bytesMax }: CacheLimits): CacheLimits {
  return {
    objectsMax: Math.floor(objectsMax * RESUME_SHARE),
    bytesMax: Math.floor(bytesMax * RESUME_SHARE),
  };
}

/** The caches of a member need more than its limit. */
export class LimitExceededError extends TerminalError {
  constructor({ of, found }: Excess, limits: CacheLimits) {
    const isObjects = of === 'objects';
    const text = (count: number): string =>
      isObjects ? `${count} objects` : `${Math.round(count / MIB)} MiB`;
    const setting = `endpointSyncer.fleet.limits.${isObjects ? 'objects' : 'cacheBytes'}`;
    const key = isObjects ? 'objectsMax' : 'bytesMax';
    super(
      `at least ${text(found)} in its caches, ${setting} is ${text(limits[key])}: not synced, its copies stay; delete objects of the virtual cluster, ` +
        `or in its host namespace, until ${text(resumeLimits(limits)[key])} are enough, or raise the limit`,
    );
  }
}
