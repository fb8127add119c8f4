/** Classifies errors of sending Events. */

import { StatusError } from '../status-error.ts';

/** `drop`: this Event can never be sent; `refused`: none can at the moment; `retry`: it may work later. */
export function verdictOf(error: unknown): 'drop' | 'refused' | 'retry' {
  if (!(error instanceof StatusError)) return 'retry';
  const { code, status } = error;
  const isNamespaceGone =
    status.details?.kind === 'namespaces' ||
    status.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
  if (code === 400 || code === 409 || code === 413 || code === 422 || isNamespaceGone) return 'drop';
  if (code === 401 || code === 403 || code === 404 || code === 405) return 'refused';
  return 'retry';
}
