/** Classifies failed requests to the host cluster, and converts them into errors of the store. */

import { messageOf } from '../../../../base/errors.ts';
import { TransportError } from '../../../../kube/types.ts';
import { StatusError } from '../../../../kube/status-error.ts';
import { orderedKey, StoreError, type StoreKey } from '../../store.ts';

export type FailureKind =
  /** The host has decided: not found, conflict, gone. */
  | 'decided'
  /** Nothing has happened, and a retry may succeed. */
  | 'retryable'
  /** A write may have happened, or may still happen. */
  | 'outcome-unknown'
  /** A retry does not help. */
  | 'permanent';

/** Codes of failures before any byte of the request was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof TransportError) return wasNeverSent(error) ? 'retryable' : 'outcome-unknown';
  if (!(error instanceof StatusError)) return 'permanent';
  const { code } = error;
  if (code === 404 || code === 409 || code === 410) return 'decided';
  if (code === 429) return 'retryable';
  // After a timeout in the server, etcd may have stored the write.
  return code >= 500 ? 'outcome-unknown' : 'permanent';
}

/** The error for a request that the host has rejected or denied; nothing has happened. */
export function rejectedByHost(error: unknown, namespace: string): unknown {
  if (!(error instanceof StatusError)) return error;
  const text = `${placeOf(namespace)} rejected a request: ${error.message}`;
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

/** The error for a request without a response in time. `isOutcomeUnknown`: a write may have happened nevertheless. */
export function unreachable(
  error: unknown,
  { namespace, isOutcomeUnknown }: { namespace: string; isOutcomeUnknown: boolean },
): StoreError | StatusError {
  const why = messageOf(error);
  if (!isOutcomeUnknown) {
    return unavailable(`${placeOf(namespace)} cannot be reached at the moment; retry later: ${why}`, error);
  }
  const message =
    `${placeOf(namespace)} did not confirm a write, which may or may not have happened. ` +
    `Read the object before you retry: ${why}`;
  return failure({ reason: 'Timeout', code: 504, message }, error);
}

/** The Secret of an object is damaged: the store cannot tell whether the object exists. */
export function unreadable(key: StoreKey, why: string): StoreError {
  return new StoreError('unavailable', `${key.resource} ${orderedKey(key)}: ${why}`);
}

/** An API error that `StoreError` has no code for. */
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
