/** Services, for virtual clusters without vCluster: ExternalName Services, and Services without a selector whose Endpoints or slices are synced.
 * Cluster IPs and node ports are allocated by the host; the load-balancer status is synced back. */

import {
  asJson,
  ENDPOINT_SLICES,
  ENDPOINTS,
  objectKey,
  SERVICES,
  type KubeObject,
} from '../../kube/object.ts';
import {
  isJsonObject,
  jsonEquals,
  objectField,
  ownValue,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import type { KnownFields } from '../patch/check-patch.ts';
import { validateService } from '../patch/validate-object.ts';
import { asStored, listAt, NO_CONTENT } from '../translate/content.ts';
import { OBJECT_UID } from '../translate/bookkeeping.ts';
import type { ContentRules, NameTranslator } from '../translate/types.ts';
import { serviceKeysOf } from './endpoint-slices.ts';
import { balancerCrossing, type AddressField } from './load-balancers.ts';
import {
  deadNameNotice,
  namedService,
  BY_NAMED_SERVICE,
  serviceKeysIn,
  serviceNameToHost,
  unmappedNamespaceOf,
  type NameAt,
} from './service-names.ts';
import {
  hasSelector,
  OBJECT_FIELDS,
  PLAIN_KIND,
  PORT_FIELDS,
  SAMPLE_PORT,
  scalars,
  type CopyAddress,
  type GateReason,
  type Relations,
  type SyncableKind,
  type SyncedKind,
  type UnmappedNamespace,
} from './kind.ts';
import {
  EXTERNAL_NAME,
  isExternallyAccessible,
  isHeadless,
  LOAD_BALANCER,
  typeOf,
  TYPES_OF_FIELD,
} from '../../kube/service-rules.ts';

const SPEC = 'spec';
const STATUS = 'status';
const PORTS = 'ports';
const DNS_NAME = 'externalName';

/** Allocated by each API server. The spec of a headless Service sets them itself: `clusterIP: None`. */
const ALLOCATED: ReadonlySet<string> = new Set(['clusterIP', 'clusterIPs']);
const FAMILIES = 'ipFamilies';
/** Absent in the virtual Service, these fields are removed from the copy. Any other absent field keeps the host's value. */
const WITHOUT_DEFAULT: ReadonlySet<string> = new Set([
  'externalIPs',
  'externalName',
  'loadBalancerIP',
  'loadBalancerSourceRanges',
  'ports',
  'publishNotReadyAddresses',
  'selector',
  'sessionAffinityConfig',
  'trafficDistribution',
]);
const TYPES_OF_COPIED: typeof TYPES_OF_FIELD = {
  ...TYPES_OF_FIELD,
  // An ExternalName may have it, without effect.
  internalTrafficPolicy: ['ClusterIP', 'NodePort', LOAD_BALANCER],
};
/** Tenants must not take traffic of the host with addresses that they choose (CVE-2020-8554). */
const ADDRESS_FIELDS: readonly AddressField[] = ['externalIPs', 'loadBalancerIP'];

const contentRules = (allow: readonly AddressField[]): ContentRules => ({
  ...NO_CONTENT,
  members: [SPEC],
  ownMembers: [STATUS],
  toHost(virtual, { names, host }) {
    const spec = { ...specOf(virtual), ...externalNameToHost(specOf(virtual), names) };
    for (const field of withheldFields(allow)) delete spec[field];
    return { [SPEC]: specToHost(spec, host && keptSpec(virtual, host)) };
  },
  // A patch may have changed the type, or the numbers of ports.
  afterPatches: (copy, virtual, host) => ({
    [SPEC]: specToHost(specOfType(specOf(copy)), host && keptSpec(virtual, host)),
  }),
  // Only values at two-way paths are taken from it.
  toVirtual: (host, { original }) => ({
    [SPEC]: original === undefined ? null : specToVirtual(specOf(host), specOf(original), allow),
  }),
  crossingOf: (member, key) => balancerCrossing(member, key, allow),
  stored(object) {
    const spec = ownValue(object, SPEC);
    return isJsonObject(spec) ? { [SPEC]: storedSpec(spec) } : {};
  },
  claimedPaths: ({ spec }) =>
    isJsonObject(spec) && typeOf(spec) !== EXTERNAL_NAME ? ADDRESS_FIELDS.map((field) => [SPEC, field]) : [],
  haveSameShape: (a, b) => listAt(a[SPEC], PORTS).length === listAt(b[SPEC], PORTS).length,
  // A port, by its name: several ports have names.
  elementAt: ([, list, index, member]) =>
    list === PORTS && typeof index === 'number' && member !== undefined && member !== 'name'
      ? { at: 2, idMember: 'name' }
      : undefined,
});

export const serviceFields: KnownFields = {
  what: 'a Service',
  fields: {
    ...OBJECT_FIELDS,
    spec: {
      ...scalars('allocateLoadBalancerNodePorts clusterIP externalName externalTrafficPolicy'),
      ...scalars('healthCheckNodePort internalTrafficPolicy ipFamilyPolicy loadBalancerClass loadBalancerIP'),
      ...scalars('publishNotReadyAddresses sessionAffinity trafficDistribution type'),
      clusterIPs: { '*': 'value' },
      externalIPs: { '*': 'value' },
      ipFamilies: { '*': 'value' },
      loadBalancerSourceRanges: { '*': 'value' },
      ports: { '*': { ...PORT_FIELDS, ...scalars('nodePort targetPort') } },
      selector: { '*': 'value' },
      sessionAffinityConfig: { clientIP: scalars('timeoutSeconds') },
    },
    status: 'any',
  },
};

const IS_ALLOCATED = 'the host allocates its own';

export const services: SyncableKind<'services'> = {
  key: 'services',
  description: 'Whether this kind is synced to the host.',
  isEnabledByDefault: true,
  resource: SERVICES,
  fields: serviceFields,
  members: [SPEC],
  hostFields: {
    status: 'each cluster keeps its own',
    'spec.selector': 'a selector would match Pods of the host',
    'spec.clusterIP': IS_ALLOCATED,
    'spec.clusterIPs': IS_ALLOCATED,
    'spec.ipFamilies': IS_ALLOCATED,
    'spec.healthCheckNodePort': IS_ALLOCATED,
    'spec.ports.*.nodePort': IS_ALLOCATED,
  },
  create: (_settings, relations, { services: { allow } }) => createServiceKind({ ...relations, allow }),
  validation: ({ services: { allow } }) => serviceValidation(allow),
  leftBy: ({ services: { mode } }) => (mode === 'sync' ? undefined : 'endpointSyncer.services is vcluster'),
  statusPatch,
  sample: { spec: { type: 'ClusterIP', ports: [{ ...SAMPLE_PORT, targetPort: 80 }] } },
  // Without its Endpoints, a Service is not copied.
  examples: ['web', 'service'],
};

interface ServiceKindOptions extends Pick<Relations, 'hasSyncedEndpoints' | 'neverCopied'> {
  readonly allow: readonly AddressField[];
}

export function createServiceKind({
  hasSyncedEndpoints,
  allow,
  neverCopied,
}: ServiceKindOptions): SyncedKind {
  return {
    ...PLAIN_KIND,
    resource: SERVICES,
    content: contentRules(allow),
    deletionHint: '',
    translationNote: `cluster IPs and node ports in spec are allocated by the host, an externalName with .svc names the Service there${notCopied(allow)}`,
    validate: serviceValidation(allow),
    // No other Service decides whether this one is synced.
    serviceKey: () => undefined,
    hostService: () => undefined,
    indexes: { [BY_NAMED_SERVICE]: (virtual) => serviceKeysIn(namesIn(virtual)) },
    keysOfService: () => [],
    keysNaming: (service, virtual) => virtual.byIndex(BY_NAMED_SERVICE, service),
    noticesOf(virtual) {
      const dead = deadNameNotice(namesIn(virtual), neverCopied);
      return dead === undefined ? [] : [dead];
    },
    relatedKinds: {
      [ENDPOINTS.plural]: (object) => [objectKey(object)],
      [ENDPOINT_SLICES.plural]: serviceKeysOf,
    },
    isDeletedByControllers: false,
    deletesAlong: [ENDPOINTS],
    gate: (virtual) => serviceExclusion(virtual, hasSyncedEndpoints),
    unmappedNamespace,
    noticeOfGate: (reason) =>
      reason === 'selects Pods' ? { type: 'Normal', reason: 'NotSynced', note: SELECTOR_NOTE } : undefined,
    recreationOf: (wanted, actual) => (isReplaced(wanted, actual) ? 'always' : 'never'),
    leavesUnrecorded: true,
    statusPatch,
    hasStatus: true,
    addressOf,
  };
}

function serviceValidation(allow: readonly AddressField[]): SyncedKind['validate'] {
  return (before, after, options) => validateService(before, after, withheldFields(allow), options);
}

function withheldFields(allow: readonly AddressField[]): readonly AddressField[] {
  return ADDRESS_FIELDS.filter((field) => !allow.includes(field));
}

function notCopied(allow: readonly AddressField[]): string {
  const fields = withheldFields(allow).join(' and ');
  return fields === '' ? '' : `; ${fields} are copied only with endpointSyncer.services.allow`;
}

const SELECTOR_NOTE =
  'This Service has a selector, so it is not synced: no Pods are synced to the host, so nothing there would match it. ' +
  'Remove the selector and write the Endpoints or EndpointSlices yourself, or let vCluster sync Services and Pods.';

/** The selector of an ExternalName Service has no effect. */
export function serviceExclusion(
  virtual: KubeObject,
  hasSyncedEndpoints: ServiceKindOptions['hasSyncedEndpoints'],
): GateReason | undefined {
  if (typeOf(specOf(virtual)) === EXTERNAL_NAME) return undefined;
  if (hasSelector(virtual)) return 'selects Pods';
  // Its address has to be known before there is anything behind it.
  if (typeOf(specOf(virtual)) === LOAD_BALANCER) return undefined;
  return hasSyncedEndpoints(virtual) ? undefined : 'no synced endpoints';
}

function externalNameToHost(spec: JsonObject, names: NameTranslator): JsonObject {
  const name = serviceNameToHost(ownValue(spec, DNS_NAME), names);
  return name === undefined ? {} : { [DNS_NAME]: name };
}

function unmappedNamespace(virtual: KubeObject, names: NameTranslator): UnmappedNamespace | undefined {
  for (const { name, path } of namesIn(virtual)) {
    const namespace = unmappedNamespaceOf(name, names);
    if (namespace !== undefined) return { namespace, path };
  }
  return undefined;
}

function namesIn(virtual: KubeObject): readonly NameAt[] {
  const spec = specOf(virtual);
  if (typeOf(spec) !== EXTERNAL_NAME) return [];
  return [{ name: ownValue(spec, DNS_NAME), path: `${SPEC}.${DNS_NAME}` }];
}

/** The spec of the copy, without the load-balancer class if an earlier object of this name has set it: only a default of the host is kept. */
function keptSpec(virtual: KubeObject, host: KubeObject): JsonObject {
  const spec = specOf(host);
  const uid = ownValue(host.metadata.annotations ?? {}, OBJECT_UID);
  if (uid === undefined || uid === virtual.metadata.uid) return spec;
  const { loadBalancerClass: _earlier, ...rest } = spec;
  return rest;
}

function specToHost(virtual: JsonObject, host: JsonObject | undefined): JsonObject {
  const type = typeOf(virtual);
  const isVirtualHeadless = isHeadless(virtual);
  const spec: JsonObject = { type, sessionAffinity: 'None' };
  for (const [field, value] of Object.entries(virtual)) {
    const isAllocated = field === 'healthCheckNodePort' || (ALLOCATED.has(field) && !isVirtualHeadless);
    if (!isAllocated && field !== 'selector') spec[field] = value;
  }
  if (!isStillValid('externalTrafficPolicy', spec)) delete spec['externalTrafficPolicy'];
  spec['ports'] = portsToHost(virtual, host, { type, spec });
  if (!isVirtualHeadless && Object.hasOwn(spec, FAMILIES)) spec[FAMILIES] = familiesToHost(virtual, host);
  for (const [field, value] of Object.entries(host ?? {})) {
    if (Object.hasOwn(spec, field) || WITHOUT_DEFAULT.has(field)) continue;
    const isKept = isOfType(field, spec) && isStillValid(field, spec);
    const isAlike = !ALLOCATED.has(field) || isVirtualHeadless === isHeadless(host ?? {});
    if (isKept && isAlike) spec[field] = field === 'clusterIPs' ? addressesOf(spec, value) : value;
  }
  if (spec['sessionAffinity'] === 'ClientIP') keep(spec, host, 'sessionAffinityConfig');
  return spec;
}

/** Those of the virtual Service: one that the host does not have is an error of its API server, and never silently the other one. A second family
 * that is only preferred is the host's to give. */
function familiesToHost(virtual: JsonObject, host: JsonObject | undefined): JsonValue[] {
  const families = listAt(virtual, FAMILIES);
  if (virtual['ipFamilyPolicy'] !== 'PreferDualStack') return [...families];
  const given = listAt(host, FAMILIES);
  return given[0] === families[0] ? [...given] : families.slice(0, 1);
}

/** The cluster IPs that the host has allocated, without that of a family which the Service no longer has. */
function addressesOf(spec: JsonObject, allocated: JsonValue): JsonValue {
  const families = listAt(spec, FAMILIES).length;
  return families > 0 && Array.isArray(allocated) ? allocated.slice(0, families) : allocated;
}

/** Without what a patch has left of another type, as an API server drops it when the type changes. */
function specOfType(patched: JsonObject): JsonObject {
  const spec = Object.fromEntries(Object.entries(patched).filter(([field]) => isOfType(field, patched)));
  if (patched['sessionAffinity'] !== 'ClientIP') delete spec['sessionAffinityConfig'];
  return spec;
}

function isOfType(field: string, spec: JsonObject): boolean {
  return TYPES_OF_COPIED[field]?.includes(typeOf(spec)) ?? true;
}

/** The spec of the copy, with what the virtual cluster has allocated and what the copy does not get, without defaults of the host. */
function specToVirtual(host: JsonObject, virtual: JsonObject, allow: readonly AddressField[]): JsonObject {
  const isDefault = (field: string): boolean => !Object.hasOwn(virtual, field) && !WITHOUT_DEFAULT.has(field);
  const spec = Object.fromEntries(
    Object.entries(specToHost(host, virtual)).filter(([field]) => !isDefault(field)),
  );
  delete spec[FAMILIES];
  for (const field of ['selector', FAMILIES, ...withheldFields(allow)]) keep(spec, virtual, field);
  if (namedService(ownValue(spec, DNS_NAME)) !== undefined) {
    // A Service of the host: the virtual cluster does not know it.
    delete spec[DNS_NAME];
    keep(spec, virtual, DNS_NAME);
  }
  return spec;
}

/** Each port keeps the node port that the host has allocated for its number and protocol, else for its name, as an API server does. */
function portsToHost(
  virtual: JsonObject,
  host: JsonObject | undefined,
  { type, spec }: { readonly type: string; readonly spec: JsonObject },
): JsonValue[] {
  const hasNodePorts =
    type === 'NodePort' || (type === LOAD_BALANCER && spec['allocateLoadBalancerNodePorts'] !== false);
  const [ports, hostPorts] = [listAt(virtual, PORTS), listAt(host, PORTS).filter(isJsonObject)];
  const byId = new Map(hostPorts.map((port) => [portId(port), port['nodePort']]));
  const byName = new Map(hostPorts.map((port) => [port['name'] ?? '', port['nodePort']]));
  const taken = new Set(ports.filter(isJsonObject).map((port) => byId.get(portId(port))));
  return ports.map((port) => {
    if (!isJsonObject(port)) return port;
    const { nodePort: _own, ...rest } = port;
    if (!hasNodePorts) return rest;
    const named = byName.get(port['name'] ?? '');
    const nodePort = byId.get(portId(port)) ?? (taken.has(named) ? undefined : named);
    return nodePort ? { ...rest, nodePort } : rest;
  });
}

function portId({ port, protocol }: JsonObject): string {
  return JSON.stringify([port, protocol ?? 'TCP']);
}

/** `externalTrafficPolicy` needs an external address; `healthCheckNodePort` needs the policy Local. */
function isStillValid(field: string, spec: JsonObject): boolean {
  if (field === 'healthCheckNodePort') return spec['externalTrafficPolicy'] === 'Local';
  return field !== 'externalTrafficPolicy' || isExternallyAccessible(spec);
}

function keep(spec: JsonObject, host: JsonObject | undefined, field: string): void {
  const value = host && ownValue(host, field);
  if (value !== undefined && !Object.hasOwn(spec, field)) spec[field] = value;
}

function storedSpec(spec: JsonObject): JsonObject {
  const { publishNotReadyAddresses, internalTrafficPolicy, ...rest } = spec;
  const stored = asStored(rest) as JsonObject; // an object stays one
  const ports = listAt(stored, PORTS).map((port) =>
    isJsonObject(port) ? { targetPort: port['port'] ?? 0, ...port } : port,
  );
  return {
    type: 'ClusterIP',
    sessionAffinity: 'None',
    ...stored,
    ...(publishNotReadyAddresses === true ? { publishNotReadyAddresses } : {}),
    // A running watch shows the one of an ExternalName, and a read does not.
    ...(internalTrafficPolicy && isOfType('internalTrafficPolicy', spec) ? { internalTrafficPolicy } : {}),
    ...(ports.length > 0 ? { ports } : {}),
  };
}

/** Immutable: whether a Service is headless, its first IP family, its load-balancer class. */
function isReplaced(wanted: KubeObject, actual: KubeObject): boolean {
  const [next, now] = [specOf(wanted), specOf(actual)];
  if ([next, now].some((spec) => typeOf(spec) === EXTERNAL_NAME)) return false;
  if (isHeadless(next) !== isHeadless(now)) return true;
  const [family, familyNow] = [listAt(next, 'ipFamilies')[0], listAt(now, 'ipFamilies')[0]];
  if (family !== undefined && familyNow !== undefined && family !== familyNow) return true;
  const areBalanced = [next, now].every((spec) => typeOf(spec) === LOAD_BALANCER);
  return areBalanced && next['loadBalancerClass'] !== now['loadBalancerClass'];
}

/** Only the status of load balancers is meaningful in the virtual cluster. */
function statusPatch(virtual: KubeObject, host: KubeObject | undefined): JsonObject | undefined {
  if (typeOf(specOf(virtual)) !== LOAD_BALANCER) return undefined;
  const [from, to] = [host === undefined ? {} : balancerOf(host), balancerOf(virtual)];
  if (jsonEquals(asStored(from), asStored(to))) return undefined;
  const removed = Object.keys(to).filter((field) => !Object.hasOwn(from, field));
  return {
    [STATUS]: { loadBalancer: { ...from, ...Object.fromEntries(removed.map((field) => [field, null])) } },
  };
}

function balancerOf(service: KubeObject): JsonObject {
  return objectField(objectField(asJson(service), STATUS), 'loadBalancer');
}

function addressOf(host: KubeObject): CopyAddress {
  const spec = specOf(host);
  const clusterIps = listAt(spec, 'clusterIPs');
  const balancers = listAt(balancerOf(host), 'ingress').filter(isJsonObject);
  const addresses =
    typeOf(spec) === EXTERNAL_NAME
      ? [spec[DNS_NAME]]
      : [
          ...(clusterIps.length > 0 ? clusterIps : [spec['clusterIP']]),
          ...listAt(spec, 'externalIPs'),
          ...balancers.map(({ ip, hostname }) => ip ?? hostname),
        ];
  const ports = listAt(spec, PORTS).filter(isJsonObject);
  return {
    addresses: addresses.flatMap((one) => (typeof one === 'string' && one !== '' ? [one] : [])),
    ports: ports.map(({ port, nodePort, protocol }) => {
      const numbers = [port, nodePort].filter((number) => typeof number === 'number').join(':');
      return `${numbers}/${typeof protocol === 'string' ? protocol : 'TCP'}`;
    }),
  };
}

function specOf(service: KubeObject): JsonObject {
  return objectField(asJson(service), SPEC);
}
