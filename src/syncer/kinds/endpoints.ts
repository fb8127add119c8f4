/** Endpoints: `subsets` with Pod references. The Service of the same name decides whether they are synced. */

import { CONTROLLER_MANAGERS, ENDPOINTS, objectKey, type KubeObject } from '../../kube/object.ts';
import { ENDPOINTS_RULES } from '../../kube/endpoint-rules.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { KnownFields } from '../patch/check-patch.ts';
import { validateBy } from '../patch/validate-object.ts';
import { asStored, isEmpty, listAt, memberOf, NO_CONTENT } from '../translate/content.ts';
import { mapElements, mapTargetRef, podReferences, type MapTargetRef } from '../translate/pod-references.ts';
import type { ConcretePath, ContentRules, ListElement } from '../translate/types.ts';
import {
  HEADLESS_LABEL,
  NO_EFFECT,
  OBJECT_FIELDS,
  PLAIN_KIND,
  PORT_FIELDS,
  REFERENCE_FIELDS,
  SAMPLE_PORT,
  SAMPLE_TARGET,
  scalars,
  serviceGate,
  type Relations,
  type SyncableKind,
  type SyncedKind,
} from './kind.ts';
import {
  localTrafficNotice,
  sharedAddressNotice,
  type AddressHolder,
  type LocalServiceOf,
  type ServedAddress,
} from './service-notices.ts';

const SUBSETS = 'subsets';
const ADDRESS_LISTS = ['addresses', 'notReadyAddresses'] as const;
const MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
const ENDPOINTS_CONTROLLER = 'endpoint-controller';
/** The mirroring controller leaves such Endpoints alone; it acts on no other value than `true`. */
const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';
/** `--mirroring-max-endpoints-per-subset` of kube-controller-manager, by default. */
const MIRRORED_MAX = 1000;
/** Each address of a subset has each port. Of an object with more of these pairs, the names of ports are not compared. */
const PAIRS_MAX = 10_000;

export const endpointsContent: ContentRules = {
  ...NO_CONTENT,
  members: [SUBSETS],
  ...podReferences(SUBSETS, mapRefs),
  isOwnLabel: (key) => key === HEADLESS_LABEL,
  // Empty strings count as absent: kube-apiserver rejects an empty ip, nodeName or appProtocol, and omits the other fields when empty.
  stored(object) {
    const subsets = asStored(ownValue(object, SUBSETS) ?? null);
    return isEmpty(subsets) ? {} : { [SUBSETS]: subsets };
  },
  haveSameShape,
  elementAt,
};

const ADDRESS_FIELDS = { ...scalars('hostname ip nodeName'), targetRef: REFERENCE_FIELDS };

export const endpointsFields: KnownFields = {
  what: 'an Endpoints',
  fields: {
    ...OBJECT_FIELDS,
    subsets: {
      '*': {
        addresses: { '*': ADDRESS_FIELDS },
        notReadyAddresses: { '*': ADDRESS_FIELDS },
        ports: { '*': PORT_FIELDS },
      },
    },
  },
};

export const validateEndpoints = validateBy(() => ENDPOINTS_RULES);

export const endpoints: SyncableKind<'endpoints'> = {
  key: 'endpoints',
  description: 'Whether Endpoints are synced to the host.',
  isEnabledByDefault: true,
  resource: ENDPOINTS,
  fields: endpointsFields,
  members: endpointsContent.members,
  create: ({ patches }, { slicesOf, localServiceOf }) =>
    createEndpointsKind({ slicesOf, localServiceOf: localServiceOf(patches) }),
  validation: () => validateEndpoints,
  sample: { subsets: [{ addresses: [{ ...SAMPLE_TARGET, ip: '192.0.2.1' }], ports: [SAMPLE_PORT] }] },
  examples: ['web'],
  migration: {
    differences: [
      { differs: 'those without a Service are synced too', setting: 'endpointSyncer.requireService: true' },
      {
        differs: 'a copy that is deleted on the host is created again',
        setting: 'endpointSyncer.onHostDelete: deleteVirtual',
      },
    ],
    gains: ['Endpoints without a Service'],
  },
};

