/** What the host must hold when everything has settled, computed as simply as possible and without any code of the program. */

import { keyOf, objectKey, type KubeObject, type NamespacedName } from '../../../src/kube/object.ts';
import { CONFIG, FORWARD, SECRET, TEAM, type Settings } from '../daemon/sim-config.ts';
import type { ReferencedPlural, SyncedPlural } from '../history/operations.ts';
import { hasSelector, MANAGED_BY, MIRRORING, SERVICE_NAME } from '../world/host-controllers.ts';
import {
  HOST_NAMESPACE,
  hostKeyOf,
  hostPlaceOf,
  referencePlaceOf,
  VCLUSTER,
  MAPPED_NAMESPACE,
  VIRTUAL_NAMES,
} from '../world/names.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import type { BackedServices } from './backed-services.ts';
import type { ClassHistory } from './class-history.ts';
import { isExcludedSlice, serviceDifferences, wantsServiceCopy } from './service-model.ts';
import { FORBIDDEN } from '../world/contents.ts';

/** How the program writes reserved labels such as `release`, up to a digest of the key. */
const RESERVED_LABEL = `vcluster.loft.sh/label-${VCLUSTER}-x-`;
/** Forged on a virtual object, or copied back to it. */
const BOOKKEEPING = /^vcluster\.loft\.sh\/(object-|managed-annotations)|^endpoint-syncer\//;
const OPT_OUT = 'vcluster.loft.sh/controlled-by';
/** The annotations that reference patches translate. */
export const REFERENCE_KEYS: Readonly<Record<string, ReferencedPlural>> = {
  [SECRET]: 'secrets',
  [CONFIG]: 'configmaps',
};

export interface World {
  readonly settings: Settings;
  readonly virtual: SimCluster;
  readonly host: SimCluster;
  /** The program created this object, or took it over as it may. */
  isOurs(object: KubeObject): boolean;
  /** vCluster changed this annotation of the virtual object to its value. */
  isCopiedBack(virtual: KubeObject, key: string): boolean;
  /** vCluster syncs the objects for a while, too. Without it, what a virtual object has of the bookkeeping is forged. */
  readonly isBesideVcluster: boolean;
  /** A sync record that names kinds of references was removed, or an import was not listed: without a patch, the program cannot know of it. */
  readonly isRecordLost: boolean;
  /** Two daemons disagree on what an object that has opted out names. */
  readonly areImportsContested: boolean;
  readonly classes: ClassHistory;
  /** Virtual Services that had Endpoints or a slice beside them at some time, or needed none. */
  readonly backed: BackedServices;
  /** A daemon has started again beside vCluster, or a server was restored: the value before one that came back and has no reverse patch is not known any more. */
  readonly areEchoesForgotten: boolean;
  /** There may have been times without a leader. */
  readonly isInterrupted: boolean;
}

/** Parts of a copy that the virtual object alone decides. */
export interface ExpectedCopy {
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
}

export function expectedCopy(virtual: KubeObject, world: World): ExpectedCopy {
  const { name, namespace = '', uid = '', annotations = {}, labels = {} } = virtual.metadata;
  const { isPatched } = world.settings;
  const copied = Object.entries(annotations)
    .filter(([key]) => !BOOKKEEPING.test(key))
    .map(([key, value]): [string, string] => {
      const plural = REFERENCE_KEYS[key];
      if (plural !== undefined && world.settings.hasReferences)
        return [key, expectedReference(plural, { namespace, name: value }, world).written];
      return [key, patchedValue(key, value, isPatched)];
    });
  return {
    annotations: {
      ...Object.fromEntries(copied),
      'vcluster.loft.sh/object-name': name,
      'vcluster.loft.sh/object-namespace': namespace,
      'vcluster.loft.sh/object-uid': uid,
    },
    labels: {
      ...labels,
      ...sliceLabels(virtual, world.settings),
      'vcluster.loft.sh/managed-by': VCLUSTER,
      'vcluster.loft.sh/namespace': namespace,
    },
    addresses: addressesOf(virtual).map((text) => (isPatched && !text.endsWith(' ') ? `${text}-x` : text)),
  };
}

