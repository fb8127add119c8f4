/** The contents of the objects that users and other clients write. */

import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject, NamespacedName } from '../../../src/kube/object.ts';
import type { ObjectForm, ServiceType, Side, SyncedPlural } from '../history/operations.ts';
import { serviceSpec } from './service-storage.ts';

/** In what a reference must never carry to the other side; no other object holds this text. */
export const FORBIDDEN = 'FORBIDDEN';

const KINDS = {
  endpoints: 'Endpoints',
  endpointslices: 'EndpointSlice',
  services: 'Service',
  secrets: 'Secret',
  configmaps: 'ConfigMap',
};
const FORBIDDEN_TYPES = [
  'kubernetes.io/service-account-token',
  'bootstrap.kubernetes.io/token',
  'helm.sh/release.v1',
];

export function typeOf(plural: string): { apiVersion: string; kind: string } {
  const kind = Object.entries(KINDS).find(([key]) => key === plural)?.[1] ?? '';
  return { apiVersion: plural === 'endpointslices' ? 'discovery.k8s.io/v1' : 'v1', kind };
}

/** Drift on the host has other addresses and ports than any virtual object; what is left of a Service stays as it is. */
export function contentOf(
  plural: SyncedPlural,
  ips: number,
  { isDrift, current }: { readonly isDrift: boolean; readonly current?: KubeObject },
): JsonObject {
  if (plural === 'services')
    return { spec: { ...(current && specJson(current)), ports: portsOf(ips, isDrift) } };
  const network = isDrift ? '10.8.0' : '10.0.0';
  const addresses = Array.from({ length: ips }, (_, i) => ({ ip: `${network}.${i + 1}`, hostname: `h${i}` }));
  const ports = [{ port: 80, protocol: 'TCP' }];
  if (plural === 'endpoints') return { subsets: ips === 0 ? [] : [{ addresses, ports }] };
  const endpoints = addresses.map(({ ip, hostname }) => ({ addresses: [ip], hostname }));
  return { addressType: 'IPv4', endpoints, ports: ports.map((port) => ({ ...port, name: '' })) };
}

function specJson(service: KubeObject): JsonObject {
  return serviceSpec(service) as JsonObject; // JSON
}

function portsOf(count: number, isDrift: boolean): JsonObject[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `p${i}`,
    port: (isDrift ? 8080 : 80) + i,
    protocol: 'TCP',
  }));
}

export function specOf(form: ServiceType, ports: number): JsonObject {
  const common = { ports: portsOf(ports, false) };
  switch (form) {
    case 'plain':
      return common;
    case 'headless':
      return { ...common, clusterIP: 'None' };
    case 'nodePort':
      return { ...common, type: 'NodePort' };
    case 'balanced':
      return { ...common, type: 'LoadBalancer' };
    case 'classed':
      return { ...common, type: 'LoadBalancer', loadBalancerClass: 'example.com/lb' };
    case 'external':
      return { type: 'ExternalName', externalName: `db${ports}.example.com` };
    case 'selector':
      return { ...common, selector: { app: 'web' } };
  }
}

/** The forbidden content differs by side: on the host also content that only the data identify. */
export function referencedContent(
  plural: string,
  form: Exclude<ObjectForm, 'absent'>,
  { value, side }: { readonly value: string; readonly side: Side },
) {
  const encode = (text: string): string =>
    plural === 'secrets' ? Buffer.from(text).toString('base64') : text;
  const data: Record<string, string> = { value: encode(value) };
  const immutable = form === 'immutable' ? { immutable: true } : {};
  const type = plural === 'secrets' ? { type: 'Opaque' } : {};
  if (form !== 'forbidden' || plural === 'configmaps') return { ...type, ...immutable, data };
  data[FORBIDDEN] = encode(value);
  const choice = Number(value.slice(1)) % 4;
  const kubeconfig = { clusters: [], users: [{ name: 'admin' }] };
  if (choice === 3 && side === 'host')
    return { type: 'Opaque', data: { ...data, config: encode(JSON.stringify(kubeconfig)) } };
  return { type: FORBIDDEN_TYPES[choice % 3] ?? '', data };
}

/** An API server demands the annotation with the type. */
export function metadataOf(where: NamespacedName, type: string | undefined): KubeObject['metadata'] {
  const isToken = type === 'kubernetes.io/service-account-token';
  return {
    ...where,
    ...(isToken ? { annotations: { 'kubernetes.io/service-account.name': 'default' } } : {}),
  };
}
