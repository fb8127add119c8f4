/**
 * The expected host copy, computed from the rules independently of the program under test: long names, labels,
 * annotations, Pod references. Single-namespace mode, no patches.
 */

import { createHash } from 'node:crypto';
import type { KubeObject, NamespacedName, StringMap } from '../../src/kube/object.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { subsetsOf, type Address } from './objects.ts';

export const LAST_SYNCED = 'endpoint-syncer/last-synced';
export const MANAGED = 'vcluster.loft.sh/managed-annotations';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';
export const MARKER = 'vcluster.loft.sh/managed-by';

/** What two copies are compared by: all that a user can see, without what the API server sets and our private record. */
export interface CopyView {
  readonly labels: StringMap;
  readonly annotations: StringMap;
  readonly subsets: JsonValue;
}

export interface Placement {
  readonly vcluster: string;
  readonly hostNamespace: string;
}

export function hostNameOf(place: Placement, namespace: string, name: string): string {
  return safeConcat(name, 'x', namespace, 'x', place.vcluster);
}

export function viewOf(copy: KubeObject): CopyView {
  const annotations = { ...copy.metadata.annotations };
  delete annotations[LAST_SYNCED];
  return { labels: copy.metadata.labels ?? {}, annotations, subsets: raw(subsetsOf(copy)) };
}

/** `hasService`: the host has a Service of this name. Without one, the copy is marked for the controllers of the host. */
export function expectedCopy(virtual: KubeObject, place: Placement, hasService: boolean): CopyView {
  const { name, namespace = '', uid = '' } = virtual.metadata;
  const copied = { ...virtual.metadata.annotations };
  delete copied[LEADER];
  const host = { namespace: place.hostNamespace, name: hostNameOf(place, namespace, name) };
  const managed = Object.keys(copied).sort().join('\n');
  return {
    labels: expectedLabels(virtual, place),
    annotations: {
      ...copied,
      ...bookkeeping('Endpoints', { namespace, name, uid }, host),
      ...(managed === '' ? {} : { [MANAGED]: managed }),
      ...(hasService ? {} : { [LEADER]: 'endpoint-syncer' }),
    },
    subsets: raw(
      subsetsOf(virtual).map((subset) => ({
        ...subset,
        ...mapped('addresses', subset.addresses, namespace, place),
        ...mapped('notReadyAddresses', subset.notReadyAddresses, namespace, place),
      })),
    ),
  };
}

const OBJECT_KINDS = {
  Endpoints: '/v1, Kind=Endpoints',
  EndpointSlice: 'discovery.k8s.io/v1, Kind=EndpointSlice',
  Service: '/v1, Kind=Service',
  Secret: '/v1, Kind=Secret',
} as const;

export type CopiedKind = keyof typeof OBJECT_KINDS;

/** The annotations with which a copy names its original and its own place. */
export function bookkeeping(
  kind: CopiedKind,
  virtual: NamespacedName & { readonly uid?: string },
  host: NamespacedName,
): StringMap {
  return {
    'vcluster.loft.sh/object-name': virtual.name,
    'vcluster.loft.sh/object-namespace': virtual.namespace,
    'vcluster.loft.sh/object-uid': virtual.uid ?? 'u',
    'vcluster.loft.sh/object-kind': OBJECT_KINDS[kind],
    'vcluster.loft.sh/object-host-name': host.name,
    'vcluster.loft.sh/object-host-namespace': host.namespace,
  };
}

function expectedLabels(virtual: KubeObject, place: Placement): StringMap {
  const rewritten = new Set([
    'release',
    'vcluster.loft.sh/namespace',
    MARKER,
    'vcluster.loft.sh/controlled-by',
  ]);
  const labels: StringMap = {};
  for (const [key, value] of Object.entries(virtual.metadata.labels ?? {})) {
    const digest = createHash('sha256').update(key).digest('hex').slice(0, 10);
    const hostKey = rewritten.has(key)
      ? safeConcat('vcluster.loft.sh/label', place.vcluster, 'x', digest)
      : key;
    labels[hostKey] = value;
  }
  return {
    ...labels,
    [MARKER]: place.vcluster,
    'vcluster.loft.sh/namespace': virtual.metadata.namespace ?? '',
  };
}

function mapped(
  field: string,
  addresses: Address[] | undefined,
  namespace: string,
  place: Placement,
): Record<string, Address[]> {
  if (addresses === undefined) return {};
  return { [field]: addresses.map((address) => mappedAddress(address, namespace, place)) };
}

function mappedAddress(address: Address, namespace: string, place: Placement): Address {
  const ref = address.targetRef;
  if (ref?.['kind'] !== 'Pod') return address;
  const { uid: _uid, resourceVersion: _resourceVersion, ...kept } = ref;
  const podName = typeof ref['name'] === 'string' ? ref['name'] : '';
  const podNamespace = typeof ref['namespace'] === 'string' ? ref['namespace'] : namespace;
  return {
    ...address,
    targetRef: {
      ...kept,
      name: hostNameOf(place, podNamespace, podName),
      namespace: place.hostNamespace,
    },
  };
}

export function safeConcat(...parts: string[]): string {
  const joined = parts.join('-');
  if (Buffer.byteLength(joined) <= 63) return joined;
  const digest = createHash('sha256').update(joined).digest('hex').slice(0, 10);
  return `${Buffer.from(joined).subarray(0, 52).toString()}-${digest}`.replaceAll('.-', '-');
}

function raw(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}
