/** Conflicts between writes: how the store reports them, and how the API does. */

import { conflict, MODIFIED, notFound } from '../status.ts';
import { StoreError } from '../storage/store.ts';
import { groupName, type Target } from './target.ts';

/** The object has changed or disappeared since it was read: a write may be retried. */
export function isRevisionConflict(error: unknown): boolean {
  return error instanceof StoreError && (error.code === 'conflict' || error.code === 'missing');
}

/** The API error for a `StoreError` of a conflict; any other error as it is. */
export function asConflict(error: unknown, target: Target): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.code === 'missing') return notFound(groupName(target.definition), target.name);
  if (error.code === 'conflict') return conflict(groupName(target.definition), target.name, MODIFIED);
  return error;
}

/** `actual`: `''` without an object. A request with the uid of a deleted object must not create another one. */
export function checkUid(target: Target, actual: string, requested: string): void {
  if (requested === '' || requested === actual) return;
  const why = `Precondition failed: UID in precondition: ${requested}, UID in object meta: ${actual}`;
  throw conflict(groupName(target.definition), target.name, why);
}
