/** The rights that a fleet needs on the host besides those of its members. Pure. */

import type { FleetConfig } from '../config/config.ts';
import { LEASES } from '../kube/lease.ts';
import { CONFIG_MAPS, SECRETS, type Resource } from '../kube/object.ts';
import type { Right } from '../syncer/rights.ts';
import { exactNamespaces } from './discovery.ts';
import { DEPLOYMENTS, STATEFUL_SETS } from './vcluster.ts';

const READ = ['get', 'list', 'watch'];

const HOLD = ['get', 'list', 'create', 'update', 'delete'];

/** To find vClusters and read what belongs to them, to remove what is left of deleted ones, and to share the members with other replicas. */
export function fleetRights(fleet: FleetConfig, ownNamespace: string): readonly Right[] {
  const resources = [STATEFUL_SETS, DEPLOYMENTS, SECRETS, CONFIG_MAPS].map((one) => [one, READ] as const);
  const rights = (
    [{ group, plural }, verbs]: readonly [Resource, readonly string[]],
    namespace: string,
  ): Right[] => verbs.map((verb) => ({ cluster: 'host' as const, verb, group, resource: plural, namespace }));
  return [
    ...rights([LEASES, HOLD], ownNamespace),
    ...(exactNamespaces(fleet) ?? ['']).flatMap((namespace) =>
      [...resources, [LEASES, ['list', 'delete']] as const].flatMap((one) => rights(one, namespace)),
    ),
  ];
}
