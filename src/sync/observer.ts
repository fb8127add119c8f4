/** Reads both caches for one key: the only place that turns caches into an {@link Observation}. */

import type { Informer } from '../cluster/types.ts';
import { ENDPOINTS, keyOf, objectKey, parseKey, type KubeObject, type ObjectKey } from '../kube/object.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';
import { namedVirtual, ownershipOf } from '../translate/ownership.ts';
import type { NameTranslator } from '../translate/types.ts';
import { isOptedOut, serviceGate, type Claim, type DecideOptions, type Observation } from './decide.ts';
import type { SyncedPairs } from './synced-pairs.ts';

/** Index on virtual Endpoints: the key of the host object that the copy belongs to. */
export const BY_HOST_KEY = 'hostKey';

/** Index functions for the informer of virtual Endpoints. */
export function virtualIndexes(translator: NameTranslator) {
  return {
    [BY_HOST_KEY]: (object: KubeObject): readonly string[] => {
      const { namespace = '', name } = object.metadata;
      const target = translator.toHost({ namespace, name });
      return target === undefined ? [] : [keyOf(target)];
    },
  };
}

/** Index on host Endpoints: the key of the virtual object that its bookkeeping names. */
export const BY_VIRTUAL_KEY = 'virtualKey';

/** Index functions for the informer of host Endpoints. */
export function hostIndexes(translator: NameTranslator) {
  return {
    [BY_VIRTUAL_KEY]: (object: KubeObject): readonly string[] => {
      const virtual = namedVirtual(object, ENDPOINTS, translator);
      return virtual === undefined ? [] : [keyOf(virtual)];
    },
  };
}

export interface ObserverOptions {
  readonly virtual: Informer;
  readonly services: Informer;
  readonly host: Informer;
  readonly translator: NameTranslator;
  readonly pairs: SyncedPairs;
  readonly decide: DecideOptions;
}

export function createObserver(options: ObserverOptions): (key: ObjectKey) => Observation {
  const { virtual, services, host, translator, pairs } = options;
  return (key) => {
    const target = translator.toHost(parseKey(key));
    const hostKey = target === undefined ? undefined : keyOf(target);
    const hostObject = hostKey === undefined ? undefined : host.get(hostKey);
    return {
      key,
      virtual: virtual.get(key),
      service: services.get(key),
      target,
      host: hostObject,
      ownership: hostObject && ownershipOf(hostObject, ENDPOINTS, translator, parseKey(key)),
      strays: straysOf(key, hostKey, options),
      claims: hostKey === undefined ? [] : claimsOn(hostKey, options),
      isKnownCopy: hostObject !== undefined && pairs.get(key)?.hostUid === hostObject.metadata.uid,
    };
  };
}

/** Copies of this key that an earlier configuration put in another place. Our record proves that we made them. */
function straysOf(
  key: ObjectKey,
  hostKey: ObjectKey | undefined,
  { host, translator }: ObserverOptions,
): readonly KubeObject[] {
  const copies = host.byIndex(BY_VIRTUAL_KEY, key);
  if (copies.size === 0 || (copies.size === 1 && hostKey !== undefined && copies.has(hostKey))) return [];
  return [...copies].flatMap((copyKey) => {
    const copy = copyKey === hostKey ? undefined : host.get(copyKey);
    if (copy?.metadata.annotations?.[LAST_SYNCED] === undefined || isOptedOut(copy)) return [];
    return ownershipOf(copy, ENDPOINTS, translator).kind === 'ours' ? [copy] : [];
  });
}

/** A single claim needs no comparison and is left out. */
function claimsOn(hostKey: ObjectKey, { virtual, services, decide }: ObserverOptions): readonly Claim[] {
  const keys = virtual.byIndex(BY_HOST_KEY, hostKey);
  if (keys.size < 2) return [];
  return [...keys].flatMap((key) => {
    const object = virtual.get(key);
    if (object === undefined) return [];
    const isEligible = !isOptedOut(object) && serviceGate(services.get(key), decide) === undefined;
    return [{ key: objectKey(object), createdAt: object.metadata.creationTimestamp ?? '', isEligible }];
  });
}
