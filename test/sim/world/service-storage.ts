/** The handling of a Service by an API server: it allocates cluster IPs and node ports, keeps the status apart, and rejects what is immutable. */

import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import { failure } from '../../../src/kube/status-error.ts';

export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly nodePort?: number;
}

export interface ServiceSpec {
  readonly type?: string;
  readonly clusterIP?: string;
  readonly externalName?: string;
  readonly loadBalancerClass?: string;
  readonly ports?: readonly ServicePort[];
  readonly selector?: Readonly<Record<string, string>>;
}

/** The clusters allocate from ranges of their own, so that a value of the wrong one is seen. */
export const NETWORKS: Readonly<Record<ClusterName, string>> = { host: '10.96.0.', virtual: '10.97.0.' };
const FIRST_NODE_PORTS: Readonly<Record<ClusterName, number>> = { host: 30_000, virtual: 31_000 };

export class ServiceStorage {
  readonly #cluster: ClusterName;
  #allocated = 0;

  constructor(cluster: ClusterName) {
    this.#cluster = cluster;
  }

  stored(given: KubeObject, previous: KubeObject | undefined): KubeObject {
    const spec = this.#spec(serviceSpec(given), previous && serviceSpec(previous));
    return { ...given, spec: spec as JsonObject, status: previous?.['status'] ?? { loadBalancer: {} } }; // JSON
  }

  #spec(given: ServiceSpec, previous: ServiceSpec | undefined): ServiceSpec {
    const { type = 'ClusterIP', clusterIP, ...rest } = given;
    checkClass(given, previous);
    const ports = this.#ports(given.ports ?? [], type);
    const spec = { sessionAffinity: 'None', ...rest, type, ...(ports.length > 0 ? { ports } : {}) };
    if (type === 'ExternalName') {
      if (clusterIP) throw invalid('clusterIP: may not be set for an ExternalName');
      return spec;
    }
    const known = previous?.clusterIP;
    if (known && clusterIP && clusterIP !== known) throw invalid('clusterIP: field is immutable');
    return { ...spec, clusterIP: (clusterIP || known) ?? `${NETWORKS[this.#cluster]}${++this.#allocated}` };
  }

  /** A node port that is not named is another one each time. */
  #ports(ports: readonly ServicePort[], type: string): readonly ServicePort[] {
    if (type === 'NodePort' || type === 'LoadBalancer')
      return ports.map((port) => ({
        ...port,
        nodePort: port.nodePort ?? FIRST_NODE_PORTS[this.#cluster] + ++this.#allocated,
      }));
    if (ports.some(({ nodePort }) => nodePort !== undefined))
      throw invalid(`nodePort: may not be used for ${type}`);
    return ports;
  }
}

export function serviceSpec(service: KubeObject): ServiceSpec {
  return (service['spec'] ?? {}) as ServiceSpec; // as every writer of the simulation creates them
}

export function ingressOf(service: KubeObject): readonly JsonValue[] {
  const status = service['status'] as { loadBalancer?: { ingress?: readonly JsonValue[] } } | undefined; // a Service
  return status?.loadBalancer?.ingress ?? [];
}

export function isHeadless(service: KubeObject): boolean {
  return serviceSpec(service).clusterIP === 'None';
}

function checkClass(given: ServiceSpec, previous: ServiceSpec | undefined): void {
  const isBalanced = given.type === 'LoadBalancer';
  if (!isBalanced && given.loadBalancerClass !== undefined)
    throw invalid('loadBalancerClass: may only be used for a LoadBalancer');
  const isKept = isBalanced && previous?.type === 'LoadBalancer';
  if (isKept && given.loadBalancerClass !== previous.loadBalancerClass)
    throw invalid('loadBalancerClass: field is immutable');
}

function invalid(message: string): Error {
  return failure(422, 'Invalid', message);
}
