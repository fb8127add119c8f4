/** EndpointSlices. Those that a controller generates from another object are skipped: the host's own controllers generate theirs. */

import {
  ENDPOINT_SLICES,
  keyOf,
  objectKey,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectKey,
  type StringMap,
} from '../../kube/object.ts';
import { isJsonObject, objectField, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asStored, isEmpty, listAt, memberOf } from '../translate/content.ts';
import { recordOf } from '../translate/last-synced.ts';
import { mapElements, mapTargetRef, podReferences, type MapTargetRef } from '../translate/pod-references.ts';
import type {
  ConcretePath,
  ContentRules,
  ListElement,
  NameTranslator,
  VirtualPlace,
} from '../translate/types.ts';
import type { KnownFields } from '../patch/check-patch.ts';
import { validateBy } from '../patch/validate-object.ts';
import { sliceRules } from '../../kube/endpoint-rules.ts';
import {
  BY_SERVICE,
  HEADLESS_LABEL,
  OBJECT_FIELDS,
  PLAIN_KIND,
  PORT_FIELDS,
  REFERENCE_FIELDS,
  SAMPLE_PORT,
  SAMPLE_TARGET,
  scalars,
  serviceGate,
  type GateReason,
  type Recreation,
  type Relations,
  type SyncableKind,
  type SyncedKind,
  type UnmappedNamespace,
} from './kind.ts';
import {
  BY_NAMED_SERVICE,
  deadNameNotice,
  namedService,
  serviceKeysIn,
  serviceNameToHost,
  serviceNameToVirtual,
  unmappedNamespaceOf,
  type NameAt,
} from './service-names.ts';
import {
  localTrafficNotice,
  sharedAddressNotice,
  type AddressHolder,
  type LocalServiceOf,
  type ServedAddress,
} from './service-notices.ts';

export const SERVICE_NAME = 'kubernetes.io/service-name';
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
export const MIRRORING_CONTROLLER = 'endpointslicemirroring-controller.k8s.io';
const GENERATED: Readonly<Record<string, GateReason>> = {
  [SLICE_CONTROLLER]: 'made by the EndpointSlice controller',
  [MIRRORING_CONTROLLER]: 'mirrored from Endpoints',
};
/** Replaces the name of the mirroring controller on copies: the host's mirroring controller would adopt them. */
const OURS = 'endpoint-syncer';
/** The field manager of vCluster. */
const VCLUSTER = 'vcluster';
const ENDPOINTS_MEMBER = 'endpoints';
const PORTS_MEMBER = 'ports';

export interface EndpointSliceOptions extends Pick<
  Relations,
  'isEndpointsSynced' | 'addressesOf' | 'neverCopied'
> {
  readonly localServiceOf: LocalServiceOf;
}

const podRefs = podReferences(ENDPOINTS_MEMBER, mapRefs);

export const endpointSliceContent: ContentRules = {
  members: [ENDPOINTS_MEMBER, PORTS_MEMBER],
  ownMembers: [],
  toHost(virtual, place) {
    const content = podRefs.toHost(virtual, place);
    const map = (name: JsonValue): readonly JsonValue[] => [serviceNameToHost(name, place.names) ?? name];
    return isOfNames(virtual) ? mapAddresses(content, map) : content;
  },
  toVirtual(host, place) {
    const content = podRefs.toVirtual(host, place);
    return isOfNames(host) ? mapAddresses(content, addressToVirtual(place)) : content;
  },
  ownLabels,
  isOwnLabel: (key) => [SERVICE_NAME, MANAGED_BY, HEADLESS_LABEL].includes(key),
  ownLabelsToVirtual,
  stored(object) {
    const stored: JsonObject = {};
    for (const member of [ENDPOINTS_MEMBER, PORTS_MEMBER]) {
      const value = asStored(ownValue(object, member) ?? null, isOmitted);
      if (!isEmpty(value)) stored[member] = value;
    }
    if (ENDPOINTS_MEMBER in stored)
      stored[ENDPOINTS_MEMBER] = mapElements(stored[ENDPOINTS_MEMBER] ?? null, withoutTopology);
    const ports = listAt(stored, PORTS_MEMBER);
    // A port without a number means all ports. The API server still defaults its protocol.
    if (ports.length > 0) stored[PORTS_MEMBER] = ports.map(withProtocol);
    return stored;
  },
  haveSameShape(a, b) {
    const lengths = (object: JsonObject): number[] => [
      listAt(object, PORTS_MEMBER).length,
      ...listAt(object, ENDPOINTS_MEMBER).map((endpoint) => listAt(endpoint, 'addresses').length),
    ];
    return lengths(a).join() === lengths(b).join();
  },
  elementAt,
};