function sliceLabels({ metadata }: KubeObject, settings: Settings): Record<string, string> {
  const { namespace = '', labels = {} } = metadata;
  const [service, manager] = [labels[SERVICE_NAME], labels[MANAGED_BY]];
  const host =
    service === undefined || isTranslated({ metadata })
      ? service
      : hostPlaceOf({ namespace, name: service }, settings).name;
  return {
    ...(host === undefined ? {} : { [SERVICE_NAME]: host }),
    ...(manager === MIRRORING ? { [MANAGED_BY]: 'endpoint-syncer' } : {}),
  };
}

/** The name of its Service that another syncer has copied back from the host is translated already. */
function isTranslated({ metadata: { namespace = '', labels = {} } }: KubeObject): boolean {
  return labels[SERVICE_NAME]?.endsWith(`-x-${namespace}-x-${VCLUSTER}`) === true;
}

function patchedValue(key: string, value: string, isPatched: boolean): string {
  if (!isPatched) return value;
  if (key === TEAM) return `team-${value}`;
  return key === FORWARD ? `[${value}]` : value;
}

export interface ExpectedReference {
  /** The name on the host copy. */
  readonly written: string;
  readonly isImported: 'to-host' | 'to-virtual' | undefined;
  /** The reason of the Event that the user gets. */
  readonly problem: 'ReferenceNotFound' | 'ReferenceNotAllowed' | 'NotManaged' | undefined;
  readonly target: NamespacedName;
  readonly source: NamespacedName;
}

export function expectedReference(
  plural: ReferencedPlural,
  virtual: NamespacedName,
  world: World,
): ExpectedReference {
  const { virtual: tenant, host, settings } = world;
  const isOurs = (object: KubeObject): boolean => world.isOurs(object);
  const target = referencePlaceOf(virtual, settings);
  const source = { namespace: hostPlaceOf(virtual, settings).namespace, name: virtual.name };
  const own = tenant.get(plural, keyOf(virtual));
  const isMapped = source.namespace !== HOST_NAMESPACE;
  const atSource = host.get(plural, keyOf(source));
  // In a mapped namespace, our copy has the name of its original.
  const onHost = isMapped && atSource !== undefined && isOurs(atSource) ? undefined : atSource;
  const known = { target, source };
  if (own !== undefined && !isOurs(own)) {
    const atTarget = host.get(plural, keyOf(target));
    const problem = isForbidden(own)
      ? 'ReferenceNotAllowed'
      : atTarget !== undefined && !isOurs(atTarget)
        ? 'NotManaged'
        : undefined;
    if (plural === 'configmaps')
      return { written: target.name, isImported: undefined, problem: undefined, ...known };
    const isImported = problem === undefined ? 'to-host' : undefined;
    return { written: target.name, isImported, problem, ...known };
  }
  if (onHost === undefined)
    return { written: target.name, isImported: undefined, problem: 'ReferenceNotFound', ...known };
  if (isForbidden(onHost) || isOurs(onHost) || virtual.name.startsWith('vc-'))
    return { written: target.name, isImported: undefined, problem: 'ReferenceNotFound', ...known };
  return { written: virtual.name, isImported: 'to-virtual', problem: undefined, ...known };
}

export function isForbidden(object: KubeObject): boolean {
  return JSON.stringify(object).includes(FORBIDDEN);
}

/** `ip hostname` of every address, in order. */
export function addressesOf(object: KubeObject): string[] {
  const subsets = (object['subsets'] ?? []) as { addresses?: { ip: string; hostname?: string }[] }[]; // Endpoints
  const endpoints = (object['endpoints'] ?? []) as { addresses: string[]; hostname?: string }[]; // slices
  return [
    ...subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip, hostname = '' }) => `${ip} ${hostname}`)),
    ...endpoints.map(({ addresses, hostname = '' }) => `${addresses.join()} ${hostname}`),
  ];
}

