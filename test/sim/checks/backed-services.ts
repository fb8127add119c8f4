/** Which virtual Services may have a copy that nothing is behind any more. */

import type { Clock } from '../../../src/base/clock.ts';
import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { SERVICE_NAME } from '../world/host-controllers.ts';
import { serviceSpec } from '../world/service-storage.ts';
import type { SimCluster } from '../world/sim-cluster.ts';

/** A daemon may see a new Service beside Endpoints that are gone: each kind has a watch of its own, and after an outage they do not read on in the same moment. */
const STALE_MS = 60_000;

export interface BackedServices {
  has(key: string): boolean;
}

/** Keys, from now on, of those that had Endpoints or a slice beside them at some time, or not long before, or needed none. A list from the past may
 * show any that there ever were. */
export function backedServices(
  virtual: SimCluster,
  clock: Pick<Clock, 'now'>,
  hasListedPast: () => boolean,
): BackedServices {
  const backed = new Set<string>();
  /** When Endpoints or a slice of a Service were last written or deleted, by its key. */
  const changedMs = new Map<string, number>();
  virtual.subscribe(({ plural, object }) => {
    const { namespace, labels } = object.metadata;
    if (plural === 'endpoints') changedMs.set(objectKey(object), clock.now());
    else if (plural === 'endpointslices')
      changedMs.set(`${namespace}/${labels?.[SERVICE_NAME]}`, clock.now());
    for (const service of virtual.list('services')) {
      const key = objectKey(service);
      if (backed.has(key)) continue;
      const needsNone = ['LoadBalancer', 'ExternalName'].includes(serviceSpec(service).type ?? '');
      const mayBeSeen = clock.now() - (changedMs.get(key) ?? -Infinity) < STALE_MS;
      if (needsNone || mayBeSeen || hasBackend(service, virtual)) backed.add(key);
    }
  });
  return { has: (key) => backed.has(key) || (hasListedPast() && changedMs.has(key)) };
}

function hasBackend(service: KubeObject, virtual: SimCluster): boolean {
  const { namespace, name } = service.metadata;
  const isOfService = ({ metadata }: KubeObject): boolean =>
    metadata.namespace === namespace && metadata.labels?.[SERVICE_NAME] === name;
  return (
    virtual.get('endpoints', objectKey(service)) !== undefined ||
    virtual.list('endpointslices').some(isOfService)
  );
}
