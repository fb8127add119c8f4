/** The rights that a fleet needs on the host: to find its members, and what each of them needs. Pure. */

import type { Config, FleetConfig } from '../syncer/config/config.ts';
import { LEASES } from '../kube/lease.ts';
import { CONFIG_MAPS, SECRETS, type Resource } from '../kube/object.ts';
import { SYNCABLE_RESOURCES } from '../syncer/kinds/synced-kinds.ts';
import { requiredRights, rightsOnEvents, type Right } from '../syncer/rights.ts';
import { exactNamespaces } from './discovery.ts';
import { plainMemberConfig } from './member-config.ts';
import { DEPLOYMENTS, STATEFUL_SETS } from './vcluster.ts';

const FOLLOW = ['list', 'watch'];
const READ = ['get', ...FOLLOW];
const HOLD = ['get', 'list', 'create', 'update', 'delete'];

/**
 * To find vClusters and read what belongs to them, to remove what is left of deleted ones, and to share the members with other replicas. The host
 * namespace of `config` is the fleet's own.
 */
export function fleetRights({ fleet, host }: Pick<Config, 'fleet' | 'host'>): readonly Right[] {
  const needed = [
    [STATEFUL_SETS, FOLLOW],
    [DEPLOYMENTS, FOLLOW],
    [SECRETS, READ],
    [CONFIG_MAPS, READ],
    [LEASES, ['list', 'delete']],
  ] as const;
  return [
    ...rightsIn(host.namespace, [[LEASES, HOLD]]),
    ...namespacesOf(fleet).flatMap((namespace) => rightsIn(namespace, needed)),
  ];
}

function rightsIn(namespace: string, needed: readonly (readonly [Resource, readonly string[]])[]): Right[] {
  return needed.flatMap(([{ group, plural }, verbs]) =>
    verbs.map((verb) => ({ cluster: 'host' as const, verb, group, resource: plural, namespace })),
  );
}

/**
 * The included namespaces in which no right is missing: one that was deleted with its Role keeps no other from being synced. None without the rights
 * in the fleet's own.
 */
export function usableNamespaces(
  { fleet: { namespaces }, host }: Pick<Config, 'fleet' | 'host'>,
  missing: readonly Right[],
): readonly string[] {
  const without = new Set(missing.map(({ namespace }) => namespace));
  return without.has('') || without.has(host.namespace)
    ? []
    : namespaces.include.filter((name) => !without.has(name));
}

/** What every member needs, whatever its name, and what is listed to find the copies of a deleted vCluster, whose own file may have enabled any kind. The
 * patches of a member may name kinds of which it imports objects: their rights are not in here. */
export function memberRights({ fleet, defaults, host }: Config): readonly Right[] {
  return namespacesOf(fleet).flatMap((namespace) => {
    const vcluster = { namespace: namespace === '' ? 'default' : namespace, name: 'any' };
    const config = plainMemberConfig({ vcluster, defaults, host });
    if (config === undefined) return [];
    const rights = [...requiredRights(config, { isDryRun: false }), ...rightsOnEvents(config)];
    const lists = rightsIn(
      namespace,
      SYNCABLE_RESOURCES.map((resource) => [resource, ['list']] as const),
    );
    return [...rights, ...lists]
      .filter(({ cluster }) => cluster === 'host')
      .map(({ name: _name, ...right }) => ({ ...right, namespace: right.namespace && namespace }));
  });
}

/** '' stands for all of them. */
function namespacesOf(fleet: FleetConfig): readonly string[] {
  return exactNamespaces(fleet) ?? [''];
}
