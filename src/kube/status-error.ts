/** Kubernetes' own error: the `Status` document that an API server answers with, and the class that carries it. */

import type { JsonObject } from '../lib/json.ts';

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

/** A request that an API server refused. `code` is the HTTP status, `reason` Kubernetes' machine-readable word. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  /** From `Retry-After` or `details.retryAfterSeconds`, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: Status, options?: ErrorOptions & { retryAfterMs?: number | undefined }) {
    super(status.message ?? status.reason ?? 'the API server refused the request', options);
    this.status = status;
    const seconds = status.details?.retryAfterSeconds;
    this.retryAfterMs = options?.retryAfterMs ?? (seconds === undefined ? undefined : seconds * 1000);
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): string {
    return this.status.reason ?? 'Unknown';
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404;
}

/** 409 for an update: somebody else wrote in between. */
export function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'Conflict';
}

/** 409 for a create: the name is taken. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'AlreadyExists';
}
