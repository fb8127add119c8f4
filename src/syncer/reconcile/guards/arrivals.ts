/**
 * What this process knows of values on their way from the host to the virtual side (`translate/incoming.ts`): from its own writes, and from
 * having seen them arrive. It knows them by the text of the sync record, so another daemon's record makes it forget.
 */

import type { Clock } from '../../../base/clock.ts';
import type { ObjectKey } from '../../../kube/object.ts';
import type { Arrival } from '../../translate/merge/incoming.ts';

/** How long to wait for another daemon whose write may be in progress. */
const UNCERTAIN_MS = 2000;

/** The record of the copy, and those whose writes failed or had no answer: the copy may show one of them later. */
const RECORDS_MAX = 8;

export interface Arrivals {
  of(key: ObjectKey, record: string | undefined): Arrival;
  /** The virtual object was written, or read, with every incoming value of this record in it; or its write was rejected (`due`). */
  note(key: ObjectKey, record: string | undefined, arrival: Arrival): void;
  /** The record leaves it open whether a value arrived. How long to wait for another daemon's write; 0: no longer. */
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
      // What the copy shows outlives any number of writes that fail.
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
