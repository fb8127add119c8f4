/** Says that the copies on the host may be of another virtual cluster from now on. */

import { LEASES, leaseWith } from '../../kube/lease.ts';
import { NAMESPACES, type NamespacedName } from '../../kube/object.ts';
import { ignoreNotFound } from '../../kube/status-error.ts';
import { leaseName } from '../leadership.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import { ADOPTED, KUBE_SYSTEM, readIfAllowed } from '../virtual-identity.ts';
import { reaching, type Connection } from './connection.ts';

/** Records on the Lease, whose name is the result, that the copies may be of this virtual cluster. Undefined: it may not be told from others. */
export async function adoptCopies({ config, clusters }: Connection): Promise<NamespacedName | undefined> {
  const { name, host } = config;
  const namespace = await reaching('virtual', () => readIfAllowed(clusters.virtual, NAMESPACES, KUBE_SYSTEM));
  const uid = namespace?.metadata.uid;
  if (uid === undefined) return undefined;
  const place = { namespace: host.namespace, name: leaseName(name) };
  const lease = await reaching('host', () => ignoreNotFound(clusters.host.get(LEASES, place)));
  const wanted = leaseWith(lease, place, { [ADOPTED]: uid });
  const options = { fieldManager: FIELD_MANAGER };
  await reaching('host', () =>
    lease === undefined
      ? clusters.host.create(LEASES, wanted, options)
      : clusters.host.update(LEASES, wanted, options),
  );
  return place;
}
