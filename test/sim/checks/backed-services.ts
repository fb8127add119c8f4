/** Which virtual Services may have a copy that nothing is behind any more. */

import { objectKey } from '../../../src/kube/object.ts';
import { SERVICE_NAME } from '../world/host-controllers.ts';
import { serviceSpec } from '../world/service-storage.ts';
import type { SimCluster } from '../world/sim-cluster.ts';

/** Keys, from now on, of those that had Endpoints or a slice beside them at some time, or needed none. */
export function backedServices(virtual: SimCluster): ReadonlySet<string> {
  const backed = new Set<string>();
  virtual.subscribe(() => {
    for (const service of virtual.list('services')) {
      const key = objectKey(service);
      if (backed.has(key)) continue;
      const { namespace, name } = service.metadata;
      const needsNone = ['LoadBalancer', 'ExternalName'].includes(serviceSpec(service).type ?? '');
      const hasSlice = virtual
        .list('endpointslices')
        .some(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[SERVICE_NAME] === name);
      if (needsNone || hasSlice || virtual.get('endpoints', key) !== undefined) backed.add(key);
    }
  });
  return backed;
}
