/** Where the class of a load balancer on the host may come from that its virtual Service does not name. */

import type { KubeObject } from '../../../src/kube/object.ts';
import type { Side } from '../history/operations.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import { serviceSpec } from '../world/service-storage.ts';

const OBJECT_UID = 'vcluster.loft.sh/object-uid';

export class ClassHistory {
  /** Virtual Services that have named a class, by uid. */
  readonly #named = new Set<string>();
  /** Copies that did not tell for a while of which object they are, by uid. */
  readonly #unknown = new Set<string>();

  constructor({ virtual, host }: Readonly<Record<Side, SimCluster>>) {
    virtual.subscribe(({ plural, object }) => {
      const isNamed = plural === 'services' && serviceSpec(object).loadBalancerClass !== undefined;
      if (isNamed) this.#named.add(object.metadata.uid ?? '');
    });
    host.subscribe(({ plural, object: { metadata } }) => {
      const isUnknown = plural === 'services' && metadata.annotations?.[OBJECT_UID] === undefined;
      if (isUnknown) this.#unknown.add(metadata.uid ?? '');
    });
  }

  /** The class may be a default of the host, as far as the program can know. */
  mayKeep(copy: KubeObject, virtual: KubeObject): boolean {
    return this.#named.has(virtual.metadata.uid ?? '') || this.#unknown.has(copy.metadata.uid ?? '');
  }
}
