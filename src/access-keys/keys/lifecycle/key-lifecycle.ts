/**
 * What the server itself has to do to a key: end it, let it go, or tidy up its owners. Pure; the collector carries it out. Owners are keys:
 * of an owner of another kind nobody here can say whether it is gone, so it counts as there.
 */

import { FOREGROUND, ORPHAN } from '../../../apiserver/objects/collector-finalizers.ts';
import { MANAGEMENT_GROUP, MANAGEMENT_VERSION } from '../resource/key-kind.ts';
import type { IndexedKey, OwnerReference } from '../index/key-record.ts';

/** What a decision needs to know of the other keys. */
export interface KeyNeighbours {
  byUid(uid: string): IndexedKey | undefined;
  dependentsOf(uid: string): Iterable<IndexedKey>;
}

export type LifecycleAction =
  | { readonly kind: 'stay' }
  /** Delete it, in the foreground if it has dependents of its own that must go first. */
  | {
      readonly kind: 'remove';
      readonly why: 'expired' | 'ownerless' | 'graceOver';
      readonly isForeground: boolean;
    }
  /** Take these finalizers away; `orphans` must have lost their reference to this key before. */
  | { readonly kind: 'release'; readonly finalizer: string; readonly orphans: readonly IndexedKey[] }
  /** These owners are gone or going, but others remain. */
  | { readonly kind: 'disown'; readonly uids: readonly string[] };

const STAY: LifecycleAction = { kind: 'stay' };

export interface Moment {
  readonly nowMs: number;
  /** When the key is to be collected; undefined: never. Epoch milliseconds. */
  readonly endMs: number | undefined;
}

export function decideLifecycle(
  key: IndexedKey,
  neighbours: KeyNeighbours,
  { nowMs, endMs }: Moment,
): LifecycleAction {
  if (key.deletion) return actionForDeleted(key, neighbours, nowMs);
  if (endMs !== undefined && endMs <= nowMs) return { kind: 'remove', why: 'expired', isForeground: false };
  return actionForOwned(key, neighbours);
}

function actionForDeleted(key: IndexedKey, neighbours: KeyNeighbours, nowMs: number): LifecycleAction {
  if (key.finalizers.includes(ORPHAN)) {
    return { kind: 'release', finalizer: ORPHAN, orphans: [...neighbours.dependentsOf(key.uid)] };
  }
  if (key.finalizers.includes(FOREGROUND) && !isBlocked(key, neighbours)) {
    return { kind: 'release', finalizer: FOREGROUND, orphans: [] };
  }
  if (key.deletion?.hasGrace === true && key.deletion.dueMs <= nowMs) {
    return { kind: 'remove', why: 'graceOver', isForeground: false };
  }
  return STAY;
}

/** Some dependent wants to go before this key. One that waits for this key in turn does not: the circle would never end. */
function isBlocked(key: IndexedKey, neighbours: KeyNeighbours): boolean {
  for (const dependent of neighbours.dependentsOf(key.uid)) {
    const isBlocking = dependent.owners.some(({ uid, isBlocking: blocks }) => blocks && uid === key.uid);
    if (isBlocking && !descendsFrom(key, dependent.uid, neighbours)) return true;
  }
  return false;
}

/** `ancestor` is among the owners of `key`, or of one of its owners, and so on. */
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
  if (key.owners.length === 0) return STAY;
  const states = key.owners.map((owner) => ({ owner, state: stateOf(owner, neighbours) }));
  const leaving = states.filter(({ state }) => state !== 'there').map(({ owner }) => owner.uid);
  if (leaving.length === 0) return STAY;
  if (leaving.length < states.length) return { kind: 'disown', uids: leaving };
  const isAwaited = states.some(({ state }) => state === 'waiting');
  const hasDependents = !isEmpty(neighbours.dependentsOf(key.uid));
  return { kind: 'remove', why: 'ownerless', isForeground: isAwaited && hasDependents };
}

/** `waiting`: it is being deleted and lets its dependents go first. */
function stateOf(owner: OwnerReference, neighbours: KeyNeighbours): 'there' | 'waiting' | 'gone' {
  if (!isKeyReference(owner)) return 'there';
  const key = neighbours.byUid(owner.uid);
  if (!key || key.name !== owner.name) return 'gone';
  return key.deletion && key.finalizers.includes(FOREGROUND) ? 'waiting' : 'there';
}

export function isKeyReference({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): boolean {
  return apiVersion === `${MANAGEMENT_GROUP}/${MANAGEMENT_VERSION}` && kind === 'OwnedAccessKey';
}

function isEmpty(items: Iterable<unknown>): boolean {
  return items[Symbol.iterator]().next().done === true;
}
