/**
 * Notices when another writer keeps overwriting what this program writes: five times within a minute, and the object is left alone
 * for a while. The same guard stops any ping-pong that nobody foresaw.
 */

import type { Clock } from '../lib/clock.ts';

const WINDOW_MS = 60_000;
const OVERWRITES_MAX = 5;
const RETRY_MS = 5 * 60_000;

export interface ContentionGuard {
  /** Our data on the host was changed by somebody although the virtual object did not change. True: it has become contested now. */
  noteOverwrite(key: string): boolean;
  /** How long to leave the object alone, milliseconds; 0: it is not contested. */
  waitMs(key: string): number;
  forget(key: string): void;
}

interface Record {
  readonly overwritesMs: number[];
  contestedUntilMs: number;
}

export function createContentionGuard(clock: Clock): ContentionGuard {
  const records = new Map<string, Record>();
  return {
    noteOverwrite(key) {
      const now = clock.monotonicMs();
      const record = records.get(key) ?? { overwritesMs: [], contestedUntilMs: 0 };
      const recent = record.overwritesMs.filter((atMs) => now - atMs < WINDOW_MS);
      const isContested = recent.push(now) >= OVERWRITES_MAX;
      records.set(key, {
        overwritesMs: isContested ? [] : recent,
        contestedUntilMs: isContested ? now + RETRY_MS : record.contestedUntilMs,
      });
      return isContested;
    },
    waitMs: (key) => Math.max(0, (records.get(key)?.contestedUntilMs ?? 0) - clock.monotonicMs()),
    forget: (key) => void records.delete(key),
  };
}
