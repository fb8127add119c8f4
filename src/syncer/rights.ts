/** The minimal rights that a configuration needs. Pure. */

import type { ClusterName } from '../kube/types.ts';
import type { Config } from '../config/config.ts';
import { syncedKinds } from './kinds/synced-kinds.ts';
import { leaseName } from './leadership.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import type { ReferencedKind } from './references/referenced-kind.ts';

export interface Right {
  readonly cluster: ClusterName;
  readonly verb: string;
  /** API group; '' for the core group. */
  readonly group: string;
  /** With its subresource: `services/status`. */
  readonly resource: string;
  /** '' means every namespace. */
  readonly namespace: string;
  /** Restricts the right to one object. */
  readonly name?: string;
}

export interface RightsOptions {
  readonly isDryRun: boolean;
  /** The kinds that patches reference. */
  readonly references?: readonly ReferencedKind[];
}

export function requiredRights(
  config: Config,
  { isDryRun, references = [] }: RightsOptions,
): readonly Right[] {
  const synced = syncedResources(config);
  if (synced.length === 0) return [...secretRight(config), ...keyApiRights(config, isDryRun)];
  const namespaces = hostNamespaces(config) ?? [''];
  const read = ['get', 'list', 'watch'];
  const rights: Right[] = [
    ...namespaces.flatMap((namespace) => [
      ...synced.flatMap(({ group, resource }) =>
        rightsOn({ cluster: 'host', group, resource, namespace }, read),
      ),
      // A copy would get the traffic of the Service of its name.
      ...rightsOn({ cluster: 'host', group: '', resource: 'services', namespace }, read),
    ]),
    ...synced.flatMap(({ group, resource }) =>
      rightsOn({ cluster: 'virtual', group, resource, namespace: '' }, read),
    ),
    ...rightsOn({ cluster: 'virtual', group: '', resource: 'services', namespace: '' }, read),
    ...secretRight(config),
    ...leaseRights(config, isDryRun),
    ...references.flatMap((kind) => referenceRights(kind, config, isDryRun)),
    ...keyApiRights(config, isDryRun),
  ];
  return distinct(isDryRun ? rights : [...rights, ...writeRights(config, namespaces)]);
}

type RightsTarget = Pick<Right, 'group' | 'resource'>;

/** The groups and resources of the synced kinds. */
function syncedResources(config: Config): readonly (RightsTarget & { readonly hasStatus: boolean })[] {
  return syncedKinds(config).map(({ kind: { resource, hasStatus } }) => ({
    group: resource.group,
    resource: resource.plural,
    hasStatus,
  }));
}

const HOST_WRITES = ['create', 'update', 'patch', 'delete'];

function writeRights(config: Config, namespaces: readonly string[]): readonly Right[] {
  const synced = syncedResources(config);
  const virtualVerbs = ['update', 'patch', ...(config.onHostDelete === 'deleteVirtual' ? ['delete'] : [])];
  const events = ['', 'events.k8s.io'].flatMap((group) =>
    rightsOn({ cluster: 'virtual', group, resource: 'events', namespace: '' }, ['create', 'patch']),
  );
  const creation = config.createNamespaces
    ? rightsOn({ cluster: 'host', group: '', resource: 'namespaces', namespace: '' }, ['create'])
    : [];
  return [
    ...namespaces.flatMap((namespace) =>
      synced.flatMap(({ group, resource }) =>
        rightsOn({ cluster: 'host', group, resource, namespace }, HOST_WRITES),
      ),
    ),
    ...synced.flatMap(({ group, resource, hasStatus }) => [
      ...rightsOn({ cluster: 'virtual', group, resource, namespace: '' }, virtualVerbs),
      ...(hasStatus
        ? rightsOn({ cluster: 'virtual', group, resource: `${resource}/status`, namespace: '' }, ['patch'])
        : []),
    ]),
    ...events,
    ...creation,
  ];
}

