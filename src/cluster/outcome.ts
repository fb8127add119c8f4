/** Puts a name to how a list or a watch ended. */

import { StatusError } from '../kube/status-error.ts';
import { AnswerTooLargeError } from './exchange.ts';
import type { Outcome } from './transitions.ts';
import { MalformedAnswerError, MalformedStreamError, TransportError } from './types.ts';

export interface AttemptEnd {
  readonly outcome: Outcome;
  /** Absent for an orderly end. */
  readonly error?: Error;
  readonly retryAfterMs?: number | undefined;
}

/** Nothing was heard for too long. */
export class SilenceError extends Error {
  override readonly name = 'SilenceError';
}

/** A bookmark is older than what the server had told before. */
export class RewoundError extends Error {
  override readonly name = 'RewoundError';
}

/** Our own code threw while it took news: the cause is the bug. */
export class SinkError extends Error {
  override readonly name = 'SinkError';
}

/** `hasStarted`: the server had accepted the watch before it failed. */
export function outcomeOf(thrown: unknown, hasStarted: boolean): AttemptEnd {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (error instanceof StatusError) {
    return { outcome: refusal(error), error, retryAfterMs: error.retryAfterMs };
  }
  return { outcome: failure(error, hasStarted), error };
}

function refusal(error: StatusError): Outcome {
  const { code } = error;
  if (code === 410 || error.reason === 'Expired') return 'expired';
  if (code === 401) return 'unauthorized';
  if (code === 403) return 'forbidden';
  if (code === 429 || error.retryAfterMs !== undefined) return 'throttled';
  return code >= 500 ? 'failed' : 'rejected';
}

function failure(error: Error, hasStarted: boolean): Outcome {
  if (error instanceof AnswerTooLargeError) return 'oversized';
  if (error instanceof MalformedAnswerError || error instanceof MalformedStreamError) return 'malformed';
  if (error instanceof TransportError) return hasStarted ? 'dropped' : 'unreachable';
  if (error instanceof SilenceError) return 'silent';
  if (error instanceof RewoundError) return 'rewound';
  return 'defect';
}
