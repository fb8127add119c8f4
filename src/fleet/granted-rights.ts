/** The RBAC rules to grant to a daemon or a fleet, from the same rights that `run` checks at start, and those that no start checks. For `rbac`, and never loaded by the daemon. Pure. */

import type { ClusterName } from '../kube/types.ts';
import type { Config } from '../syncer/config/config.ts';
import { allRights, openKinds } from '../syncer/rehearsal/all-rights.ts';
import { companionRights, type Right } from '../syncer/rights.ts';
import { fleetRights, memberRights } from './rights.ts';

/** As in a Role; the order of the members is the order in which they are printed. */
export type PolicyRule = {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
};

/** Rules for one namespace of one cluster; namespace '' means all namespaces. */
export interface Grant {
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly rules: readonly PolicyRule[];
}

interface NeededGrants {
  /** One for each cluster and namespace; of a fleet without those on the kinds of which its members import objects. */
  readonly grants: readonly Grant[];
  /** The kinds that references may name although no patch does: rights on them are not in the grants. */
  readonly openKinds: readonly string[];
}

/** `config` names the host namespace. */
export function neededGrants(config: Config): NeededGrants {
  const rights = config.fleet.enabled
    ? [...fleetRights(config), ...memberRights(config), ...companionRights(config, false)]
    : allRights(config);
  const places = Map.groupBy(rights, ({ cluster, namespace }) => `${cluster} ${namespace}`);
  const grants = [...places.values()].flatMap((of) =>
    of.slice(0, 1).map(({ cluster, namespace }) => ({ cluster, namespace, rules: rulesOf(of) })),
  );
  return { grants, openKinds: openKinds(config) };
}

/** One rule for each resource, its verbs in the order of `rights`. */
function rulesOf(rights: readonly Right[]): readonly PolicyRule[] {
  const rules = new Map<string, { right: Right; verbs: Set<string> }>();
  for (const right of rights) {
    const key = `${right.group} ${right.resource} ${right.name ?? ''}`;
    const rule = rules.get(key) ?? { right, verbs: new Set<string>() };
    rule.verbs.add(right.verb);
    rules.set(key, rule);
  }
  // A right on one object is part of the right on all of them.
  const isCovered = ({ group, resource, name }: Right, verbs: ReadonlySet<string>): boolean =>
    name !== undefined && (rules.get(`${group} ${resource} `)?.verbs.isSupersetOf(verbs) ?? false);
  const needed = [...rules.values()].filter(({ right, verbs }) => !isCovered(right, verbs));
  return needed.map(({ right: { group, resource, name }, verbs }) => ({
    apiGroups: [group],
    resources: [resource],
    ...(name === undefined ? {} : { resourceNames: [name] }),
    verbs: [...verbs],
  }));
}
