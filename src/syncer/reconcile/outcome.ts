/** Maps an error to the time of its retry and the Event for the user. Pure. */

import { PatchError, TerminalError, messageOf } from '../../base/errors.ts';
import { isAlreadyExists, isConflict, isNotFound, StatusError } from '../../kube/status-error.ts';
import { TransportError } from '../../kube/types.ts';

export type Retry =
  /** With the key's exponential back-off. */
  | { readonly kind: 'backoff' }
  /** As the API server asked; the work queue bounds it. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** Only after a change of the object, an object that it depends on, or the configuration. */
  | { readonly kind: 'never' };

export type WarningReason = 'SyncError' | 'PatchFailed' | 'NamespaceNotFound';

export interface Outcome {
  readonly retry: Retry;
  /** Undefined: nothing to report to the user. */
  readonly warning: { readonly reason: WarningReason; readonly note: string } | undefined;
}

/** Consecutive failures without a response after which an Event is sent. Shorter outages are not reported. */
const SILENT_FAILURES_MAX = 5;

/** `namespaceAdvice`: what the user can do about a missing host namespace. */
export function outcomeOf(error: unknown, failures: number, namespaceAdvice: string): Outcome {
  if (error instanceof PatchError) return patchOutcome(error);
  if (error instanceof StatusError) return statusOutcome(error, namespaceAdvice);
  if (error instanceof TransportError) {
    return {
      retry: { kind: 'backoff' },
      warning: failures < SILENT_FAILURES_MAX ? undefined : syncError(error),
    };
  }
  if (error instanceof TerminalError) return { retry: { kind: 'never' }, warning: syncError(error) };
  return { retry: { kind: 'backoff' }, warning: syncError(error) };
}

/** The host namespace does not exist: the Status of the API server has `namespaces` as `details.kind`. */
export function isNamespaceMissing(error: unknown): boolean {
  return error instanceof StatusError && isNotFound(error) && error.status.details?.kind === 'namespaces';
}

function patchOutcome(error: PatchError): Outcome {
  const place = error.path === '' ? 'the whole object' : `path ${error.path}`;
  const excerpt = error.excerpt === '' ? '' : `\n${error.excerpt}`;
  return {
    retry: patchRetry(error),
    warning: {
      reason: 'PatchFailed',
      note: `patches[${error.index}], ${place}: ${error.message} (${error.kind})${excerpt}`,
    },
  };
}

function patchRetry({ isDeterministic, retryAfterMs }: PatchError): Retry {
  if (retryAfterMs !== undefined) return { kind: 'after', delayMs: retryAfterMs };
  return isDeterministic ? { kind: 'never' } : { kind: 'backoff' };
}

function statusOutcome(error: StatusError, namespaceAdvice: string): Outcome {
  if (error.code === 429 || (error.code === 503 && error.retryAfterMs !== undefined)) {
    return { retry: { kind: 'after', delayMs: error.retryAfterMs ?? 1000 }, warning: undefined };
  }
  if (isConflict(error) || isAlreadyExists(error)) return { retry: { kind: 'backoff' }, warning: undefined };
  if (isNamespaceMissing(error)) {
    const namespace = error.status.details?.name ?? '';
    const note = `The host namespace "${namespace}" does not exist: ${namespaceAdvice}. Syncing resumes automatically.`;
    return { retry: { kind: 'backoff' }, warning: { reason: 'NamespaceNotFound', note } };
  }
  return { retry: { kind: 'backoff' }, warning: syncError(error) };
}

function syncError(error: unknown): Outcome['warning'] {
  const message = messageOf(error);
  return { reason: 'SyncError', note: `${failedStep(error)} failed and is retried: ${message}` };
}

function failedStep(error: unknown): string {
  const isOfServer = error instanceof StatusError || error instanceof TransportError;
  if (!isOfServer || error.cluster === undefined) return 'Syncing';
  return error.cluster === 'host' ? 'Writing to the host' : 'Writing to the virtual cluster';
}
