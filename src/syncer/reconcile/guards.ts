/** Back-offs from others: a writer that keeps overwriting our data, a client that keeps deleting copies, another syncer, another daemon. What belongs
 * to one object is a value in its {@link ObjectState}, which these functions turn into the next one. */

import type { Clock } from '../../base/clock.ts';
import { Expiring } from '../../base/expiring.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import { type NamespacedName, isOlder } from '../../kube/object.ts';
import type { Arrival } from '../translate/last-synced.ts';
import type { KeyFlow, KeyId } from '../translate/merge-metadata.ts';
import type { Writer } from './writer.ts';

/** Between the attempts to delete a copy while the virtual cluster may be another one. */
export const OBJECTION_MS = 30_000;
const WINDOW_MS = 60_000;
/** Overwrites by other clients within the window, from which the target is contested. */
export const OVERWRITES_MAX = 5;
/** The same where the other writer is certainly a program: another syncer of the same objects, or the host's admission. */
export const AUTOMATIC_OVERWRITES_MAX = 2;
const BASE_MS = 1000;
const MAX_MS = 5 * 60_000;
/** Another client has given up after this long. */
const QUIET_MS = 10 * 60_000;

/** Another writer keeps overwriting our data on a target whose source does not change. */
export interface Contest {
  /** Times of overwrites within the last minute, until the target is contested. */
  readonly overwritesMs: readonly number[];
  /** Corrections that were overwritten again while contested; undefined: not contested. */
  readonly level: number | undefined;
  /** When the pending correction is due; undefined: none is pending. */
  readonly dueMs: number | undefined;
  /** The last write was a correction, so another overwrite proves that the other writer is still active. */
  readonly wasCorrection: boolean;
  readonly lastMs: number;
}

export interface DriftVerdict {
  /** Delay before the correction may be written, milliseconds; 0: now. */
  readonly waitMs: number;
  /** This overwrite starts or increases the delay, which is reported to the user. */
  readonly isReportable: boolean;
}

interface Drift {
  readonly contest: Contest;
  readonly verdict: DriftVerdict;
}

const WRITE_NOW: DriftVerdict = { waitMs: 0, isReportable: false };

/** Others changed our data on the target, and the source object did not change. `max`: the target is contested from so many times within a minute. */
export function noteDrift(known: Contest | undefined, nowMs: number, max = OVERWRITES_MAX): Drift {
  const contest = { ...(isCurrent(known, nowMs) ? known : UNCONTESTED), lastMs: nowMs };
  if (contest.dueMs !== undefined) return correctWhenDue(contest, contest.dueMs, nowMs);
  const overwritesMs = [...contest.overwritesMs.filter((atMs) => nowMs - atMs < WINDOW_MS), nowMs];
  const isContested = contest.level !== undefined;
  if (!isContested && overwritesMs.length < max)
    return { contest: { ...contest, overwritesMs }, verdict: WRITE_NOW };
  const level = (contest.level ?? 0) + (isContested && contest.wasCorrection ? 1 : 0);
  const waitMs = backoffDelayMs(level, BASE_MS, MAX_MS);
  return {
    contest: { ...contest, overwritesMs: [], level, dueMs: nowMs + waitMs },
    verdict: { waitMs, isReportable: true },
  };
}

const UNCONTESTED: Omit<Contest, 'lastMs'> = {
  overwritesMs: [],
  level: undefined,
  dueMs: undefined,
  wasCorrection: false,
};

/** Any number of overwrites before the correction count as one. */
function correctWhenDue(contest: Contest, dueMs: number, nowMs: number): Drift {
  if (nowMs < dueMs) return { contest, verdict: { waitMs: dueMs - nowMs, isReportable: false } };
  return { contest: { ...contest, dueMs: undefined, wasCorrection: true }, verdict: WRITE_NOW };
}

/** A change of the source object has been written, and corrected any drift with it. */
export function noteChange(contest: Contest | undefined): Contest | undefined {
  return contest && { ...contest, dueMs: undefined, wasCorrection: false };
}