interface EndpointsOptions extends Pick<Relations, 'slicesOf'> {
  readonly localServiceOf: LocalServiceOf;
}

function createEndpointsKind({ slicesOf, localServiceOf }: EndpointsOptions): SyncedKind {
  return {
    ...ENDPOINTS_KIND,
    noticesOf(virtual) {
      if (!isMirrored(virtual)) return [];
      const service = objectKey(virtual);
      const shared = sharedAddressNotice(service, addressesOfEndpoints(virtual), slicesOf(service));
      const local = localTrafficNotice(localServiceOf(service), nodeNamesOf(virtual), NODE_NAME_PATH);
      const mirrored = portNameNotice(virtual) ?? truncationNotice(virtual);
      return [shared, mirrored, local].filter((notice) => notice !== undefined);
    },
  };
}

const ENDPOINTS_KIND: SyncedKind = {
  ...PLAIN_KIND,
  resource: ENDPOINTS,
  content: endpointsContent,
  deletionHint:
    " The host's endpoints controller deletes Endpoints that have no Service: create a Service of this name without a selector.",
  translationNote:
    'Pod targetRefs in subsets get the names of the host Pods, or are left out where there are none',
  validate: validateEndpoints,
  isSparedWithMark: true,
  serviceKey: (key) => key,
  hostService: objectKey,
  keysOfService: (service) => [service],
  gate: (_virtual, service, options) => serviceGate(service, options),
  // The label exists since Kubernetes 1.33. A missing annotation proves nothing: objects of other clients have none either.
  isMadeByController({ metadata: { labels, managedFields = [] } }: KubeObject): boolean {
    return (
      labels?.[MANAGED_BY] === ENDPOINTS_CONTROLLER ||
      managedFields.some(({ manager }) => CONTROLLER_MANAGERS.has(manager))
    );
  },
};

/** Beside no slices. */
export const endpointsKind = createEndpointsKind({ slicesOf: () => [], localServiceOf: () => undefined });

const NODE_NAME_PATH = 'subsets[*].addresses[*].nodeName';

function nodeNamesOf(endpoints: KubeObject): readonly (JsonValue | undefined)[] {
  return subsetsOf(endpoints).flatMap((subset) =>
    listAt(subset, 'addresses')
      .filter(isJsonObject)
      .map((address) => ownValue(address, 'nodeName')),
  );
}

function mapRefs(subsets: JsonValue, map: MapTargetRef): JsonValue {
  return mapElements(subsets, (subset) => {
    let result = subset;
    for (const list of ADDRESS_LISTS) {
      const addresses = ownValue(subset, list);
      if (addresses === undefined) continue;
      const mapped = mapElements(addresses, (address) => mapTargetRef(address, map));
      if (mapped !== addresses) result = { ...result, [list]: mapped };
    }
    return result;
  });
}

function haveSameShape(a: JsonObject, b: JsonObject): boolean {
  const [ours, theirs] = [listAt(a, SUBSETS), listAt(b, SUBSETS)];
  const lists = [...ADDRESS_LISTS, 'ports'];
  const isSame = (subset: JsonValue, other: JsonValue | undefined): boolean =>
    lists.every((list) => listAt(subset, list).length === listAt(other, list).length);
  return ours.length === theirs.length && ours.every((subset, i) => isSame(subset, theirs[i]));
}

function elementAt([, , list, index, member]: ConcretePath): ListElement | undefined {
  const isInAddress =
    typeof index === 'number' && member !== undefined && member !== 'ip' && list !== 'ports';
  return isInAddress ? { at: 3, idMember: 'ip' } : undefined;
}

