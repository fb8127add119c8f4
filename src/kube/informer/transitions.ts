/** The state machine of a list-watch as data: the transition for each outcome of a list or a watch. See README.md. */

import { StatusError } from '../status-error.ts';
import { ResponseTooLargeError } from '../client/exchange.ts';
import { MalformedResponseError, MalformedStreamError, TransportError } from '../types.ts';

export type Phase = 'listing' | 'watching';

/** How a list or a watch ended. An outcome without a comment follows from a status or an error: see {@link attemptEndOf}. */
export type Outcome =
  | 'complete'
  /** `complete`, and the server has an older state than was known: it was restored from a backup. */
  | 'restored'
  /** The server ended the watch as announced. */
  | 'ended'
  /** The server ended the watch in less than a second: retrying immediately would be a loop. */
  | 'brief'
  | 'dropped'
  | 'silent'
  | 'malformed'
  | 'expired'
  | 'rewound'
  /** The server was away so long that a restored one may have passed the last known version. */
  | 'interrupted'
  | 'oversized'
  | 'unreachable'
  | 'unauthorized'
  | 'forbidden'
  | 'throttled'
  | 'rejected'
  | 'failed'
  | 'defect';

export interface Transition {
  readonly next: Phase;
  /** Full jitter on an exponential delay, and never less than the server's `Retry-After`. */
  readonly wait: 'none' | 'back-off';
}

const RELIST: Transition = { next: 'listing', wait: 'back-off' };
const WATCH_AGAIN: Transition = { next: 'watching', wait: 'back-off' };

/** INVARIANT: every LIST but the first one is preceded by a wait; of failures, only `interrupted` has no wait, because the one before it had. */
export const TRANSITIONS: Readonly<Record<Phase, Readonly<Partial<Record<Outcome, Transition>>>>> = {
  listing: {
    complete: { next: 'watching', wait: 'none' },
    restored: { next: 'watching', wait: 'none' },
    malformed: RELIST,
    expired: RELIST,
    oversized: RELIST,
    unreachable: RELIST,
    unauthorized: RELIST,
    forbidden: RELIST,
    throttled: RELIST,
    rejected: RELIST,
    failed: RELIST,
    defect: RELIST,
  },
  watching: {
    ended: { next: 'watching', wait: 'none' },
    brief: WATCH_AGAIN,
    dropped: WATCH_AGAIN,
    silent: RELIST,
    malformed: RELIST,
    expired: RELIST,
    rewound: RELIST,
    interrupted: { next: 'listing', wait: 'none' },
    unreachable: RELIST,
    unauthorized: WATCH_AGAIN,
    forbidden: WATCH_AGAIN,
    throttled: WATCH_AGAIN,
    rejected: RELIST,
    failed: WATCH_AGAIN,
    defect: RELIST,
  },
};

/** Every (phase, outcome) that exists, for metrics that start at zero and for tests. */
export function allTransitions(): readonly (readonly [Phase, Outcome, Transition])[] {
  const rows: [Phase, Outcome, Transition][] = [];
  for (const phase of ['listing', 'watching'] as const) {
    for (const [outcome, transition] of Object.entries(TRANSITIONS[phase])) {
      rows.push([phase, outcome as Outcome, transition]); // keys of a Record<Outcome, …>
    }
  }
  return rows;
}

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
