/**
 * The schedule of signing keys; pure. Every key is published before it signs, so that verifiers with a cached key set know it by then, and
 * stays published until the last token that it signed has expired:
 *
 *     key 1   signs ├──────────── ROTATION ────────────┤ verifies until its last token has expired
 *     key 2                   published ├─ AHEAD ──────┤ signs …
 *
 * A server that was down at the time of the change keeps the old key until the new one has been published for PUBLISH_AHEAD_MIN.
 *
 * A key that begins more than AHEAD in the future was generated with a wrong clock, or this clock is wrong. It does not count for the
 * schedule, so that it postpones no rotation, but is not removed: it may be the one with which other replicas sign.
 */

import type { SigningKey, SigningKeySchedule } from './signing-key.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Signing period of a key. */
export const ROTATION_MS = 30 * DAY_MS;
/** How long verifiers may cache the key set, as its response says. */
export const KEY_SET_AGE_MS = HOUR_MS;
/** Time between publication and first signature. */
export const PUBLISH_AHEAD_MS = DAY_MS;
/** Its minimum after a downtime: the maximum age of a cached key set, doubled for clock skew and replicas that lag. */
export const PUBLISH_AHEAD_MIN_MS = 2 * KEY_SET_AGE_MS;
/** Time that a key stays published after its tokens, for the same reason. */
export const KEEP_AFTER_MS = HOUR_MS;

export interface RotationPlan {
  readonly generate: SigningKeySchedule | undefined;
  /** Keys whose recorded maximum token lifetime must be raised before they sign a longer token. */
  readonly extend: readonly SigningKey[];
  /** Keys without unexpired tokens. */
  readonly remove: readonly SigningKey[];
}

/** `keys` sorted by sequence. */
export function planRotation(
  keys: readonly SigningKey[],
  nowMs: number,
  tokenSecondsMax: number,
): RotationPlan {
  const current = signingKeyAt(keys, nowMs);
  const signing = current === undefined ? 0 : keys.indexOf(current);
  return {
    generate: nextSchedule(keys, nowMs, tokenSecondsMax),
    extend: keys.filter((key, index) => index >= signing && key.tokenSecondsMax < tokenSecondsMax),
    remove: keys.filter((key, index) => {
      if (index >= signing) return false;
      return nowMs > signsUntilMs(key, keys.slice(index + 1)) + key.tokenSecondsMax * 1000 + KEEP_AFTER_MS;
    }),
  };
}

/** A later key that begins before this one comes from another clock, and says nothing about the end of this one. Infinity: unknown. */
function signsUntilMs({ signsFromMs }: SigningKey, later: readonly SigningKey[]): number {
  return Math.min(...later.map((key) => key.signsFromMs).filter((beginMs) => beginMs >= signsFromMs));
}

/** The newest key that may sign; the first one if none may. */
export function signingKeyAt(keys: readonly SigningKey[], nowMs: number): SigningKey | undefined {
  return keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys[0];
}

/** Whether the key counts for the schedule. The clocks of replicas may differ by an hour. */
export function isInSchedule({ signsFromMs }: SigningKey, nowMs: number): boolean {
  return signsFromMs <= nowMs + PUBLISH_AHEAD_MS + HOUR_MS;
}

function nextSchedule(
  keys: readonly SigningKey[],
  nowMs: number,
  tokenSecondsMax: number,
): SigningKeySchedule | undefined {
  const last = keys.at(-1);
  // No verifier has cached a key set without the first key.
  if (last === undefined) return { sequence: 1, signsFromMs: nowMs, tokenSecondsMax };
  const newest = keys.findLast((key) => isInSchedule(key, nowMs));
  const dueMs = newest === undefined ? nowMs : newest.signsFromMs + ROTATION_MS;
  if (nowMs < dueMs - PUBLISH_AHEAD_MS) return undefined;
  const signsFromMs = Math.max(dueMs, nowMs + PUBLISH_AHEAD_MIN_MS);
  return { sequence: last.sequence + 1, signsFromMs, tokenSecondsMax };
}
