/** How long a child may be silent while it evaluates a batch, before the watchdog kills it. */

import type { EncodedBatch } from './batch-text.ts';
import type { SetupMessage } from '../process/protocol.ts';
import type { Route } from '../quarantine/quarantine.ts';

/**
 * A multiple of the time limit of one match, and a minimum. The isolate's own timeout stops most matches, but not within a builtin, such as
 * one that copies a long text.
 */
const CAREFUL_SILENCE = 4;
const CAREFUL_SILENCE_MIN_MS = 400;
/** Shorter in the throttled process, whose time is scarce. */
const THROTTLED_SILENCE = 1.5;
/** Shorter for a batch of many, which is sent again with one call per match. */
const BATCH_SILENCE = 1;
const CHARS_PER_MS = 10_000;

export interface Silence {
  readonly silenceMs: number;
  /** Applies only before the first response: decoding a long text and compiling programs does not count against an expression. */
  readonly allowanceMs: number;
}

export function silenceOf(
  { batch, text }: EncodedBatch,
  route: Route,
  { expressionTimeoutMs, settings }: SetupMessage,
): Silence {
  const carefulMs =
    route === 'throttled'
      ? expressionTimeoutMs * THROTTLED_SILENCE
      : Math.max(expressionTimeoutMs * CAREFUL_SILENCE, CAREFUL_SILENCE_MIN_MS);
  const silenceMs = batch.isCareful
    ? carefulMs + expressionTimeoutMs * batch.starvations
    : expressionTimeoutMs * BATCH_SILENCE;
  return {
    silenceMs: silenceMs + settings.shareMs,
    allowanceMs: text.length / CHARS_PER_MS + batch.entries.length,
  };
}