/** Read access in both clusters; write access only in the directions in which this kind is imported. */
function referenceRights(kind: ReferencedKind, config: Config, isDryRun: boolean): readonly Right[] {
  const { isSynced, isImportable } = kind;
  const namespaces = hostNamespaces(config) ?? [''];
  const read = ['get', 'list', 'watch'];
  const write = isDryRun || !isImportable ? [] : ['create', 'update', 'delete'];
  const host = { cluster: 'host', group: kind.host.group, resource: kind.host.plural } as const;
  const virtual = { cluster: 'virtual', group: kind.virtual.group, resource: kind.virtual.plural } as const;
  return [
    ...namespaces.flatMap((namespace) =>
      rightsOn({ ...host, namespace }, [...read, ...(isSynced ? write : [])]),
    ),
    ...rightsOn({ ...virtual, namespace: '' }, [...read, ...write]),
  ];
}

function leaseRights(config: Config, isDryRun: boolean): readonly Right[] {
  return config.leaderElection.enabled && !isDryRun ? rightsOnLease(config) : [];
}

/** Without leader election they are optional: the Lease then only has the hash of the configuration in use. Only the right to create cannot
 * be restricted to one name.
 */
export function rightsOnLease({ name, host }: Config): readonly Right[] {
  const leases = {
    cluster: 'host',
    group: 'coordination.k8s.io',
    resource: 'leases',
    namespace: host.namespace,
  } as const;
  return [
    ...rightsOn(leases, ['create']),
    ...rightsOn({ ...leases, name: leaseName(name) }, ['get', 'update']),
  ];
}

/** Optional: to report a configuration that is not applied in an Event on the Lease. */
export function rightsOnEvents({ host }: Config): readonly Right[] {
  const events = {
    cluster: 'host',
    group: 'events.k8s.io',
    resource: 'events',
    namespace: host.namespace,
  } as const;
  return rightsOn(events, ['create', 'patch']);
}

function secretRight({ virtual, host }: Config): readonly Right[] {
  if (virtual.secret === '') return [];
  const { secret: name } = virtual;
  return [{ cluster: 'host', verb: 'get', group: '', resource: 'secrets', namespace: host.namespace, name }];
}

const STORE_VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];

/** Rights on the host for the key and token API, which a dry run does not serve. */
export function keyApiRights({ management, host }: Config, isDryRun: boolean): readonly Right[] {
  if (!management.enabled || isDryRun) return [];
  const { store, delegatedAuth } = management;
  const secrets = { group: '', resource: 'secrets', namespace: store.namespace || host.namespace };
  const reviews = [
    { group: 'authentication.k8s.io', resource: 'tokenreviews', namespace: '' },
    { group: 'authorization.k8s.io', resource: 'subjectaccessreviews', namespace: '' },
  ];
  return [
    ...(store.driver === 'kubernetes' ? rightsOn({ cluster: 'host', ...secrets }, STORE_VERBS) : []),
    ...(delegatedAuth ? reviews.flatMap((kind) => rightsOn({ cluster: 'host', ...kind }, ['create'])) : []),
  ];
}

function rightsOn(target: Omit<Right, 'verb'>, verbs: readonly string[]): Right[] {
  return verbs.map((verb) => ({ ...target, verb }));
}

/** Services can be synced and also control the sync of other objects, so rights may be listed twice. */
function distinct(rights: readonly Right[]): readonly Right[] {
  return [...new Map(rights.map((right) => [describeRight(right), right])).values()];
}

/** One line: verb, resource, namespace and cluster. */
export function describeRight({ cluster, verb, group, resource, namespace, name }: Right): string {
  const what = group === '' ? resource : `${resource}.${group}`;
  const which = name === undefined ? '' : ` "${name}"`;
  const where = namespace === '' ? 'in every namespace' : `in namespace "${namespace}"`;
  return `${verb} ${what}${which} ${where} of the ${cluster} cluster`;
}