/** The reserved label by its virtual key; a raw one that another client set on the host is the host's. */
export function plainLabels(
  labels: Readonly<Record<string, string>>,
  { isMapped }: Settings,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([key]) => isMapped || key !== 'release')
      .map(([key, value]) => [key.startsWith(RESERVED_LABEL) ? 'release' : key, value]),
  );
}

export function isOptedOut(object: KubeObject | undefined): boolean {
  return object?.metadata.annotations?.[OPT_OUT] !== undefined;
}

/** The host's mirroring controller wrote it, with all bookkeeping of an Endpoints copy. It also adopts a slice that a user has labelled so. */
export function isMirrored({ kind, metadata: { annotations } }: KubeObject): boolean {
  return kind === 'EndpointSlice' && annotations?.['vcluster.loft.sh/object-kind'] === '/v1, Kind=Endpoints';
}

/** The virtual object is to have a copy, if no other object has its host name. */
export function wantsCopy(plural: SyncedPlural, virtual: KubeObject | undefined, world: World): boolean {
  const { settings } = world;
  if (virtual === undefined || isOptedOut(virtual)) return false;
  const { namespace = '', name, labels = {} } = virtual.metadata;
  if (plural === 'services') return settings.areServicesSynced && wantsServiceCopy(virtual, world);
  const isSlice = plural === 'endpointslices';
  if (isSlice ? !settings.areSlicesSynced : !settings.areEndpointsSynced) return false;
  const serviceName = isSlice ? labels[SERVICE_NAME] : name;
  if (serviceName === undefined || serviceName === '') return false;
  if (isSlice && isExcludedSlice(labels, settings)) return false;
  const service = world.virtual.get('services', `${namespace}/${serviceName}`);
  if (settings.requiresService && service === undefined) return false;
  return !hasSelector(service) && !joinsForeignService({ namespace, name: serviceName }, world);
}

/** The host's Service of this name belongs to another client, or is the copy of another virtual Service. */
function joinsForeignService(virtual: NamespacedName, { host, settings }: World): boolean {
  const place = hostPlaceOf(virtual, settings);
  const service = host.get('services', keyOf(place));
  if (service === undefined) return false;
  const { annotations = {}, labels = {} } = service.metadata;
  const stated = {
    name: annotations['vcluster.loft.sh/object-name'] ?? '',
    namespace: annotations['vcluster.loft.sh/object-namespace'] ?? '',
  };
  if (![undefined, VCLUSTER].includes(labels['vcluster.loft.sh/managed-by'])) return true;
  const claims = VIRTUAL_NAMES.filter((name) => hostKeyOf(name, settings) === keyOf(place));
  // The place of one of ours says whose it is, whatever a user has written in there; of two, the one that more of it is left of.
  const isClone = ![undefined, place.name].includes(annotations['vcluster.loft.sh/object-host-name']);
  const isMarked = labels['vcluster.loft.sh/managed-by'] === VCLUSTER;
  const isProven = place.namespace === MAPPED_NAMESPACE || annotations[RECORD] !== undefined;
  if (isMarked && isProven && !isClone && hostKeyOf(stated, settings) !== keyOf(place))
    return claims.some((claim) => agreement(claim, stated) > agreement(virtual, stated));
  if (stated.name !== '') return keyOf(stated) !== keyOf(virtual);
  // Without bookkeeping, the name decides where it contains the namespace and leads to one virtual Service.
  return place.namespace === MAPPED_NAMESPACE || claims.length > 1;
}

function agreement(one: NamespacedName, other: NamespacedName): number {
  return Number(one.name === other.name) + Number(one.namespace === other.namespace);
}

/** All virtual objects with the host name of this one, itself included. */
export function rivalsOf(plural: SyncedPlural, virtual: KubeObject, world: World): readonly KubeObject[] {
  const key = hostKeyOfObject(virtual, world.settings);
  return world.virtual.list(plural).filter((other) => hostKeyOfObject(other, world.settings) === key);
}

