/** Error responses of an API server. */

import { StatusError, type Status, type StatusDetails } from '../../../src/kube/status-error.ts';

export function refusal(
  code: number,
  reason: string,
  message: string,
  { retryAfterMs, details }: { readonly retryAfterMs?: number; readonly details?: StatusDetails } = {},
): StatusError {
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
  };
  return new StatusError({ ...status, ...(details === undefined ? {} : { details }) }, { retryAfterMs });
}
