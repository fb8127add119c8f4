/** The RBAC rules that a configuration needs, from the same rights that `run` checks at start. Pure. */

import type { Config } from '../../config/types.ts';
import { ENDPOINT_SLICES } from '../../kube/object.ts';
import type { ClusterName } from '../../kube/types.ts';
import {
  kindPolicy,
  asReferencedKind,
  type ReferencedKind,
} from '../../syncer/references/kinds/referenced-kind.ts';
import { syncedKinds } from '../../syncer/kinds/synced-kinds.ts';
import { requiredRights, rightsOnLease, type Right } from '../../syncer/rights.ts';
import { hostNamespaces } from '../../syncer/translate/names/namespace-mappings.ts';
import { pluralOf } from '../names/kind-scope.ts';

/** As in a Role; the order of the members is the order in which they are printed. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Rules for one namespace of one cluster; namespace '' means all namespaces. */
export interface Grant {
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly rules: readonly PolicyRule[];
}

/** One grant for each cluster and namespace; `config` names the host namespace. */
export function neededGrants(config: Config): readonly Grant[] {
  const references = offlineReferences(config);
  const rights = [...requiredRights(config, { isDryRun: false, references }), ...uncheckedRights(config)];
  const grants = new Map<string, Right[]>();
  for (const right of rights) {
    const key = `${right.cluster} ${right.namespace}`;
    grants.set(key, [...(grants.get(key) ?? []), right]);
  }
  return [...grants.values()].flatMap((of) => {
    const [first] = of;
    return first === undefined
      ? []
      : { cluster: first.cluster, namespace: first.namespace, rules: rulesOf(of) };
  });
}

/** Kinds that a reference may reach although no patch names them. The check at start does not cover their rights. */
export function openKinds(config: Config): readonly string[] {
  const { isOpen, reachable } = kindPolicy(config.sync);
  return isOpen ? reachable.map((id) => id.slice(id.indexOf('/') + 1)) : [];
}

/** Offline there is no discovery, so each kind gets its usual resource name. */
function offlineReferences({ sync }: Config): readonly ReferencedKind[] {
  const policy = kindPolicy(sync);
  return policy.named.map(({ apiVersion, kind }) => {
    const slash = apiVersion.indexOf('/');
    const group = slash < 0 ? '' : apiVersion.slice(0, slash);
    const version = apiVersion.slice(slash + 1);
    const resource = { group, version, kind, plural: pluralOf(kind), isNamespaced: true };
    return asReferencedKind(resource, resource, policy);
  });
}

/** Rights that the check at start does not cover: reading the owner, whose resource name discovery gives, the report of contested slices, and
 * the Lease that only names the configuration in use.
 */
function uncheckedRights(config: Config): readonly Right[] {
  const { owner, host, sync, leaderElection } = config;
  const rights: Right[] =
    syncedKinds(config).length > 0 && !leaderElection.enabled ? [...rightsOnLease(config)] : [];
  const add = (verb: string, target: Omit<Right, 'cluster' | 'verb'>): void => {
    rights.push({ cluster: 'host', verb, ...target });
  };
  if (sync.endpoints.enabled) {
    for (const namespace of hostNamespaces(config) ?? [''])
      add('list', { group: ENDPOINT_SLICES.group, resource: ENDPOINT_SLICES.plural, namespace });
  }
  // The default owner is a Service, and the right to get Services is part of the others.
  if (owner !== undefined && !owner.isOptional) {
    const { apiVersion, kind, name } = owner;
    const group = apiVersion.includes('/') ? apiVersion.replace(/\/.*/u, '') : '';
    add('get', { group, resource: pluralOf(kind), namespace: host.namespace, name });
  }
  return rights;
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