export function hostKeyOfObject(
  { metadata: { namespace = '', name } }: KubeObject,
  settings: Settings,
): string {
  return hostKeyOf({ namespace, name }, settings);
}

export function differences(copy: KubeObject, virtual: KubeObject, world: World): string[] {
  const { annotations = {}, labels = {} } = copy.metadata;
  const expected = {
    ...expectedCopy(virtual, world),
    annotations: { ...expectedAnnotations(virtual, copy, world), ...expectedMark(copy, world) },
  };
  const ignored = /^vcluster\.loft\.sh\/(object-kind|object-host|managed-annotations)|^endpoint-syncer\//;
  // What another client added at a path that does not flow back, and the virtual object never had, is the host's.
  const isHostsOwn = (key: string): boolean => key === FORWARD && expected.annotations[key] === undefined;
  const shown = Object.fromEntries(
    Object.entries(annotations).filter(([key]) => !ignored.test(key) && !isHostsOwn(key)),
  );
  const service = labels[SERVICE_NAME];
  const isServiceLeft = isLeftEchoed(virtual, world) && isTranslated(virtual) && service !== undefined;
  const expectedLabels = { ...expected.labels, ...(isServiceLeft && { [SERVICE_NAME]: service }) };
  return [
    ...mapDifferences('annotation', shown, expected.annotations),
    ...mapDifferences('label', plainLabels(labels, world.settings), expectedLabels),
    ...(addressesOf(copy).join() === expected.addresses.join()
      ? []
      : [`addresses are ${addressesOf(copy).join()}, expected ${expected.addresses.join()}`]),
    ...(virtual.kind === 'Service' ? serviceDifferences(copy, virtual, world) : []),
  ].map((problem) => `${objectKey(copy)}: ${problem}`);
}

/** By which the host's endpoints controller spares the copy when it starts. */
function expectedMark(copy: KubeObject, { host }: World): Record<string, string> {
  const isUnserved = copy.kind === 'Endpoints' && host.get('services', objectKey(copy)) === undefined;
  return isUnserved ? { 'control-plane.alpha.kubernetes.io/leader': 'endpoint-syncer' } : {};
}

const RECORD = 'endpoint-syncer/last-synced';
/** No reverse patch knows what these were. */
const IRREVERSIBLE = [FORWARD, SECRET, CONFIG];

/** vCluster has copied the record and annotations of the copy back, and their earlier values are unknown. */
export function isLeftEchoed(
  { metadata: { annotations } }: KubeObject,
  { areEchoesForgotten, isBesideVcluster }: World,
): boolean {
  return isBesideVcluster && areEchoesForgotten && annotations?.[RECORD] !== undefined;
}

/** What came back is the same on both sides then, or what a user of the host has made of it. */
function expectedAnnotations(virtual: KubeObject, copy: KubeObject, world: World) {
  const expected: Record<string, string> = { ...expectedCopy(virtual, world).annotations };
  const { annotations = {} } = copy.metadata;
  const hasRecord = isLeftEchoed(virtual, world);
  const copiedBack = hasRecord
    ? [TEAM, ...IRREVERSIBLE].filter((key) => world.isCopiedBack(virtual, key))
    : [];
  for (const key of copiedBack) {
    const value = annotations[key];
    if (value === undefined) delete expected[key];
    else expected[key] = value;
  }
  for (const key of IRREVERSIBLE) {
    const value = virtual.metadata.annotations?.[key];
    if (value === undefined || value !== copy.metadata.annotations?.[key]) continue;
    if (hasRecord || (world.areEchoesForgotten && world.isCopiedBack(virtual, key))) expected[key] = value;
  }
  return expected;
}

function mapDifferences(
  what: string,
  actual: Readonly<Record<string, string>>,
  expected: Readonly<Record<string, string>>,
): string[] {
  const keys = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  return [...keys].flatMap((key) =>
    actual[key] === expected[key] ? [] : [`${what} ${key} is ${actual[key]}, expected ${expected[key]}`],
  );
}
