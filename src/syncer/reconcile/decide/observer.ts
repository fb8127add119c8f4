/** Builds the {@link Observation} of one key from both caches. */

import type { Lister } from '../../../kube/types.ts';
import { keyOf, parseKey, SERVICES, type KubeObject, type ObjectKey } from '../../../kube/object.ts';
import { LAST_SYNCED } from '../../translate/metadata/bookkeeping.ts';
import { namedVirtual, ownershipOf } from '../../translate/metadata/ownership.ts';
import type { NameTranslator } from '../../translate/types.ts';
import type { SyncedKind } from '../../kinds/kind.ts';
import { claimOf, isOptedOut, type Claim, type DecideOptions, type Observation } from './decide.ts';
import type { SyncedPairs } from './synced-pairs.ts';

/** Index on virtual objects: the key of their host copy. */
export const BY_HOST_KEY = 'hostKey';

/** Index functions for the informer of virtual objects. */
export function virtualIndexes(translator: NameTranslator, kind: SyncedKind) {
  return {
    ...kind.indexes,
    [BY_HOST_KEY]: (object: KubeObject): readonly string[] => {
      const { namespace = '', name } = object.metadata;
      const target = translator.toHost({ namespace, name });
      return target === undefined ? [] : [keyOf(target)];
    },
  };
}

/** Index on host objects: the key of the virtual object that its bookkeeping names. */
export const BY_VIRTUAL_KEY = 'virtualKey';

/** Index functions for the informer of host objects. */
export function hostIndexes(translator: NameTranslator, { resource }: SyncedKind) {
  return {
    [BY_VIRTUAL_KEY]: (object: KubeObject): readonly string[] => {
      const virtual = namedVirtual(object, resource, translator);
      return virtual === undefined ? [] : [keyOf(virtual)];
    },
  };
}

/** Index on host objects: the key of the host Service that they get traffic from. */
export const BY_HOST_SERVICE = 'hostService';

/** An additional index for the informer of host objects. */
export function hostServiceIndex(kind: SyncedKind) {
  return {
    [BY_HOST_SERVICE]: (object: KubeObject): readonly string[] => {
      const service = kind.hostService(object);
      return service === undefined ? [] : [service];
    },
  };
}

/** The host Service that a host object gets traffic from, if that Service is not of this virtual cluster. */
export type ForeignService = (host: KubeObject) => ObjectKey | undefined;

/** `services`: those of the host, if namespaces are mapped; undefined otherwise. In the virtual cluster's own host namespace, which no
 * mapping leads to, names of copies contain the name of the virtual cluster.
 */
export function foreignServices(
  kind: SyncedKind,
  names: NameTranslator,
  services: Pick<Lister, 'get'> | undefined,
): ForeignService {
  if (services === undefined) return () => undefined;
  return (host) => {
    if (host.metadata.namespace === names.hostNamespace) return undefined;
    const key = kind.hostService(host);
    const service = key === undefined ? undefined : services.get(key);
    return service === undefined || namedVirtual(service, SERVICES, names) !== undefined ? undefined : key;
  };
}

export interface ObserverOptions {
  readonly virtual: Lister;
  readonly services: Lister;
  readonly host: Lister;
  readonly translator: NameTranslator;
  readonly pairs: SyncedPairs;
  readonly decide: DecideOptions;
  readonly foreignService: ForeignService;
  readonly kind: SyncedKind;
}

export function createObserver(options: ObserverOptions): (key: ObjectKey) => Observation {
  const { virtual, services, host, translator, pairs, foreignService, kind } = options;
  return (key) => {
    const object = virtual.get(key);
    const serviceKey = kind.serviceKey(key, object);
    const target = translator.toHost(parseKey(key));
    const hostKey = target === undefined ? undefined : keyOf(target);
    const hostObject = hostKey === undefined ? undefined : host.get(hostKey);
    return {
      key,
      virtual: object,
      service: serviceKey === undefined ? undefined : services.get(serviceKey),
      target,
      host: hostObject,
      ownership: hostObject && ownershipOf(hostObject, kind.resource, translator, parseKey(key)),
      strays: straysOf(key, hostKey, options),
      claims: hostKey === undefined ? [] : claimsOn(hostKey, options),
      hasForeignService: hostObject !== undefined && foreignService(hostObject) !== undefined,
      isKnownCopy: hostObject !== undefined && pairs.get(key)?.host.metadata.uid === hostObject.metadata.uid,
    };
  };
}

/** Copies of this key that were written under an earlier configuration. The sync record proves that this program created them. */
function straysOf(
  key: ObjectKey,
  hostKey: ObjectKey | undefined,
  { host, translator, kind }: ObserverOptions,
): readonly KubeObject[] {
  const copies = host.byIndex(BY_VIRTUAL_KEY, key);
  if (copies.size === 0 || (copies.size === 1 && hostKey !== undefined && copies.has(hostKey))) return [];
  return [...copies].flatMap((copyKey) => {
    const copy = copyKey === hostKey ? undefined : host.get(copyKey);
    if (copy?.metadata.annotations?.[LAST_SYNCED] === undefined || isOptedOut(copy)) return [];
    return ownershipOf(copy, kind.resource, translator).kind === 'ours' ? [copy] : [];
  });
}

/** A single claim needs no comparison and is left out. */
function claimsOn(hostKey: ObjectKey, options: ObserverOptions): readonly Claim[] {
  const { virtual, services, decide, kind } = options;
  const keys = virtual.byIndex(BY_HOST_KEY, hostKey);
  if (keys.size < 2) return [];
  return [...keys].flatMap((key) => {
    const object = virtual.get(key);
    if (object === undefined) return [];
    const serviceKey = kind.serviceKey(key, object);
    const service = serviceKey === undefined ? undefined : services.get(serviceKey);
    return [claimOf(object, service, decide)];
  });
}
