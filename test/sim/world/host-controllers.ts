/** The controllers of the host cluster that a syncer meets, as they were seen to behave on kube-apiserver 1.36. */

import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import type { SimClock } from './sim-clock.ts';
import type { Change, SimCluster } from './sim-cluster.ts';

export const CONTROLLER_MANAGER = 'kube-controller-manager';

const REACTION_MS = 40;
const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/**
 * The endpoints controller: it creates the Endpoints of a Service with a selector, removes those of a Service that is deleted, and, after
 * each deletion of Endpoints that it sees, deletes the Endpoints of that name that have no Service.
 */
export class EndpointsController {
  readonly #cluster: SimCluster;
  readonly #clock: SimClock;
  isRunning = true;

  constructor(cluster: SimCluster, clock: SimClock) {
    this.#cluster = cluster;
    this.#clock = clock;
    cluster.subscribe((change) => this.#onChange(change));
  }

  #onChange({ plural, object, isDeletion, manager }: Change): void {
    const key = objectKey(object);
    if (plural === 'services') this.#later(() => this.#sync(key));
    // Its own deletions reach it, too, but then there is nothing left to delete.
    else if (plural === 'endpoints' && (isDeletion || manager === CONTROLLER_MANAGER)) {
      if (isDeletion) this.#later(() => this.#sync(key));
    }
  }

  #later(action: () => void): void {
    this.#clock.schedule(REACTION_MS, () => {
      if (this.isRunning) action();
    });
  }

  #sync(key: string): void {
    const service = this.#cluster.get('services', key);
    const endpoints = this.#cluster.get('endpoints', key);
    if (service === undefined) {
      if (endpoints === undefined || endpoints.metadata.annotations?.[LEADER_ANNOTATION] !== undefined)
        return;
      const { name, namespace = '' } = endpoints.metadata;
      this.#cluster.delete('endpoints', { name, namespace }, { manager: CONTROLLER_MANAGER });
      return;
    }
    if (!hasSelector(service)) return;
    const { name, namespace = '' } = service.metadata;
    const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
    const subsets = [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 80 }] }];
    if (endpoints === undefined) {
      const made = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name, namespace, labels }, subsets };
      this.#cluster.create('endpoints', made, CONTROLLER_MANAGER);
    } else {
      const metadata = { ...endpoints.metadata, labels: { ...labels } };
      this.#cluster.update('endpoints', { ...endpoints, metadata, subsets }, CONTROLLER_MANAGER);
    }
  }
}

export function hasSelector(service: KubeObject | undefined): boolean {
  const spec = service?.['spec'];
  const selector = spec && (spec as Record<string, unknown>)['selector']; // raw JSON
  return typeof selector === 'object' && selector !== null && Object.keys(selector).length > 0;
}
