/**
 * Decides what the garbage collector does with a key: delete it, or remove a finalizer or owner references. Pure; the collector executes it.
 * Owners are keys: an owner of another kind cannot be looked up here and counts as existing.
 */

import { MANAGEMENT_API_VERSION } from '../identity.ts';
import { FOREGROUND, ORPHAN } from '../../apiserver/metadata.ts';
import type { IndexedKey, OwnerReference } from './key-index.ts';

export interface KeyNeighbours {
  byUid(uid: string): IndexedKey | undefined;
  dependentsOf(uid: string): Iterable<IndexedKey>;
}

export type LifecycleAction =
  | { readonly kind: 'none' }
  /** In the foreground if it has dependents that must be deleted first. */
  | {
      readonly kind: 'delete';
      readonly why: 'expired' | 'ownerless' | 'graceOver';
      readonly isForeground: boolean;
    }
  /** The references of `orphans` to this key are removed first. */
  | { readonly kind: 'removeFinalizer'; readonly finalizer: string; readonly orphans: readonly IndexedKey[] }
  /** These owners are deleted or being deleted; others remain. */
  | { readonly kind: 'removeOwners'; readonly uids: readonly string[] };

const NO_ACTION: LifecycleAction = { kind: 'none' };

/** `removalMs`: when the key is deleted because it has expired, in epoch milliseconds; Infinity: never. */
export function decideLifecycle(
  key: IndexedKey,
  neighbours: KeyNeighbours,
  nowMs: number,
  removalMs: number,
): LifecycleAction {
  if (key.deletion) return actionForDeleted(key, neighbours, nowMs);
  if (removalMs <= nowMs) return { kind: 'delete', why: 'expired', isForeground: false };
  return actionForOwned(key, neighbours);
}

function actionForDeleted(key: IndexedKey, neighbours: KeyNeighbours, nowMs: number): LifecycleAction {
  if (key.finalizers.includes(ORPHAN)) {
    return { kind: 'removeFinalizer', finalizer: ORPHAN, orphans: [...neighbours.dependentsOf(key.uid)] };
  }
  if (key.finalizers.includes(FOREGROUND) && !isBlocked(key, neighbours)) {
    return { kind: 'removeFinalizer', finalizer: FOREGROUND, orphans: [] };
  }
  if (key.deletion?.hasGrace === true && key.deletion.dueMs <= nowMs) {
    return { kind: 'delete', why: 'graceOver', isForeground: false };
  }
  return NO_ACTION;
}

/** Whether a dependent blocks the deletion of this key. A dependent that this key depends on does not: the cycle would never end. */
function isBlocked(key: IndexedKey, neighbours: KeyNeighbours): boolean {
  for (const dependent of neighbours.dependentsOf(key.uid)) {
    const isBlocking = dependent.owners.some(({ uid, isBlocking: blocks }) => blocks && uid === key.uid);
    if (isBlocking && !descendsFrom(key, dependent.uid, neighbours)) return true;
  }
  return false;
}

function descendsFrom(key: IndexedKey, ancestor: string, neighbours: KeyNeighbours): boolean {
  const seen = new Set<string>();
  const waiting = [key];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    for (const { uid } of next.owners) {
      if (uid === ancestor) return true;
      if (seen.has(uid)) continue;
      seen.add(uid);
      const owner = neighbours.byUid(uid);
      if (owner) waiting.push(owner);
    }
  }
  return false;
}

function actionForOwned(key: IndexedKey, neighbours: KeyNeighbours): LifecycleAction {
  if (key.owners.length === 0) return NO_ACTION;
  const states = key.owners.map((owner) => ({ owner, state: stateOf(owner, neighbours) }));
  const leaving = states.filter(({ state }) => state !== 'exists').map(({ owner }) => owner.uid);
  if (leaving.length === 0) return NO_ACTION;
  if (leaving.length < states.length) return { kind: 'removeOwners', uids: leaving };
  const isAwaited = states.some(({ state }) => state === 'waiting');
  const hasDependents = !isEmpty(neighbours.dependentsOf(key.uid));
  return { kind: 'delete', why: 'ownerless', isForeground: isAwaited && hasDependents };
}

/** `waiting`: it is being deleted in the foreground and waits for its dependents. */
function stateOf(owner: OwnerReference, neighbours: KeyNeighbours): 'exists' | 'waiting' | 'gone' {
  if (!isKeyReference(owner)) return 'exists';
  const key = neighbours.byUid(owner.uid);
  if (!key || key.name !== owner.name) return 'gone';
  return key.deletion && key.finalizers.includes(FOREGROUND) ? 'waiting' : 'exists';
}

export function isKeyReference({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): boolean {
  return apiVersion === MANAGEMENT_API_VERSION && kind === 'OwnedAccessKey';
}

function isEmpty(items: Iterable<unknown>): boolean {
  return items[Symbol.iterator]().next().done === true;
}
