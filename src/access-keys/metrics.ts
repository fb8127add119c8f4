/** The metrics of keys and tokens. All series exist from the start. */

import type { Clock } from '../base/clock.ts';
import type { Count, Observe, SeriesRegistry } from '../base/metrics/series.ts';
import { KEY_STATES, keyState } from './identity.ts';
import type { KeyIndex } from './keys/key-index.ts';

type MeasuredKeys = Pick<KeyIndex, 'all' | 'expiresAtMs' | 'unconfirmedMs'>;

/** Counts at each scrape, so that a key that expires changes its state without an event. */
export function keySeries(registry: SeriesRegistry, index: MeasuredKeys, clock: Clock): void {
  const setters = new Map<string, Observe>();
  const gauge = registry.gauge(
    {
      name: 'endpoint_syncer_access_keys',
      help: 'Access keys by state; an expired key is deleted after a week.',
      labels: ['state'],
    },
    () => {
      const nowMs = clock.now();
      const keys = Map.groupBy(index.all(), (key) => keyState(key, index, nowMs));
      for (const state of KEY_STATES) setters.get(state)?.(keys.get(state)?.length ?? 0);
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

export function issuedTokens(registry: SeriesRegistry): Count {
  return registry
    .counter({
      name: 'endpoint_syncer_tokens_issued_total',
      help: 'Direct cluster endpoint tokens that were issued; dry runs do not count.',
    })
    .of({});
}
