/** What a failed request to the host cluster means for the store: wait, look, or give up. */

import { TransportError } from '../cluster/types.ts';
import { StatusError } from '../kube/status-error.ts';

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

/** The host says no to the request itself: for callers of the store that is a failure of the server. */
export function refusedByHost(error: unknown, namespace: string): unknown {
  if (!(error instanceof StatusError)) return error;
  const isAccess = error.code === 401 || error.code === 403;
  const advice = isAccess ? '. Grant the store its Role in that namespace' : '';
  return new StatusError(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      ...(isAccess || error.code === 404
        ? { reason: 'ServiceUnavailable', code: 503 }
        : { reason: 'InternalError', code: 500 }),
      message: `the store, Secrets in namespace ${JSON.stringify(namespace)} of the host cluster, was refused: ${error.message}${advice}`,
    },
    { cause: error },
  );
}

/** The host did not answer in time. `isDoubtful`: a write may have happened all the same. */
export function unavailable(
  error: unknown,
  { namespace, isDoubtful }: { namespace: string; isDoubtful: boolean },
): StatusError {
  const cause = error instanceof Error ? error.message : String(error);
  const where = `the store, Secrets in namespace ${JSON.stringify(namespace)} of the host cluster,`;
  const what = isDoubtful
    ? `${where} did not confirm a write: it may have happened or not. Read the object before you try again`
    : `${where} cannot be reached at the moment. Try again`;
  return new StatusError(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      ...(isDoubtful ? { reason: 'Timeout', code: 504 } : { reason: 'ServiceUnavailable', code: 503 }),
      message: `${what} (${cause})`,
      ...(isDoubtful ? {} : { details: { retryAfterSeconds: 1 } }),
    },
    { cause: error },
  );
}

function wasNeverSent(error: Error): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    if (first instanceof Error && 'code' in first && NEVER_SENT.has(String(first.code))) return true;
  }
  return false;
}