export function addressesOfEndpoints(object: KubeObject): AddressHolder {
  return { object, kind: ENDPOINTS.kind, served };
}

function* served(object: KubeObject): Generator<ServedAddress> {
  for (const subset of subsetsOf(object)) {
    const ports = listAt(subset, 'ports').filter(isJsonObject);
    for (const list of ADDRESS_LISTS)
      for (const address of listAt(subset, list).filter(isJsonObject))
        yield { ip: ownValue(address, 'ip'), ports, isReady: list === 'addresses' };
  }
}

/** What the host's mirroring controller leaves out of its slices is reported there, on the copy alone. */
function truncationNotice(object: KubeObject): RecordedEvent | undefined {
  for (const [at, subset] of subsetsOf(object).entries()) {
    const count = ADDRESS_LISTS.reduce((sum, list) => sum + listAt(subset, list).length, 0);
    if (count <= MIRRORED_MAX) continue;
    const note =
      `subsets[${at}] has ${count} addresses, and the host's mirroring controller takes ${MIRRORED_MAX} of them into EndpointSlices, those that ` +
      `are ready first: ${count - MIRRORED_MAX} get no traffic. Write EndpointSlices in the place of this object, each with up to 1000 endpoints.`;
    return { type: 'Warning', reason: 'TooManyAddresses', note };
  }
  return undefined;
}

function portNameNotice(object: KubeObject): RecordedEvent | undefined {
  const name = ambiguousPortName(object);
  if (name === undefined) return undefined;
  const ports = name === '' ? 'ports without a name' : `ports of the name ${JSON.stringify(name)}`;
  const note =
    `Addresses have two ${ports}, for which the host's mirroring controller can make no EndpointSlice: it makes none of this object, and keeps those ` +
    'of an earlier state. Give each port a name of its own, or write EndpointSlices in the place of this object, one for each port.';
  return { ...NO_EFFECT, note };
}

/** The mirroring controller joins ports with the same addresses to one slice, in which each needs a name of its own (Kubernetes 1.37). */
export function ambiguousPortName(object: KubeObject): JsonValue | undefined {
  const joined = Map.groupBy(mirroredPorts(object), ({ ready }) =>
    JSON.stringify([...ready].map((address) => JSON.stringify(address)).toSorted()),
  );
  for (const ports of joined.values()) {
    const names = new Set<JsonValue>();
    for (const { name } of ports) {
      if (names.has(name)) return name;
      names.add(name);
    }
  }
  return undefined;
}

interface MirroredPort {
  readonly name: JsonValue;
  /** By IP; an address that is in both lists is not ready. */
  readonly ready: Map<JsonValue | undefined, boolean>;
}

/** Each port once, with its addresses in all subsets; none if there is one alone, or too much to look at. */
function mirroredPorts(object: KubeObject): Iterable<MirroredPort> {
  if (subsetsOf(object).flatMap((subset) => listAt(subset, 'ports')).length < 2) return [];
  const byPort = new Map<string, MirroredPort>();
  let pairs = 0;
  for (const { ip, ports, isReady } of served(object)) {
    pairs += ports.length;
    if (pairs > PAIRS_MAX) return [];
    for (const { name = '', port = null, protocol = 'TCP', appProtocol = null } of ports) {
      const key = JSON.stringify([name, port, protocol, appProtocol]);
      const { ready } = byPort.getOrInsertComputed(key, () => ({ name, ready: new Map() }));
      ready.set(ip, isReady && (ready.get(ip) ?? true));
    }
  }
  return byPort.values();
}

/** The host makes slices of the copy. */
export function isMirrored({ metadata: { labels } }: KubeObject): boolean {
  return labels?.[SKIP_MIRROR] !== 'true';
}

function subsetsOf(object: KubeObject): readonly JsonValue[] {
  return listAt({ [SUBSETS]: memberOf(object, SUBSETS) }, SUBSETS);
}
