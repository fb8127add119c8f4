/** Decides whether a write is possible, and its event. Pure: the caller passes the current entry and the revision. */

import type { JsonObject } from '../../base/json.ts';
import { orderedKey, StoreError, type StoredEntry, type StoreEvent, type StoreKey } from './store.ts';

export type WriteRequest =
  | { readonly kind: 'create'; readonly key: StoreKey; readonly value: JsonObject }
  | {
      readonly kind: 'update';
      readonly key: StoreKey;
      readonly value: JsonObject;
      readonly expectedRevision: number;
    }
  | { readonly kind: 'delete'; readonly key: StoreKey; readonly expectedRevision: number };

/** The event at `revision`, or the reason why the write fails. */
export function decideWrite(
  write: WriteRequest,
  current: StoredEntry | undefined,
  revision: number,
): StoreEvent | StoreError {
  const { key } = write;
  const name = `${key.resource} ${orderedKey(key)}`;
  if (write.kind === 'create') {
    if (current) return new StoreError('exists', `${name} exists`, current);
    return { type: 'created', revision, entry: { key, value: write.value, revision } };
  }
  if (!current) return new StoreError('missing', `${name} does not exist`);
  if (current.revision !== write.expectedRevision) {
    const message = `${name} is at revision ${current.revision}, not ${write.expectedRevision}`;
    return new StoreError('conflict', message, current);
  }
  const type = write.kind === 'update' ? 'updated' : 'deleted';
  const value = write.kind === 'update' ? write.value : current.value;
  return { type, revision, entry: { key, value, revision }, previous: current };
}
