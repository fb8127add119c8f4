/** Which keys an event concerns, and what both caches say about a key: its {@link Observation}. Events of both sides map to the keys of virtual objects. */

import type { Lister, CacheEvent } from '../../kube/types.ts';
import {
  keyOf,
  parseKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  objectKey,
} from '../../kube/object.ts';
import { namedVirtual, ownershipOf, virtualOf } from '../translate/ownership.ts';
import type { NameTranslator } from '../translate/types.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { claimOf, isOptedOut, type Claim, type DecideOptions, type Observation } from './decide.ts';
import type { ObjectStates } from './object-state.ts';
import { recordedRevision, recordOf } from '../translate/last-synced.ts';

/** Index on virtual objects: the key of their host copy. */
export const BY_HOST_KEY = 'hostKey';

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

/** Index on host objects: the key of the host Service that they get traffic from. */
export const BY_HOST_SERVICE = 'hostService';

export function hostIndexes(translator: NameTranslator, kind: SyncedKind) {
  return {
    [BY_VIRTUAL_KEY]: (object: KubeObject): readonly string[] => {
      const virtual = namedVirtual(object, kind.resource, translator);
      return virtual === undefined ? [] : [keyOf(virtual)];
    },
    [BY_HOST_SERVICE]: (object: KubeObject): readonly string[] => {
      const service = kind.hostService(object);
      return service === undefined ? [] : [service];
    },
  };
}

/** The host Service at this key, unless it is the copy of the virtual Service of `virtual`. Undefined: the host has none, or that one. Without a
 * virtual object, any copy of this virtual cluster will do. */
export type ForeignService = (
  key: ObjectKey | undefined,
  virtual: KubeObject | undefined,
) => ObjectKey | undefined;

/** `services`: those of the host. Different virtual Services can have the same host name, and the host may have a Service of that name itself. */
export function foreignServices(
  kind: SyncedKind,
  names: NameTranslator,
  services: Pick<Lister, 'get'>,
): ForeignService {
  return (key, virtual) => {
    const service = key === undefined ? undefined : services.get(key);
    if (key === undefined || service === undefined) return undefined;
    const original = originalOf(service, names);
    if (original === undefined) return key;
    const wanted = virtual && kind.serviceKey(objectKey(virtual), virtual);
    if (wanted === undefined || wanted === keyOf(original)) return undefined;
    const { namespace, name } = parseKey(wanted);
    // Another syncer has copied the translated name of the Service back to the virtual object.
    const isTranslated = name === parseKey(key).name;
    return isTranslated && namespace === original.namespace ? undefined : key;
  };
}

/** The virtual Service that a host Service is the copy of. In the virtual cluster's own host namespace, that of a Service without bookkeeping
 * follows from the name, which contains all of it: users create such Services for copies that have none. */
function originalOf(service: KubeObject, names: NameTranslator): NamespacedName | undefined {
  const isAtHome = service.metadata.namespace === names.hostNamespace;
  return isAtHome ? virtualOf(service, SERVICES, names) : namedVirtual(service, SERVICES, names);
}

export interface Observed {
  readonly virtual: Lister;
  readonly services: Lister;
  readonly host: Lister;
  readonly names: NameTranslator;
  readonly states: ObjectStates;
  readonly decide: DecideOptions;
  readonly foreignService: ForeignService;
  readonly kind: SyncedKind;
}

/** Objects that the caches leave out, read from their API servers. */
export type LeftOut = Pick<Partial<Observation>, 'virtual' | 'host'>;

export function observe(observed: Observed, key: ObjectKey, leftOut: LeftOut = {}): Observation {
  const { virtual, services, host, names, states, foreignService, kind } = observed;
  const object = virtual.get(key) ?? leftOut.virtual;
  const serviceKey = kind.serviceKey(key, object);
  const target = names.toHost(parseKey(key));
  const hostKey = target === undefined ? undefined : keyOf(target);
  const hostObject = hostKey === undefined ? undefined : (host.get(hostKey) ?? leftOut.host);
  return {
    key,
    virtual: object,
    service: serviceKey === undefined ? undefined : services.get(serviceKey),
    target,
    unmapped: object && kind.unmappedNamespace?.(object, names),
    host: hostObject,
    ownership: hostObject && ownershipOf(hostObject, kind.resource, names, parseKey(key)),
    strays: straysOf(key, hostKey, observed),
    claims: hostKey === undefined ? [] : claimsOn(hostKey, observed),
    hasForeignService:
      hostObject !== undefined && foreignService(kind.hostService(hostObject), object) !== undefined,
    isKnownCopy: hostObject !== undefined && states.find(key)?.isKnownCopy(hostObject) === true,
  };
}

