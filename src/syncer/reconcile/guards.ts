/**
 * What keeps a reconcile from working against others: another writer that keeps overwriting our data, another client that keeps deleting
 * copies, another syncer, another daemon. State of this process alone, on the injected clock.
 */

import type { Clock } from '../../base/clock.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import { type ObjectKey, type NamespacedName, isOlder } from '../../kube/object.ts';
import type { Arrival } from '../translate/last-synced.ts';
import type { Writer } from './writer.ts';

const WINDOW_MS = 60_000;
const OVERWRITES_MAX = 5;
/** Of overwrites that only another syncer of the same objects does. */
const ECHOES_MAX = 2;
const BASE_MS = 1000;
/** No back-off waits longer. */
const MAX_MS = 5 * 60_000;
/** Another client has given up after this long. */
const QUIET_MS = 10 * 60_000;

export interface ContentionGuard {
  /**
   * Another client changed our data on the target, and the source object did not change. `isEcho`: another syncer has changed the source
   * object to what the target has.
   */
  noteDrift(key: string, isEcho?: boolean): DriftVerdict;
  /** A change of the source object has been written, and corrected any drift with it. */
  noteChange(key: string): void;
  /** Milliseconds until the pending correction may be written; 0: none is pending. */
  waitMs(key: string): number;
  forget(key: string): void;
}

export interface DriftVerdict {
  /** Delay before the correction may be written, milliseconds; 0: now. */
  readonly waitMs: number;
  /** This overwrite starts or increases the delay, which is reported to the user. */
  readonly isReportable: boolean;
}

interface Contest {
  /** Times of overwrites within the last minute, until the object is contested. */
  overwritesMs: number[];
  /** Corrections that were overwritten again while contested; undefined: not contested. */
  level: number | undefined;
  /** When the pending correction is due; undefined: none is pending. */
  dueMs: number | undefined;
  /** The last write was a correction, so another overwrite proves that the other writer is still active. */
  wasCorrection: boolean;
  lastMs: number;
}

const WRITE_NOW: DriftVerdict = { waitMs: 0, isReportable: false };

export function createContentionGuard(clock: Clock): ContentionGuard {
  const contests = new Map<string, Contest>();
  const current = (key: string): Contest => {
    const found = contests.get(key);
    if (found !== undefined && clock.monotonicMs() - found.lastMs < QUIET_MS) return found;
    const contest = {
      overwritesMs: [],
      level: undefined,
      dueMs: undefined,
      wasCorrection: false,
      lastMs: clock.monotonicMs(),
    };
    contests.set(key, contest);
    return contest;
  };
  return {
    noteDrift: (key, isEcho = false) =>
      noteDrift(current(key), clock.monotonicMs(), isEcho ? ECHOES_MAX : OVERWRITES_MAX),
    noteChange(key) {
      const contest = contests.get(key);
      if (contest === undefined) return;
      contest.dueMs = undefined;
      contest.wasCorrection = false;
    },
    waitMs: (key) => Math.max(0, (contests.get(key)?.dueMs ?? 0) - clock.monotonicMs()),
    forget: (key) => void contests.delete(key),
  };
}

function noteDrift(contest: Contest, nowMs: number, overwritesMax: number): DriftVerdict {
  contest.lastMs = nowMs;
  if (contest.dueMs !== undefined) return correctWhenDue(contest, contest.dueMs, nowMs);
  if (contest.level === undefined) {
    contest.overwritesMs = contest.overwritesMs.filter((atMs) => nowMs - atMs < WINDOW_MS);
    if (contest.overwritesMs.push(nowMs) < overwritesMax) return WRITE_NOW;
    contest.level = 0;
  } else if (contest.wasCorrection) contest.level += 1;
  const waitMs = backoffDelayMs(contest.level, BASE_MS, MAX_MS);
  contest.dueMs = nowMs + waitMs;
  return { waitMs, isReportable: true };
}

/** Any number of overwrites before the correction count as one. */
function correctWhenDue(contest: Contest, dueMs: number, nowMs: number): DriftVerdict {
  if (nowMs < dueMs) return { waitMs: dueMs - nowMs, isReportable: false };
  contest.dueMs = undefined;
  contest.wasCorrection = true;
  return WRITE_NOW;
}

/** A change of one key is about to go to the other side. */
export interface KeyChange {
  /** Of the key among those of the object. */
  readonly id: string;
  readonly to: 'host' | 'virtual';
}

