/** Builders for the objects that scenarios create. */

import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import type { JsonValue } from '../../src/base/json.ts';

export interface Address {
  ip: string;
  hostname?: string;
  nodeName?: string;
  targetRef?: Record<string, JsonValue>;
  [field: string]: JsonValue | undefined;
}

export interface Subset {
  addresses?: Address[];
  notReadyAddresses?: Address[];
  ports?: { name?: string; port: number; protocol?: string; appProtocol?: string }[];
}

export interface EndpointsOptions {
  labels?: StringMap;
  annotations?: StringMap;
  subsets?: Subset[] | null;
  finalizers?: string[];
}

/** `key` is `namespace/name`. Without subsets: one address, one port. */
export function endpoints(key: string, options: EndpointsOptions = {}): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  const { subsets = [subset('10.1.0.1')], ...metadata } = options;
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { namespace, name, ...metadata } as KubeObject['metadata'], // options hold metadata fields only
    subsets: subsets as unknown as JsonValue, // typed above, raw JSON from here
  };
}

/** Ready addresses on port 80, named `http`. */
export function subset(...ips: string[]): Subset {
  return { addresses: ips.map((ip) => ({ ip })), ports: [{ name: 'http', port: 80, protocol: 'TCP' }] };
}

/** A headless Service; without `selector` the clients write its Endpoints. */
export function service(key: string, selector?: StringMap): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: {
      clusterIP: 'None',
      ipFamilyPolicy: 'SingleStack',
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      ...(selector === undefined ? {} : { selector }),
    },
  };
}

export function subsetsOf(object: KubeObject | undefined): Subset[] {
  return (object?.['subsets'] ?? []) as unknown as Subset[]; // Endpoints objects only
}

/** Every ready IP, in order. */
export function ipsOf(object: KubeObject | undefined): string[] {
  return subsetsOf(object).flatMap(({ addresses }) => (addresses ?? []).map(({ ip }) => ip));
}
