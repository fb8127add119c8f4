/** The rights that a fleet needs on the host besides those of its members. Pure. */

import type { FleetConfig } from '../config/config.ts';
import { LEASES } from '../kube/lease.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/object.ts';
import type { Right } from '../syncer/rights.ts';
import { exactNamespaces } from './discovery.ts';
import { DEPLOYMENTS, STATEFUL_SETS } from './vcluster.ts';

const READ = ['get', 'list', 'watch'];

/** To find vClusters and read what belongs to them, and to remove what is left of deleted ones. */
export function fleetRights(fleet: FleetConfig): readonly Right[] {
  const resources = [STATEFUL_SETS, DEPLOYMENTS, SECRETS, CONFIG_MAPS].map((one) => [one, READ] as const);
  return (exactNamespaces(fleet) ?? ['']).flatMap((namespace) =>
    [...resources, [LEASES, ['list', 'delete']] as const].flatMap(([{ group, plural }, verbs]) =>
      verbs.map((verb) => ({ cluster: 'host' as const, verb, group, resource: plural, namespace })),
    ),
  );
}
