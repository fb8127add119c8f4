/** What a failed request to the host cluster means for the store: wait, look, or give up. */

import { TransportError } from '../../../../kube/types.ts';
import { StatusError } from '../../../../kube/status-error.ts';
import { orderedKey, StoreError, type StoreKey } from '../../store.ts';

export type Verdict =
  /** The host has decided: not found, conflict, gone. */
  | 'answered'
  /** Nothing has happened; it may go better in a moment. */
  | 'again'
  /** A write may have happened, or may still happen. */
  | 'doubtful'
  /** Trying again does not help. */
  | 'refused';

/** Codes of failures before a byte of the request was on its way. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export function verdictOf(error: unknown): Verdict {
  if (error instanceof TransportError) return wasNeverSent(error) ? 'again' : 'doubtful';
  if (!(error instanceof StatusError)) return 'refused';
  const { code } = error;
  if (code === 404 || code === 409 || code === 410) return 'answered';
  if (code === 429) return 'again';
  // A timeout inside the server says nothing about what etcd did.
  return code >= 500 ? 'doubtful' : 'refused';
}

/** The host says no to the request itself; nothing has happened. */
export function refusedByHost(error: unknown, namespace: string): unknown {
  if (!(error instanceof StatusError)) return error;
  const text = `${placeOf(namespace)} was refused: ${error.message}`;
  switch (error.code) {
    case 401:
    case 403:
      return unavailable(`${text}. Grant the store its Role in that namespace`, error);
    case 404:
      return unavailable(`${text}. Create the namespace`, error);
    default:
      return failure({ reason: 'InternalError', code: 500, message: text }, error);
  }
}

/** The host did not answer in time. `isOutcomeUnknown`: a write may have happened all the same. */
export function unanswered(
  error: unknown,
  { namespace, isOutcomeUnknown }: { namespace: string; isOutcomeUnknown: boolean },
): StoreError | StatusError {
  const why = error instanceof Error ? error.message : String(error);
  if (!isOutcomeUnknown) {
    return unavailable(`${placeOf(namespace)} cannot be reached at the moment, try again: ${why}`, error);
  }
  const message =
    `${placeOf(namespace)} did not confirm a write: it may have happened or not. ` +
    `Read the object before you try again: ${why}`;
  return failure({ reason: 'Timeout', code: 504, message }, error);
}

/** What is in the place of an object is none: nobody may say that it is not there, nor that it is. */
export function unreadable(key: StoreKey, why: string): StoreError {
  return new StoreError('unavailable', `${key.resource} ${orderedKey(key)}: ${why}`);
}

/** An error of the API, for what `StoreError` has no code. */
export function failure(
  { reason, code, message }: { reason: string; code: number; message: string },
  cause?: unknown,
): StatusError {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' } as const;
  return new StatusError({ ...status, reason, code, message }, { cause });
}

function unavailable(message: string, cause: unknown): StoreError {
  return new StoreError('unavailable', message, undefined, { cause });
}

function placeOf(namespace: string): string {
  return `the store, Secrets in namespace ${JSON.stringify(namespace)} of the host cluster,`;
}

function wasNeverSent(error: Error): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    if (first instanceof Error && 'code' in first && NEVER_SENT.has(String(first.code))) return true;
  }
  return false;
}
