/** How a list or a watch ended, as an outcome of the state machine. */

import { StatusError } from '../status-error.ts';
import { ResponseTooLargeError } from '../client/exchange.ts';
import type { Outcome } from './transitions.ts';
import { MalformedResponseError, MalformedStreamError, TransportError } from '../types.ts';

export interface AttemptEnd {
  readonly outcome: Outcome;
  /** Absent for an orderly end. */
  readonly error?: Error;
}

/** Nothing was received for longer than the silence limit. */
export class SilenceError extends Error {
  override readonly name = 'SilenceError';
}

/** The server is at an older version than it was: it was restored from a backup. */
export class RewoundError extends Error {
  override readonly name = 'RewoundError';
}

/** The sink threw while it stored objects; `cause` is a bug of this program. */
export class SinkError extends Error {
  override readonly name = 'SinkError';
}

/** `hasStarted`: the server had accepted the watch before it failed. */
export function attemptEndOf(thrown: unknown, hasStarted: boolean): AttemptEnd {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (error instanceof StatusError) {
    return { outcome: refusal(error), error };
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
  if (error instanceof ResponseTooLargeError) return 'oversized';
  if (error instanceof MalformedResponseError || error instanceof MalformedStreamError) return 'malformed';
  if (error instanceof TransportError) return hasStarted ? 'dropped' : 'unreachable';
  if (error instanceof SilenceError) return 'silent';
  if (error instanceof RewoundError) return 'rewound';
  return 'defect';
}