/** Copies of this key that were written under an earlier configuration. The sync record proves that this program created them. */
function straysOf(
  key: ObjectKey,
  hostKey: ObjectKey | undefined,
  { host, names, kind }: Observed,
): readonly KubeObject[] {
  const copies = host.byIndex(BY_VIRTUAL_KEY, key);
  if (copies.size === 0 || (copies.size === 1 && hostKey !== undefined && copies.has(hostKey))) return [];
  return [...copies].flatMap((copyKey) => {
    const copy = copyKey === hostKey ? undefined : host.get(copyKey);
    if (copy === undefined || recordOf(copy) === undefined || isOptedOut(copy)) return [];
    return ownershipOf(copy, kind.resource, names).kind === 'ours' ? [copy] : [];
  });
}

/** A single claim needs no comparison and is left out. */
function claimsOn(hostKey: ObjectKey, options: Observed): readonly Claim[] {
  const { virtual, services, decide, kind } = options;
  const keys = virtual.byIndex(BY_HOST_KEY, hostKey);
  if (keys.size < 2) return [];
  return [...keys].flatMap((key) => {
    const object = virtual.get(key);
    if (object === undefined) return [];
    const serviceKey = kind.serviceKey(key, object);
    const service = serviceKey === undefined ? undefined : services.get(serviceKey);
    const isForeign = hostServicesOf(object, parseKey(hostKey), options).some(
      (hostService) => options.foreignService(hostService, object) !== undefined,
    );
    return [claimOf(object, service, { ...decide, isForeign })];
  });
}

/** The host Services that the copy of `object` would get traffic from: that of its Service, and, where another syncer has copied the translated name
 * of the Service back to the virtual object, which its copy then keeps, the one of that name. */
function hostServicesOf(
  object: KubeObject,
  target: NamespacedName,
  { kind, names }: Observed,
): readonly ObjectKey[] {
  const serviceKey = kind.serviceKey(objectKey(object), object);
  const translated = serviceKey === undefined ? undefined : names.toHost(parseKey(serviceKey));
  const kept = kind.hostService({ ...object, metadata: { ...object.metadata, ...target } });
  return [...(translated === undefined ? [] : [keyOf(translated)]), ...(kept === undefined ? [] : [kept])];
}

type EventContext = Pick<Observed, 'virtual' | 'names' | 'kind'>;

/** A virtual Service changed: the keys of the objects whose sync it controls, and of their rivals. */
export function keysOfServiceEvent({ key }: CacheEvent, context: EventContext): readonly ObjectKey[] {
  const keys = [...context.kind.keysOfService(key, context.virtual)];
  return [...new Set(keys.flatMap((one) => rivalsOf(one, context)))];
}

/** The keys of all objects with the host name of this one, itself included: one that is deleted or no longer synced frees the name. */
export function rivalsOf(
  key: ObjectKey,
  { virtual, names }: Omit<EventContext, 'kind'>,
): readonly ObjectKey[] {
  const target = names.toHost(parseKey(key));
  if (target === undefined) return [key];
  const rivals = virtual.byIndex(BY_HOST_KEY, keyOf(target));
  return rivals.size < 2 && (rivals.size === 0 || rivals.has(key)) ? [key] : [...new Set([key, ...rivals])];
}

/** A host object changed: the key in its bookkeeping, read from these states of it, which is the only link to an orphan, and the keys of all
 * virtual objects with this host name. */
export function keysOfHostObject(
  key: ObjectKey,
  states: readonly (KubeObject | undefined)[],
  { virtual, names, kind }: EventContext,
): readonly ObjectKey[] {
  const keys = new Set(virtual.byIndex(BY_HOST_KEY, key));
  for (const state of states) {
    const named = state && namedVirtual(state, kind.resource, names);
    if (named !== undefined) keys.add(keyOf(named));
  }
  return [...keys];
}

/** Objects without a copy, or whose copy records another version of them. At the start, these are processed before the rest of the first list. A
 * changed host copy does not move an object forward. */
export function keysChangedSinceCopied({
  virtual,
  host,
  names,
}: Pick<Observed, 'virtual' | 'host' | 'names'>): readonly ObjectKey[] {
  return [...virtual.list()].flatMap((object) => {
    const key = objectKey(object);
    const target = names.toHost(parseKey(key));
    const copy = target && host.get(keyOf(target));
    const revision = copy && recordedRevision(recordOf(copy));
    return revision === object.metadata.resourceVersion ? [] : [key];
  });
}
