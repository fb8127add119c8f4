/**
 * When signing keys come and go; pure. Every key is published for a while before it signs, so that whoever keeps a copy of the key set
 * knows it by then, and stays published until the last token that it signed is over:
 *
 *     key 1   signs ├──────────── ROTATION ────────────┤ verifies until its last token is over
 *     key 2                   published ├─ AHEAD ──────┤ signs …
 *
 * A server that slept through the change goes on with the old key until the new one has been published for PUBLISH_AHEAD_MIN.
 */

import type { SigningKey, SigningKeySchedule } from './signing-key.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How long a key signs. */
export const ROTATION_MS = 30 * DAY_MS;
/** How long verifiers may keep a copy of the key set, as its answer tells them. */
export const KEY_SET_AGE_MS = HOUR_MS;
/** How long a key is published before it signs. */
export const PUBLISH_AHEAD_MS = DAY_MS;
/** The least of it, after a sleep: the age of a copy, and as much again for clocks and replicas that lag. */
export const PUBLISH_AHEAD_MIN_MS = 2 * KEY_SET_AGE_MS;
/** How much longer than its tokens a key stays, for the same reason. */
export const KEEP_AFTER_MS = HOUR_MS;

export interface RotationPlan {
  readonly make: SigningKeySchedule | undefined;
  /** Keys that must learn of longer tokens before they sign one. */
  readonly raise: readonly SigningKey[];
  /** Keys of which no token is left. */
  readonly remove: readonly SigningKey[];
}

/** `keys` in the order of their sequence. */
export function planRotation(
  keys: readonly SigningKey[],
  nowMs: number,
  tokenSecondsMax: number,
): RotationPlan {
  const current = signingKeyAt(keys, nowMs);
  const signing = current === undefined ? 0 : keys.indexOf(current);
  return {
    make: nextSchedule(keys.at(-1), nowMs, tokenSecondsMax),
    raise: keys.filter((key, index) => index >= signing && key.tokenSecondsMax < tokenSecondsMax),
    remove: keys.filter((key, index) => {
      const successor = keys[index + 1];
      if (index >= signing || successor === undefined) return false;
      return nowMs > successor.signsFromMs + key.tokenSecondsMax * 1000 + KEEP_AFTER_MS;
    }),
  };
}

/** The newest key whose time has come; before the time of the first, the first. */
export function signingKeyAt(keys: readonly SigningKey[], nowMs: number): SigningKey | undefined {
  return keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys[0];
}

function nextSchedule(
  newest: SigningKey | undefined,
  nowMs: number,
  tokenSecondsMax: number,
): SigningKeySchedule | undefined {
  // The very first: there is no copy of a key set without it.
  if (newest === undefined) return { sequence: 1, signsFromMs: nowMs, tokenSecondsMax };
  const dueMs = newest.signsFromMs + ROTATION_MS;
  if (nowMs < dueMs - PUBLISH_AHEAD_MS) return undefined;
  const signsFromMs = Math.max(dueMs, nowMs + PUBLISH_AHEAD_MIN_MS);
  return { sequence: newest.sequence + 1, signsFromMs, tokenSecondsMax };
}
