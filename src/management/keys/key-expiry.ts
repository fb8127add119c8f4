/** When a key ends. */

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

const ACTIVITY_INTERVAL_MS = 60_000;

/** How far apart two notes of a use are: a minute, or a tenth of a shorter ttl. */
export function activityIntervalMs({ ttlMs }: Lifetime): number {
  return ttlMs > 0 ? Math.min(ACTIVITY_INTERVAL_MS, ttlMs / 10) : ACTIVITY_INTERVAL_MS;
}
