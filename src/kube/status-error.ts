/** The `Status` document of an API server, and the error that carries it. */

import { withPlainTexts } from '../base/excerpt.ts';
import type { JsonObject } from '../base/json.ts';
import { TransportError, type ClusterName } from './types.ts';

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  retryAfterSeconds?: number;
  causes?: { reason?: string; message?: string; field?: string }[];
}

/** `Status` of `v1`, see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: JsonObject;
  status: 'Failure' | 'Success';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

/**
 * An error response of an API server. `code` is the HTTP status, `reason` Kubernetes' machine-readable word. Its messages quote texts of callers and
 * are printed on terminals: they have no characters that control one.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  /** From `Retry-After` or `details.retryAfterSeconds`, in milliseconds; 0 or more, and not bounded above (see `base/retry.ts`). */
  readonly retryAfterMs: number | undefined;
  /** Where a write failed; undefined for a read. */
  cluster?: ClusterName;

  constructor(status: Status, options?: ErrorOptions & { retryAfterMs?: number | undefined }) {
    const plain = withPlainTexts(status);
    super(plain.message ?? plain.reason ?? 'the API server refused the request', options);
    this.status = plain;
    this.retryAfterMs = options?.retryAfterMs ?? asDelayMs(status.details?.retryAfterSeconds);
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): string {
    return this.status.reason ?? 'Unknown';
  }
}

/** The reason of an error whose response says nothing of the object: a proxy's page, or the `Status` of another object. Kubernetes gives it to none. */
export const NO_STATUS = 'NoStatus';

/** The error of a `Status`. `reason`: '' for none. `retryAfterMs`: see `StatusError`; default: that of `details`. */
export function failure(
  code: number,
  reason: string,
  message: string,
  details?: StatusDetails,
  retryAfterMs?: number,
): StatusError {
  const status: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message };
  if (reason !== '') status.reason = reason;
  if (details) status.details = details;
  status.code = code;
  return new StatusError(status, { retryAfterMs });
}

/** Ignores invalid values, because responses are not validated. */
function asDelayMs(seconds: unknown): number | undefined {
  return typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : undefined;
}

/** The API server says so. A proxy without a route, and an API server without the API group, answer 404 with a text. */
export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404 && error.reason !== NO_STATUS;
}

/** Undefined where the API server says that there is none. */
export async function ignoreNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** No response, or a temporary error: another attempt may succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.code === 429 || error.code >= 500;
  return error instanceof TransportError;
}

/** A right is missing. */
export function isForbidden(error: unknown): error is StatusError {
  return error instanceof StatusError && error.code === 403;
}

/** No credential of this program reached the server: a proxy or a plain user entry dropped it. */
export function isAnonymous(error: StatusError): boolean {
  return isForbidden(error) && error.message.includes('"system:anonymous"');
}

/** 409 for an update: another client wrote in between. */
export function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'Conflict';
}

/** 409 for a create: the name is taken. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'AlreadyExists';
}

/** The namespace of the request does not exist: the Status of the API server has `namespaces` as `details.kind`. */
export function isNamespaceMissing(error: unknown): boolean {
  return error instanceof StatusError && isNotFound(error) && error.status.details?.kind === 'namespaces';
}

/** A creation in a namespace that is being deleted: admission gives the cause. */
export function isNamespaceTerminating(error: unknown): boolean {
  const causes = error instanceof StatusError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** Nothing can be created in the namespace of the request. */
export function isNamespaceGone(error: unknown): boolean {
  return isNamespaceMissing(error) || isNamespaceTerminating(error);
}
