/** Rendezvous hashing: a key has one place among several, and when a place comes or goes, only its own share of the keys moves. */

import { createHash } from 'node:crypto';

/** Undefined without a place. */
export function chosenPlace(key: string, places: readonly string[]): string | undefined {
  const scored = places.map((place) => ({ place, score: scoreOf(place, key) }));
  return scored.reduce<(typeof scored)[number] | undefined>(
    (best, one) => (best === undefined || one.score > best.score ? one : best),
    undefined,
  )?.place;
}

function scoreOf(place: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([place, key]))
    .digest('hex');
}
