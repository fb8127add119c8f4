/** Which keys an event concerns. Both sides' events name the same keys: those of the virtual objects. */

import type { CacheEvent, Lister } from '../../../kube/types.ts';
import { keyOf, parseKey, type ObjectKey } from '../../../kube/object.ts';
import type { SyncedKind } from '../../kinds/kind.ts';
import { namedVirtual } from '../../translate/metadata/ownership.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { BY_HOST_KEY } from './observer.ts';

export interface EventContext {
  readonly virtual: Lister;
  readonly translator: NameTranslator;
  readonly kind: SyncedKind;
}

/** A virtual Service changed: the keys of the objects that it decides about, and of their rivals. */
export function keysOfServiceEvent({ key }: CacheEvent, context: EventContext): readonly ObjectKey[] {
  const keys = [...context.kind.keysOfService(key, context.virtual)];
  return [...new Set(keys.flatMap((one) => rivalsOf(one, context)))];
}

/**
 * A virtual object changed: its own key, and every other object whose copy belongs to the same host name, because one
 * that goes, or may no longer be synced, frees the name.
 */
export function keysOfVirtualEvent({ key }: CacheEvent, context: EventContext): readonly ObjectKey[] {
  return rivalsOf(key, context);
}

function rivalsOf(key: ObjectKey, { virtual, translator }: EventContext): readonly ObjectKey[] {
  const target = translator.toHost(parseKey(key));
  if (target === undefined) return [key];
  const rivals = virtual.byIndex(BY_HOST_KEY, keyOf(target));
  return rivals.size < 2 && (rivals.size === 0 || rivals.has(key)) ? [key] : [...new Set([key, ...rivals])];
}

/**
 * A host object changed: the key that its bookkeeping names (an orphan has no other trace), and every virtual object that waits for
 * this name.
 */
export function keysOfHostEvent(
  { key, object, previous }: CacheEvent,
  { virtual, translator, kind }: EventContext,
): readonly ObjectKey[] {
  const keys = new Set(virtual.byIndex(BY_HOST_KEY, key));
  for (const state of [object, previous]) {
    const named = state && namedVirtual(state, kind.resource, translator);
    if (named !== undefined) keys.add(keyOf(named));
  }
  return [...keys];
}