export function correctionWaitMs(contest: Contest | undefined, nowMs: number): number {
  return Math.max(0, (contest?.dueMs ?? 0) - nowMs);
}

function isCurrent<T extends { readonly lastMs: number }>(state: T | undefined, nowMs: number): state is T {
  return state !== undefined && nowMs - state.lastMs < QUIET_MS;
}

export interface KeyVerdict extends DriftVerdict {
  readonly id: KeyId;
}

/** Keys that one writer on each side keeps rewriting, each of which backs off alone, with the side that the last change went to. */
export type KeyContests = ReadonlyMap<
  KeyId,
  { readonly to: KeyFlow['to']; readonly contest: Contest | undefined }
>;

/** Others choose the names of the keys. Those that were changed last are kept. */
const KEY_CONTESTS_MAX = 256;

export function heldKeys(contests: KeyContests, nowMs: number): ReadonlyMap<KeyId, number> {
  const waits = [...contests].map(([id, { contest }]): [string, number] => [
    id,
    correctionWaitMs(contest, nowMs),
  ]);
  return new Map(waits.filter(([, waitMs]) => waitMs > 0));
}

/** Call before the changes are written. `verdicts`: the keys that have to wait instead. */
export function noteKeyChanges(
  before: KeyContests,
  changes: readonly KeyFlow[],
  nowMs: number,
): { readonly contests: KeyContests; readonly verdicts: readonly KeyVerdict[] } {
  if (changes.length === 0) return { contests: before, verdicts: [] };
  const contests = new Map(before);
  const verdicts: KeyVerdict[] = [];
  for (const { id, to } of changes) {
    const last = contests.get(id);
    if (last === undefined && to === 'host') continue;
    const isReversed = last !== undefined && last.to !== to;
    const drift = isReversed ? noteDrift(last.contest, nowMs) : undefined;
    const contest = drift?.contest ?? last?.contest;
    const waits = drift !== undefined && drift.verdict.waitMs > 0;
    if (waits) verdicts.push({ id, ...drift.verdict });
    contests.delete(id);
    contests.set(id, { to: waits && last !== undefined ? last.to : to, contest });
  }
  const surplus = contests.size - KEY_CONTESTS_MAX;
  for (const id of [...contests.keys()].slice(0, Math.max(0, surplus))) contests.delete(id);
  return { contests, verdicts };
}

const RECREATION_BASE_MS = 250;

/** Deletions of the copy of one object, none of them by this process. */
export interface Streak {
  readonly count: number;
  readonly lastMs: number;
  /** The object of which the last one was the copy; undefined: that is not known, or the deletion is no user's. */
  readonly virtualUid: string | undefined;
  /** The host Service that the copy had then. */
  readonly serviceUid?: string | undefined;
  /** Those of the copy's owners, on the host. */
  readonly ownerUids?: readonly string[];
}

export interface RecreationDelays {
  /** Number of consecutive deletions without a delay. */
  readonly free: number;
  readonly baseMs: number;
}

const RECREATION: RecreationDelays = { free: 1, baseMs: RECREATION_BASE_MS };

export function noteDeletion(
  streak: Streak | undefined,
  nowMs: number,
  meant: Pick<Streak, 'virtualUid' | 'serviceUid' | 'ownerUids'> = { virtualUid: undefined },
): Streak {
  return { count: deletionsOf(streak, nowMs) + 1, lastMs: nowMs, ...meant };
}

export function deletionsOf(streak: Streak | undefined, nowMs: number): number {
  return isCurrent(streak, nowMs) ? streak.count : 0;
}

export function recreationWaitMs(
  streak: Streak | undefined,
  nowMs: number,
  { free, baseMs }: RecreationDelays = RECREATION,
): number {
  if (!isCurrent(streak, nowMs) || streak.count <= free) return 0;
  const dueMs = streak.lastMs + backoffDelayMs(streak.count - free - 1, baseMs, MAX_MS);
  return Math.max(0, dueMs - nowMs);
}