export const endpointSliceFields: KnownFields = {
  what: 'an EndpointSlice',
  fields: {
    ...OBJECT_FIELDS,
    addressType: 'value',
    endpoints: {
      '*': {
        ...scalars('hostname nodeName zone'),
        addresses: { '*': 'value' },
        conditions: scalars('ready serving terminating'),
        hints: { forNodes: { '*': scalars('name') }, forZones: { '*': scalars('name') } },
        targetRef: REFERENCE_FIELDS,
      },
    },
    ports: { '*': PORT_FIELDS },
  },
};

export const validateEndpointSlice = validateBy(sliceRules);

export const endpointSlices: SyncableKind<'endpointSlices'> = {
  key: 'endpointSlices',
  description:
    'Whether EndpointSlices are synced to the host. Slices that a controller of the virtual cluster manages are not.',
  isEnabledByDefault: true,
  resource: ENDPOINT_SLICES,
  fields: endpointSliceFields,
  members: endpointSliceContent.members,
  create: ({ patches }, { localServiceOf, ...relations }) =>
    createEndpointSliceKind({ ...relations, localServiceOf: localServiceOf(patches) }),
  validation: () => validateEndpointSlice,
  isAdopted: (host) => exclusion(host, { isEndpointsSynced: true }) !== undefined,
  sample: {
    addressType: 'IPv4',
    endpoints: [{ ...SAMPLE_TARGET, addresses: ['192.0.2.1'] }],
    ports: [SAMPLE_PORT],
  },
  examples: ['slice'],
  migration: {
    differences: [
      { differs: "slices that controllers derive are left to the host's controllers", setting: '-' },
    ],
    // vCluster 0.37 reads EndpointSlices of the host whatever it syncs: without the rule, it does not become ready.
    keptRules: [
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
    ],
  },
};

export function createEndpointSliceKind(options: EndpointSliceOptions): SyncedKind {
  return {
    ...PLAIN_KIND,
    resource: ENDPOINT_SLICES,
    content: endpointSliceContent,
    labelSelector: `${MANAGED_BY} notin (${generatorsOf(options).join(', ')})`,
    deletionHint: '',
    translationNote:
      'Pod targetRefs in endpoints get the names of the host Pods, or are left out where there are none; an FQDN address with .svc names the Service there',
    validate: validateEndpointSlice,
    serviceKey: (_key, virtual) => virtual && serviceKeyOf(virtual),
    hostService: serviceKeyOf,
    indexes: {
      [BY_SERVICE]: serviceKeysOf,
      [BY_NAMED_SERVICE]: (slice) => serviceKeysIn(namesIn(slice)),
    },
    keysNaming: (service, virtual) => virtual.byIndex(BY_NAMED_SERVICE, service),
    keysOfService: (service, virtual) => virtual.byIndex(BY_SERVICE, service),
    gate: (virtual, service, gateOptions) => exclusion(virtual, options) ?? serviceGate(service, gateOptions),
    unmappedNamespace,
    recreationOf,
    hasStandIn: (wanted, actual) => !isForOtherReaders(wanted, actual),
    noticesOf(virtual) {
      const service = serviceKeyOf(virtual);
      if (service === undefined) return [];
      const key = objectKey(virtual);
      const isOther = ({ kind, object }: AddressHolder): boolean =>
        kind !== ENDPOINT_SLICES.kind || objectKey(object) !== key;
      const others = Iterator.from(options.addressesOf(service)).filter(isOther);
      const shared = sharedAddressNotice(service, addressesOfSlice(virtual), others);
      const dead = deadNameNotice(namesIn(virtual), options.neverCopied);
      const local = localTrafficNotice(
        options.localServiceOf(service),
        nodeNamesOf(virtual),
        'endpoints[*].nodeName',
      );
      return [shared, dead, local].filter((notice) => notice !== undefined);
    },
  };
}

/** The address type is immutable. kube-proxy keeps the addresses of a slice by its Service, so that one that moves stays in the old Service as well.
 * A controller cannot update a slice that is its own no longer, and then makes no other one for the Service either: it has to see a deletion. */
