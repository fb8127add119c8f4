/** Detects another writer that keeps overwriting our data. After five overwrites within a minute, or two that prove another syncer, an object
 * is contested: corrections of drift back off. Changes of the source object are still written immediately and do not increase the delay. The guard also ends any
 * update loop between the two clusters.
 */

import type { Clock } from '../../../base/clock.ts';
import { backoffDelayMs } from '../../../base/backoff.ts';
import type { ObjectKey } from '../../../kube/object.ts';

const WINDOW_MS = 60_000;
const OVERWRITES_MAX = 5;
/** Of overwrites that only another syncer of the same objects does. */
const ECHOES_MAX = 2;
const BASE_MS = 1000;
const MAX_MS = 5 * 60_000;
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
