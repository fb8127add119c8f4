/** When a key expires. */

import { metadataOf, objectField, text } from '../../../apiserver/validation/metadata.ts';
import type { JsonObject } from '../../../base/json.ts';

/** What decides it. Times in epoch milliseconds. */
export interface Lifetime {
  readonly createdMs: number;
  /** 0: it never ends. */
  readonly ttlMs: number;
  /** The ttl counts from the last use. */
  readonly isAfterActivity: boolean;
}

/** Undefined: never. `lastActivityMs`: the last use that is known. */
export function endOf(lifetime: Lifetime, lastActivityMs: number | undefined): number | undefined {
  const { createdMs, ttlMs, isAfterActivity } = lifetime;
  if (ttlMs <= 0) return undefined;
  const from = isAfterActivity ? Math.max(createdMs, lastActivityMs ?? createdMs) : createdMs;
  return from + ttlMs;
}

/** The same of a key as clients see it. */
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

/** How often the last use is written at most: every minute, or every tenth of a shorter ttl. */
export function activityIntervalMs({ ttlMs }: Lifetime): number {
  return ttlMs > 0 ? Math.min(ACTIVITY_INTERVAL_MS, ttlMs / 10) : ACTIVITY_INTERVAL_MS;
}