export interface KeyVerdict extends DriftVerdict {
  readonly id: string;
}

/**
 * Annotations and labels that two writers, one on each side, keep rewriting: changes of such a key go to and fro without end. After five times
 * within a minute, the key alone backs off, like the correction of a contested object, and the rest of the object is synced as before.
 */
export class KeyContests {
  readonly #guard: ContentionGuard;
  /** By object: for each key that has gone to the virtual side, the side that the last change went to. */
  readonly #directions = new Map<ObjectKey, Map<string, KeyChange['to']>>();

  constructor(clock: Clock) {
    this.#guard = createContentionGuard(clock);
  }

  /** The keys of this object that are left alone for now, with the remaining delay in milliseconds. */
  held(object: ObjectKey): ReadonlyMap<string, number> {
    const ids = [...(this.#directions.get(object)?.keys() ?? [])];
    const waits = ids.map((id): [string, number] => [id, this.#guard.waitMs(guardKey(object, id))]);
    return new Map(waits.filter(([, waitMs]) => waitMs > 0));
  }

  /** Call before the changes are written. Returns the keys that have to wait instead. */
  note(object: ObjectKey, changes: readonly KeyChange[]): readonly KeyVerdict[] {
    const directions = this.#directions.get(object) ?? new Map<string, KeyChange['to']>();
    const verdicts = changes.flatMap(({ id, to }): KeyVerdict[] => {
      const last = directions.get(id);
      if (last === undefined && to === 'host') return [];
      const verdict =
        last !== undefined && last !== to ? this.#guard.noteDrift(guardKey(object, id)) : WRITE_NOW;
      if (verdict.waitMs > 0) return [{ id, ...verdict }];
      directions.set(id, to);
      return [];
    });
    if (directions.size > 0) this.#directions.set(object, directions);
    return verdicts;
  }

  forget(object: ObjectKey): void {
    for (const id of this.#directions.get(object)?.keys() ?? []) this.#guard.forget(guardKey(object, id));
    this.#directions.delete(object);
  }
}

function guardKey(object: ObjectKey, id: string): string {
  return `${object} ${id}`;
}

const RECREATION_BASE_MS = 250;

export interface RecreationBackoff {
  /**
   * The host copy of this key was deleted, not by this process. `virtualUid`: the object of which it was the copy, where that is known
   * and the deletion may be a user's.
   */
  noteDeletion(key: string, virtualUid?: string): void;
  /** How long to wait before the copy may be created again, milliseconds; 0: now. */
  waitMs(key: string): number;
  /** Deletions in this streak; 0 if the last one was more than ten minutes ago. */
  deletions(key: string): number;
  /** The last deletion of this streak was that of the copy of the virtual object with this uid. */
  hasLostCopy(key: string, virtualUid: string): boolean;
  forget(key: string): void;
}

interface Streak {
  count: number;
  lastMs: number;
  virtualUid: string | undefined;
}

export interface RecreationDelays {
  /** Number of consecutive deletions without a delay. */
  readonly free: number;
  /** The first delay; doubles with every further deletion. */
  readonly baseMs: number;
}

export function createRecreationBackoff(
  clock: Clock,
  delays: RecreationDelays = { free: 1, baseMs: RECREATION_BASE_MS },
): RecreationBackoff {
  const streaks = new Map<string, Streak>();
  const current = (key: string): Streak | undefined => {
    const streak = streaks.get(key);
    if (streak === undefined || clock.monotonicMs() - streak.lastMs < QUIET_MS) return streak;
    streaks.delete(key);
    return undefined;
  };
  return {
    noteDeletion(key, virtualUid) {
      const count = (current(key)?.count ?? 0) + 1;
      streaks.set(key, { count, lastMs: clock.monotonicMs(), virtualUid });
    },
    waitMs(key) {
      const streak = current(key);
      if (streak === undefined || streak.count <= delays.free) return 0;
      const dueMs = streak.lastMs + backoffDelayMs(streak.count - delays.free - 1, delays.baseMs, MAX_MS);
      return Math.max(0, dueMs - clock.monotonicMs());
    },
    deletions: (key) => current(key)?.count ?? 0,
    hasLostCopy: (key, virtualUid) => virtualUid !== '' && current(key)?.virtualUid === virtualUid,
    forget: (key) => void streaks.delete(key),
  };
}

/** Deletions of copies that another syncer creates again at once. */
const FREE_DELETIONS = 2;
const FIGHT_MS = 60_000;

interface Fight {
  /** Deletions in a row, each of a copy that was created after the one before. */
  readonly count: number;
  readonly lastMs: number;
  /** What the host cache had reached at the last deletion: a copy with a later version was created, or written, after it. */
  readonly version: string;
  readonly isReported: boolean;
}

/**
 * Copies of another syncer that this program deletes: that of vCluster then deletes the virtual object, a controller creates a new one, with
 * another name, and everything begins again. After the second time within a minute, such a deletion waits for five minutes. By group, which
 * is the Service of a slice.
 */
export class FoughtDeletions {
  readonly #clock: Clock;
  readonly #fights = new Map<string, Fight>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long to wait before the copy with this version may be deleted, milliseconds; 0: it may be deleted now. */
  verdict(
    group: string,
    version: string | undefined,
  ): { readonly waitMs: number; readonly isReportable: boolean } {
    const fight = this.#current(group);
    if (fight === undefined || fight.count < FREE_DELETIONS || !isOlder(fight.version, version))
      return { waitMs: 0, isReportable: false };
    const waitMs = Math.max(0, fight.lastMs + MAX_MS - this.#clock.monotonicMs());
    return { waitMs, isReportable: waitMs > 0 && !fight.isReported };
  }

  /** The current delay has been reported. */
  noteReported(group: string): void {
    const fight = this.#current(group);
    if (fight !== undefined) this.#fights.set(group, { ...fight, isReported: true });
  }

  /** A copy with this version is deleted; `reached`: the version of the host cache. */
  note(group: string, version: string | undefined, reached: string): void {
    for (const known of this.#fights.keys()) this.#current(known);
    const fight = this.#current(group);
    const isAgain = fight !== undefined && isOlder(fight.version, version);
    const count = (fight?.count ?? 1) + (isAgain ? 1 : 0);
    const lastMs = this.#clock.monotonicMs();
    this.#fights.set(group, { count, lastMs, version: reached, isReported: false });
  }

  #current(group: string): Fight | undefined {
    const fight = this.#fights.get(group);
    if (fight === undefined) return undefined;
    const keptMs = fight.count < FREE_DELETIONS ? FIGHT_MS : QUIET_MS;
    if (this.#clock.monotonicMs() - fight.lastMs < keptMs) return fight;
    this.#fights.delete(group);
    return undefined;
  }
}

/** Controllers have reacted to a deletion within this time. */
const REACTION_MS = 10_000;

/** Host names whose Service this process has deleted. What controllers delete because of that was not deleted by a user. */
export class ServiceDeletions {
  readonly #clock: Clock;
  readonly #deletedMs = new Map<ObjectKey, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(key: ObjectKey): void {
    for (const known of this.#deletedMs.keys()) if (!this.has(known)) this.#deletedMs.delete(known);
    this.#deletedMs.set(key, this.#clock.monotonicMs());
  }

  has(key: ObjectKey): boolean {
    const deletedMs = this.#deletedMs.get(key);
    return deletedMs !== undefined && this.#clock.monotonicMs() - deletedMs < REACTION_MS;
  }
}

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

/** After a lost response the event may take as long as a silent watch. */
const RESPONSE_MAX_MS = 10 * 60_000;

export class OwnDeletions {
  readonly #clock: Clock;
  /** When each was sent, by the uid of the object; oldest first. */
  readonly #sentMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while the deletion of this object is under way, or its response was lost. */
  has(uid: string): boolean {
    this.#forgetOld();
    return this.#sentMs.has(uid);
  }

  /** An API server deletes this object together with one that this process is about to delete. */
  note(uid: string): void {
    this.#forgetOld();
    this.#sentMs.set(uid, this.#clock.monotonicMs());
  }

  /** The same writer; its deletions are noted here. `deleting` is called before each. */
  noting(writer: Writer, deleting: (key: NamespacedName) => void): Writer {
    return {
      ...writer,
      delete: async (key, uid, reason) => {
        deleting(key);
        this.note(uid);
        const outcome = await writer.delete(key, uid, reason);
        // From here on the cache ignores the event.
        this.#sentMs.delete(uid);
        return outcome;
      },
    };
  }

  #forgetOld(): void {
    const limitMs = this.#clock.monotonicMs() - RESPONSE_MAX_MS;
    for (const [uid, sentMs] of this.#sentMs) {
      if (sentMs > limitMs) return;
      this.#sentMs.delete(uid);
    }
  }
}
