/** Back-off for host copies that another client deletes. The host's endpoints controller deletes every Endpoints without a Service, so
 * recreating the copy immediately each time would cause an endless loop.
 */

import type { Clock } from '../../../base/clock.ts';
import type { ObjectKey } from '../../../kube/object.ts';
import { backoffDelayMs } from '../../../base/backoff.ts';
import { isOlder } from '../../../kube/informer/resource-version.ts';

const BASE_MS = 250;
const MAX_MS = 5 * 60_000;
const QUIET_MS = 10 * 60_000;

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
  delays: RecreationDelays = { free: 1, baseMs: BASE_MS },
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
    if (waitMs > 0) this.#fights.set(group, { ...fight, isReported: true });
    return { waitMs, isReportable: waitMs > 0 && !fight.isReported };
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