export function hasLostCopy(streak: Streak | undefined, nowMs: number, virtualUid: string): boolean {
  return virtualUid !== '' && isCurrent(streak, nowMs) && streak.virtualUid === virtualUid;
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
  isReported: boolean;
}

/** Deletions of another syncer's copies: vCluster then deletes the virtual object, a controller creates one with another name, and all begins again.
 * After the second time within a minute, such a deletion waits for five minutes. By group, which is the Service of a slice. */
export class FoughtDeletions {
  readonly #clock: Clock;
  readonly #fights: Expiring<string, Fight>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#fights = new Expiring(clock, ({ count }) => (count < FREE_DELETIONS ? FIGHT_MS : QUIET_MS));
  }

  verdict(
    group: string,
    version: string | undefined,
  ): { readonly waitMs: number; readonly isReportable: boolean } {
    const fight = this.#fights.get(group);
    if (fight === undefined || fight.count < FREE_DELETIONS || !isOlder(fight.version, version))
      return { waitMs: 0, isReportable: false };
    const waitMs = Math.max(0, fight.lastMs + MAX_MS - this.#clock.monotonicMs());
    return { waitMs, isReportable: waitMs > 0 && !fight.isReported };
  }

  noteReported(group: string): void {
    const fight = this.#fights.get(group);
    if (fight !== undefined) fight.isReported = true;
  }

  note(group: string, version: string | undefined, reached: string): void {
    const fight = this.#fights.get(group);
    const isAgain = fight !== undefined && isOlder(fight.version, version);
    const count = (fight?.count ?? 1) + (isAgain ? 1 : 0);
    const lastMs = this.#clock.monotonicMs();
    this.#fights.set(group, { count, lastMs, version: reached, isReported: false });
  }
}

/** How long to wait for a write of another daemon that may be in progress. */
const UNCERTAIN_MS = 2000;

/** The current record, and records whose write failed or got no response: the copy may have one of them later. */
const RECORDS_MAX = 8;

/** What is known of the values of one object that records list as on their way to the virtual side. */
export class Arrivals {
  readonly records = new Map<string, Arrival>();
  uncertain: { readonly record: string; readonly sinceMs: number } | undefined;

  of(record = ''): Arrival {
    const arrival = this.records.get(record);
    if (arrival === undefined) return 'unknown';
    // Moves the record of the copy to the end, so that failed writes never evict it.
    this.records.delete(record);
    this.records.set(record, arrival);
    return arrival;
  }

  /** Call when the virtual object was written or read with all incoming values of this record, or when its write was rejected (`due`). */
  note(record: string | undefined, arrival: Arrival): void {
    this.uncertain = undefined;
    if (record === undefined) return;
    const { records } = this;
    records.delete(record);
    records.set(record, arrival);
    const [oldest] = records.keys();
    if (oldest !== undefined && records.size > RECORDS_MAX) records.delete(oldest);
  }

  /** The record does not tell whether a value arrived. Returns how long to wait for another daemon's write; 0: do not wait. */
  uncertainWaitMs(nowMs: number, record = ''): number {
    const before = this.uncertain;
    const since = before?.record === record ? before : { record, sinceMs: nowMs };
    this.uncertain = since;
    return Math.max(0, since.sinceMs + UNCERTAIN_MS - nowMs);
  }
}

/** After a lost response the event may take as long as a silent watch. */
const RESPONSE_MAX_MS = 10 * 60_000;

/** Uids of objects that this process is deleting, or that an API server deletes together with one of them. */
export type OwnDeletions = Expiring<string, true>;

export function ownDeletions(clock: Clock): OwnDeletions {
  return new Expiring(clock, () => RESPONSE_MAX_MS);
}

export function notingDeletions(
  writer: Writer,
  noted: OwnDeletions,
  deleting: (key: NamespacedName) => void,
): Writer {
  return {
    ...writer,
    delete: async (key, uid, reason) => {
      deleting(key);
      noted.set(uid, true);
      const outcome = await writer.delete(key, uid, reason);
      // From here on the cache ignores the event.
      noted.delete(uid);
      return outcome;
    },
  };
}
