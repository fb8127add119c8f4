/** Readiness of a cache. */

import type { CheckResult } from '../../base/health.ts';
import type { ObservableInformer } from './informer.ts';

/** Watches get a bookmark every minute, so a cache without an event for this long is stale. */
const STALENESS_MAX_MS = 5 * 60_000;

export function informerCheck(informer: ObservableInformer): CheckResult {
  const { lastError, isRewound } = informer.condition;
  const why = lastError === undefined ? '' : `, last error: ${lastError}`;
  if (!informer.isSynced) return { isOk: false, detail: `not synced yet${why}` };
  if (isRewound)
    return { isOk: false, detail: `the server was restored, its objects are not listed yet${why}` };
  const staleness = `last event ${Math.round(informer.stalenessMs / 1000)} s ago`;
  return {
    isOk: informer.stalenessMs < STALENESS_MAX_MS,
    detail: `${informer.size} objects, ${staleness}${why}`,
  };
}
