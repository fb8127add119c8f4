/** The kinds whose sync is measured, and their objects. The node of the addresses distinguishes one state of an object from the next. */

import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';

export interface BenchKind {
  readonly kind: 'Endpoints' | 'EndpointSlice';
  /** For titles, such as `1000 Endpoints × 10 addresses`. */
  readonly plural: string;
  readonly elements: string;
  /** The key below `sync.toHost`. */
  readonly toHostKey: 'endpoints' | 'endpointSlices';
  /** In the API server's paths. */
  readonly resource: string;
  /** For patches. */
  readonly nodePath: string;
  readonly build: (metadata: KubeObject['metadata'], addresses: readonly Address[]) => KubeObject;
  /** The elements that have one address and one node each. */
  readonly elementsOf: (object: KubeObject) => readonly JsonObject[];
  readonly withElements: (object: KubeObject, elements: JsonObject[]) => KubeObject;
}

interface Address {
  readonly ip: string;
  /** All members besides the address, which are the same in both kinds. */
  readonly rest: JsonObject;
}

export const FIRST_NODE = 'node-0';
const NODE = 'nodeName';
const PORTS: JsonValue = [{ name: 'http', port: 80, protocol: 'TCP' }];

export const ENDPOINTS: BenchKind = {
  kind: 'Endpoints',
  plural: 'Endpoints',
  elements: 'addresses',
  toHostKey: 'endpoints',
  resource: 'endpoints',
  nodePath: `subsets[*].addresses[*].${NODE}`,
  build: (metadata, addresses) => ({
    metadata,
    subsets: [{ addresses: addresses.map(({ ip, rest }) => ({ ip, ...rest })), ports: PORTS }],
  }),
  elementsOf: (object) => objectsAt(object, ['subsets', 0, 'addresses']),
  withElements: (object, addresses) => {
    const [subset] = objectsAt(object, ['subsets']);
    return { ...object, subsets: [{ ...subset, addresses }] };
  },
};

export const ENDPOINT_SLICES: BenchKind = {
  kind: 'EndpointSlice',
  plural: 'EndpointSlices',
  elements: 'endpoints',
  toHostKey: 'endpointSlices',
  resource: 'endpointslices',
  nodePath: `endpoints[*].${NODE}`,
  // Only slices of a Service are synced.
  build: ({ labels, ...metadata }, addresses) => ({
    metadata: { ...metadata, labels: { ...labels, 'kubernetes.io/service-name': metadata.name } },
    addressType: 'IPv4',
    endpoints: addresses.map(({ ip, rest }) => ({ addresses: [ip], conditions: { ready: true }, ...rest })),
    ports: PORTS,
  }),
  elementsOf: (object) => objectsAt(object, ['endpoints']),
  withElements: (object, endpoints) => ({ ...object, endpoints }),
};

export function buildObject(
  { build }: BenchKind,
  { index, namespace, addresses }: { index: number; namespace: string; addresses: number },
): KubeObject {
  const name = `ep-${index}`;
  return build(
    { name, namespace, labels: { app: `app-${index % 20}` } },
    Array.from({ length: addresses }, (_, i) => ({
      ip: `10.${(index >> 8) & 255}.${index & 255}.${i + 1}`,
      rest: {
        [NODE]: FIRST_NODE,
        targetRef: { kind: 'Pod', name: `${name}-${i}`, namespace, uid: `uid-${index}-${i}` },
      },
    })),
  );
}

/** The same object with every address on another node. */
export function withNode(
  { elementsOf, withElements }: BenchKind,
  object: KubeObject,
  node: string,
): KubeObject {
  return withElements(
    object,
    elementsOf(object).map((element) => ({ ...element, [NODE]: node })),
  );
}

/** An expression appends a suffix after the first dot. */
export function nodeOf({ elementsOf }: BenchKind, copy: KubeObject): string {
  const node = elementsOf(copy)[0]?.[NODE];
  return typeof node === 'string' ? (node.split('.')[0] ?? '') : '';
}

function objectsAt(object: KubeObject, path: readonly (string | number)[]): readonly JsonObject[] {
  const value = valueAt(asJson(object), path);
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