function recreationOf(wanted: KubeObject, actual: KubeObject, virtual: KubeObject): Recreation {
  const manager = actual.metadata.labels?.[MANAGED_BY] ?? OURS;
  const isOtherManager = manager !== OURS && wanted.metadata.labels?.[MANAGED_BY] !== manager;
  if (isOtherManager || wanted['addressType'] !== actual['addressType']) return 'always';
  const isMoved = isForOtherReaders(wanted, actual) && !isLabelledByVcluster(actual, virtual);
  return isMoved ? 'forReaders' : 'never';
}

/** vCluster labels its copies, this one too, with the name that the Service has in the virtual cluster, and deletes the virtual slice whose copy is
 * deleted. What readers keep, they keep under the name of a Service that the host does not have: with one, the copy is deleted before this is asked. */
function isLabelledByVcluster(actual: KubeObject, virtual: KubeObject): boolean {
  const service = actual.metadata.labels?.[SERVICE_NAME];
  const isVirtual = service === virtual.metadata.labels?.[SERVICE_NAME];
  return isVirtual && recordOf(actual) !== undefined && isWrittenLastBy(VCLUSTER, actual);
}

/** Times are whole seconds: another writer of the same second does not count. */
function isWrittenLastBy(manager: string, { metadata: { managedFields = [] } }: KubeObject): boolean {
  const lastMs = (of: readonly ManagedFieldsEntry[]): number =>
    Math.max(0, ...of.map(({ time = '' }) => Date.parse(time) || 0));
  const own = managedFields.filter((entry) => entry.manager === manager);
  return own.length > 0 && lastMs(own) === lastMs(managedFields);
}

/** The addresses are those of another Service or family. */
function isForOtherReaders(wanted: KubeObject, actual: KubeObject): boolean {
  return (
    wanted['addressType'] !== actual['addressType'] ||
    wanted.metadata.labels?.[SERVICE_NAME] !== actual.metadata.labels?.[SERVICE_NAME]
  );
}

export function exclusion(
  { metadata: { labels } }: KubeObject,
  options: Pick<EndpointSliceOptions, 'isEndpointsSynced'>,
): GateReason | undefined {
  if (!labels?.[SERVICE_NAME]) return 'no service name';
  const manager = labels[MANAGED_BY] ?? '';
  return generatorsOf(options).includes(manager) ? GENERATED[manager] : undefined;
}

function generatorsOf({
  isEndpointsSynced,
}: Pick<EndpointSliceOptions, 'isEndpointsSynced'>): readonly string[] {
  return isEndpointsSynced ? [SLICE_CONTROLLER, MIRRORING_CONTROLLER] : [SLICE_CONTROLLER];
}

function serviceKeyOf({ metadata: { namespace = '', labels } }: KubeObject): ObjectKey | undefined {
  const name = labels?.[SERVICE_NAME];
  return name === undefined || name === '' ? undefined : keyOf({ namespace, name });
}

export function serviceKeysOf(slice: KubeObject): readonly ObjectKey[] {
  const key = serviceKeyOf(slice);
  return key === undefined ? [] : [key];
}

function ownLabels({ metadata: { namespace = '', labels } }: KubeObject, names: NameTranslator): StringMap {
  const own: StringMap = {};
  const service = labels?.[SERVICE_NAME];
  const host = service === undefined ? undefined : names.toHost({ namespace, name: service });
  if (service !== undefined && host !== undefined) {
    // Another syncer has copied the translated name of a Service of this namespace back. Translated again, it would belong to none.
    const originals = names.toVirtualCandidates({ namespace: host.namespace, name: service });
    const isTranslated = originals.some((original) => original.namespace === namespace);
    own[SERVICE_NAME] = isTranslated ? service : host.name;
  }
  const manager = labels?.[MANAGED_BY];
  if (manager !== undefined) own[MANAGED_BY] = manager === MIRRORING_CONTROLLER ? OURS : manager;
  return own;
}

function ownLabelsToVirtual({ metadata }: KubeObject, namespace: string, names: NameTranslator): StringMap {
  const { namespace: hostNamespace = '', labels = {} } = metadata;
  const [service, manager] = [labels[SERVICE_NAME], labels[MANAGED_BY]];
  const candidates =
    service === undefined ? [] : names.toVirtualCandidates({ namespace: hostNamespace, name: service });
  const original = candidates.find((candidate) => candidate.namespace === namespace);
  return {
    ...(original === undefined ? {} : { [SERVICE_NAME]: original.name }),
    ...(manager === undefined ? {} : { [MANAGED_BY]: manager === OURS ? MIRRORING_CONTROLLER : manager }),
  };
}

function isOfNames(slice: KubeObject): boolean {
  return slice['addressType'] === 'FQDN';
}

