/** Ends open watches when their credential ends: the rights of the key change, it expires, or the overlap of a rotated secret ends. */

import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { EXTRA } from '../identity.ts';
import type { IndexedKey, KeyChange } from './key-index.ts';

export interface WatchRevocationOptions {
  readonly clock: Clock;
  endWatches(isConcerned: (user: UserInfo) => boolean): void;
}

export class WatchRevocation implements Disposable {
  readonly #options: WatchRevocationOptions;
  /** By credential id: the end of the overlap of a rotated secret. */
  readonly #timers = new Map<string, Timer>();

  constructor(options: WatchRevocationOptions) {
    this.#options = options;
  }

  changed({ now, before }: KeyChange): void {
    for (const { id } of before?.credentials ?? []) this.#cancel(id);
    if (before && !hasSameRights(now, before)) this.expired(before);
    for (const { id, untilMs } of now?.credentials ?? []) {
      if (untilMs !== undefined && untilMs > this.#options.clock.now()) this.#endAt(id, untilMs, now?.uid);
    }
  }

  expired({ uid }: IndexedKey): void {
    this.#options.endWatches(({ extra }) => extra[EXTRA.keyUid]?.includes(uid) === true);
  }

  #endAt(id: string, untilMs: number, uid: string | undefined): void {
    const { clock } = this.#options;
    const timer = clock.schedule(untilMs - clock.now(), () => {
      this.#timers.delete(id);
      // A watch from before the rotation has no credential id.
      this.#options.endWatches(({ extra }) => {
        const ids = extra[EXTRA.credentialId];
        return ids === undefined ? extra[EXTRA.keyUid]?.[0] === uid : ids.includes(id);
      });
    });
    this.#timers.set(id, timer);
  }

  #cancel(id: string): void {
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}

function hasSameRights(now: IndexedKey | undefined, before: IndexedKey): boolean {
  return now !== undefined && !now.isDeleted && now.tokenGeneration === before.tokenGeneration;
}
