/** The metrics of keys and tokens. All series exist from the start. */

import type { Clock } from '../base/clock.ts';
import type { Count, Observe, SeriesRegistry } from '../base/metrics/series.ts';
import type { KeyRecord } from './identity.ts';

const KEY_STATES = ['active', 'disabled', 'expired', 'deleting'] as const;
type KeyState = (typeof KEY_STATES)[number];

interface MeasuredKeys {
  all(): Iterable<KeyRecord>;
  expiresAtMs(record: KeyRecord): number | undefined;
  /** Since the store last responded; 0 while it responds. */
  readonly unconfirmedMs: number;
}

/** Counts at each scrape, so that a key that expires changes its state without an event. */
export function keySeries(registry: SeriesRegistry, index: MeasuredKeys, clock: Clock): void {
  const setters = new Map<KeyState, Observe>();
  const gauge = registry.gauge(
    {
      name: 'endpoint_syncer_access_keys',
      help: 'Access keys by state; an expired key is deleted after a week.',
      labels: ['state'],
    },
    () => {
      const counts = countByState(index, clock.now());
      for (const [state, set] of setters) set(counts[state]);
    },
  );
  for (const state of KEY_STATES) setters.set(state, gauge.of({ state }));
  const setUnconfirmed = registry
    .gauge(
      {
        name: 'endpoint_syncer_access_keys_unconfirmed_seconds',
        help: 'Time since the store of the access keys last responded; 0 while it responds. Keys are accepted up to 600.',
      },
      () => setUnconfirmed(index.unconfirmedMs / 1000),
    )
    .of({});
}

export function countByState(
  index: Pick<MeasuredKeys, 'all' | 'expiresAtMs'>,
  nowMs: number,
): Record<KeyState, number> {
  const counts: Record<KeyState, number> = { active: 0, disabled: 0, expired: 0, deleting: 0 };
  for (const key of index.all()) counts[stateOf(key, index.expiresAtMs(key), nowMs)]++;
  return counts;
}

function stateOf(key: KeyRecord, endMs: number | undefined, nowMs: number): KeyState {
  if (key.isDeleted) return 'deleting';
  if (endMs !== undefined && endMs <= nowMs) return 'expired';
  return key.isDisabled ? 'disabled' : 'active';
}

/** Counts issued tokens. */
export function issuedTokens(registry: SeriesRegistry): Count {
  return registry
    .counter({
      name: 'endpoint_syncer_tokens_issued_total',
      help: 'Direct cluster endpoint tokens that were issued; dry runs do not count.',
    })
    .of({});
}
