/** When a key expires. Pure. */

import { metadataOf, objectField, text } from '../../apiserver/metadata.ts';
import type { JsonObject } from '../../base/json.ts';

/** Time that expired keys are kept, so that a wrong clock deletes none: requests that use them fail. */
export const KEEP_EXPIRED_MS = 7 * 86_400_000;

/** Times in epoch milliseconds. */
export interface Lifetime {
  readonly createdMs: number;
  /** 0: it never expires. */
  readonly ttlMs: number;
  /** The ttl starts after the last use. */
  readonly isAfterActivity: boolean;
}

/** When a key expires; undefined: never. `lastActivityMs`: its last known use. */
export function endOf(lifetime: Lifetime, lastActivityMs: number | undefined): number | undefined {
  const { createdMs, ttlMs, isAfterActivity } = lifetime;
  if (ttlMs <= 0) return undefined;
  const from = isAfterActivity ? Math.max(createdMs, lastActivityMs ?? createdMs) : createdMs;
  return from + ttlMs;
}

/** When a key, as clients see it, expires; undefined: never. */
export function endOfKey(key: JsonObject): number | undefined {
  const spec = objectField(key, 'spec');
  const activity = text(objectField(key, 'status'), 'lastActivity');
  const lifetime = {
    createdMs: Date.parse(text(metadataOf(key), 'creationTimestamp')),
    ttlMs: Number(spec['ttl'] ?? 0) * 1000,
    isAfterActivity: spec['ttlAfterLastActivity'] === true,
  };
  return endOf(lifetime, activity === '' ? undefined : Date.parse(activity));
}

const ACTIVITY_INTERVAL_MS = 60_000;

/** Minimum interval between writes of the last use: a minute, or a tenth of a shorter ttl. */
export function activityIntervalMs({ ttlMs }: Lifetime): number {
  return ttlMs > 0 ? Math.min(ACTIVITY_INTERVAL_MS, ttlMs / 10) : ACTIVITY_INTERVAL_MS;
}
