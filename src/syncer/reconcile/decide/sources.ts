/** Maps events to keys. Events of both sides map to the keys of virtual objects. */

import type { CacheEvent, Lister } from '../../../kube/types.ts';
import { keyOf, objectKey, parseKey, type KubeObject, type ObjectKey } from '../../../kube/object.ts';
import type { SyncedKind } from '../../kinds/kind.ts';
import { namedVirtual } from '../../translate/metadata/ownership.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { LAST_SYNCED } from '../../translate/metadata/bookkeeping.ts';
import { recordedRevision } from '../../translate/merge/last-synced.ts';
import { BY_HOST_KEY } from './observer.ts';

export interface EventContext {
  readonly virtual: Lister;
  readonly translator: NameTranslator;
  readonly kind: SyncedKind;
}

/** A virtual Service changed: the keys of the objects whose sync it controls, and of their rivals. */
export function keysOfServiceEvent({ key }: CacheEvent, context: EventContext): readonly ObjectKey[] {
  const keys = [...context.kind.keysOfService(key, context.virtual)];
  return [...new Set(keys.flatMap((one) => rivalsOf(one, context)))];
}

/** A virtual object changed: its own key, and the keys of all objects with the same host name, because an object that is deleted or no
 * longer synced frees the name.
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

/** A host object changed: the key in its bookkeeping, which is the only link to an orphan, and the keys of all virtual objects with this
 * host name.
 */
export function keysOfHostEvent(
  { key, object, previous }: CacheEvent,
  context: EventContext,
): readonly ObjectKey[] {
  return keysOfHostObject(key, [object, previous], context);
}

/** As {@link keysOfHostEvent}; `states`: those that the bookkeeping is read from. */
export function keysOfHostObject(
  key: ObjectKey,
  states: readonly (KubeObject | undefined)[],
  { virtual, translator, kind }: EventContext,
): readonly ObjectKey[] {
  const keys = new Set(virtual.byIndex(BY_HOST_KEY, key));
  for (const state of states) {
    const named = state && namedVirtual(state, kind.resource, translator);
    if (named !== undefined) keys.add(keyOf(named));
  }
  return [...keys];
}

/** Objects without a copy, or whose copy records another version of them. At the start, these are processed before the rest of the first
 * list. A changed host copy does not move an object forward.
 */
export function keysChangedSinceCopied({
  virtual,
  host,
  translator,
}: Pick<EventContext, 'virtual' | 'translator'> & { readonly host: Lister }): readonly ObjectKey[] {
  return [...virtual.list()].flatMap((object) => {
    const key = objectKey(object);
    const target = translator.toHost(parseKey(key));
    const copy = target && host.get(keyOf(target));
    const revision = recordedRevision(copy?.metadata.annotations?.[LAST_SYNCED]);
    return revision === object.metadata.resourceVersion ? [] : [key];
  });
}
