/** Tracks values on their way from the host to the virtual side (`translate/incoming.ts`): those that this process wrote or has seen arrive.
 * The key is the text of the sync record, so a record of another daemon is unknown.
 */

import type { Clock } from '../../../base/clock.ts';
import type { ObjectKey } from '../../../kube/object.ts';
import type { Arrival } from '../../translate/merge/incoming.ts';

/** How long to wait for a write of another daemon that may be in progress. */
const UNCERTAIN_MS = 2000;

/** The current record, and records whose write failed or got no response: the copy may have one of them later. */
const RECORDS_MAX = 8;

export interface Arrivals {
  of(key: ObjectKey, record: string | undefined): Arrival;
  /** Call when the virtual object was written or read with all incoming values of this record, or when its write was rejected (`due`). */
  note(key: ObjectKey, record: string | undefined, arrival: Arrival): void;
  /** The record does not tell whether a value arrived. Returns how long to wait for another daemon's write; 0: do not wait. */
  uncertainWaitMs(key: ObjectKey, record: string | undefined): number;
  forget(key: ObjectKey): void;
}

export function createArrivals(clock: Clock): Arrivals {
  const known = new Map<ObjectKey, Map<string, Arrival>>();
  const uncertain = new Map<ObjectKey, { readonly record: string; readonly sinceMs: number }>();
  const forget = (key: ObjectKey): void => {
    known.delete(key);
    uncertain.delete(key);
  };
  return {
    of(key, record = '') {
      const records = known.get(key);
      const arrival = records?.get(record);
      if (records === undefined || arrival === undefined) return 'unknown';
      // Moves the record of the copy to the end, so that failed writes never evict it.
      records.delete(record);
      records.set(record, arrival);
      return arrival;
    },
    note(key, record, arrival) {
      uncertain.delete(key);
      if (record === undefined) return;
      const records = known.get(key) ?? new Map<string, Arrival>();
      known.set(key, records);
      records.delete(record);
      records.set(record, arrival);
      const [oldest] = records.keys();
      if (oldest !== undefined && records.size > RECORDS_MAX) records.delete(oldest);
    },
    uncertainWaitMs(key, record = '') {
      const now = clock.monotonicMs();
      const before = uncertain.get(key);
      const since = before?.record === record ? before : { record, sinceMs: now };
      uncertain.set(key, since);
      return Math.max(0, since.sinceMs + UNCERTAIN_MS - now);
    },
    forget,
  };
}