function mapAddresses(content: JsonObject, map: (address: JsonValue) => readonly JsonValue[]): JsonObject {
  const mapped = mapElements(content[ENDPOINTS_MEMBER] ?? null, (endpoint) => ({
    ...endpoint,
    ...(Array.isArray(endpoint['addresses']) ? { addresses: endpoint['addresses'].flatMap(map) } : {}),
  }));
  return { ...content, [ENDPOINTS_MEMBER]: mapped };
}

/** A Service of the host that is no copy is left out, so that no change of this list flows back: the virtual cluster does not know it. */
function addressToVirtual({ names, original }: VirtualPlace): (address: JsonValue) => readonly JsonValue[] {
  const known = new Map(
    namesIn(original).map(({ name }) => [serviceNameToHost(name, names) ?? name, name] as const),
  );
  return (address) => {
    const virtual = known.get(address) ?? serviceNameToVirtual(address, names);
    if (virtual !== undefined) return [virtual];
    return namedService(address) === undefined ? [address] : [];
  };
}

/** On the host, the name as it is would lead to a Service of others. */
function unmappedNamespace(virtual: KubeObject, names: NameTranslator): UnmappedNamespace | undefined {
  for (const { name, path } of namesIn(virtual)) {
    const namespace = unmappedNamespaceOf(name, names);
    if (namespace !== undefined) return { namespace, path };
  }
  return undefined;
}

/** The addresses of an FQDN slice, and their paths. */
function namesIn(slice: KubeObject | undefined): readonly (NameAt & { readonly name: JsonValue })[] {
  if (slice === undefined || !isOfNames(slice)) return [];
  const endpoints = { [ENDPOINTS_MEMBER]: memberOf(slice, ENDPOINTS_MEMBER) };
  return listAt(endpoints, ENDPOINTS_MEMBER).flatMap((endpoint, i) =>
    listAt(endpoint, 'addresses').map((name, j) => ({
      name,
      path: `${ENDPOINTS_MEMBER}[${i}].addresses[${j}]`,
    })),
  );
}

function mapRefs(endpoints: JsonValue, map: MapTargetRef): JsonValue {
  return mapElements(endpoints, (endpoint) => mapTargetRef(endpoint, map));
}

function withProtocol(port: JsonValue): JsonValue {
  return isJsonObject(port) ? { protocol: 'TCP', ...port } : port;
}

/** A request in v1 cannot write the topology: an API server leaves it out, and keeps that of slices of v1beta1 until their endpoints change. */
function withoutTopology(endpoint: JsonObject): JsonObject {
  if (!Object.hasOwn(endpoint, 'deprecatedTopology')) return endpoint;
  const { deprecatedTopology: _, ...rest } = endpoint;
  return rest;
}

/** An API server returns empty conditions and hints as `{}`. */
function isOmitted(value: JsonValue): boolean {
  return isEmpty(value) || (isJsonObject(value) && Object.keys(value).length === 0);
}

function elementAt([root, index, member]: ConcretePath): ListElement | undefined {
  const isInEndpoint =
    root === ENDPOINTS_MEMBER && typeof index === 'number' && member !== undefined && member !== 'addresses';
  return isInEndpoint ? { at: 1, idMember: 'addresses' } : undefined;
}

function nodeNamesOf(slice: KubeObject): readonly (JsonValue | undefined)[] {
  const endpoints = { [ENDPOINTS_MEMBER]: memberOf(slice, ENDPOINTS_MEMBER) };
  return listAt(endpoints, ENDPOINTS_MEMBER)
    .filter(isJsonObject)
    .map((endpoint) => ownValue(endpoint, 'nodeName'));
}

export function addressesOfSlice(object: KubeObject): AddressHolder {
  return { object, kind: ENDPOINT_SLICES.kind, served };
}

function* served(slice: KubeObject): Generator<ServedAddress> {
  const content = {
    [PORTS_MEMBER]: memberOf(slice, PORTS_MEMBER),
    [ENDPOINTS_MEMBER]: memberOf(slice, ENDPOINTS_MEMBER),
  };
  const ports = listAt(content, PORTS_MEMBER).filter(isJsonObject);
  for (const endpoint of listAt(content, ENDPOINTS_MEMBER).filter(isJsonObject)) {
    // Unknown counts as ready.
    const isReady = objectField(endpoint, 'conditions')['ready'] !== false;
    for (const ip of listAt(endpoint, 'addresses')) yield { ip, ports, isReady };
  }
}
