/** The minimal rights that a configuration needs. */

import { SERVICES, type Resource } from '../kube/object.ts';
import type { ClusterName } from '../kube/types.ts';
import type { Config } from './config/config.ts';
import type { SyncedKind } from './kinds/kind.ts';
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
  readonly references?: readonly ReferencedKind[];
}

type Target = Pick<Right, 'group' | 'resource'>;

const READ = ['get', 'list', 'watch'];

export function requiredRights(
  config: Config,
  { isDryRun, references = [] }: RightsOptions,
): readonly Right[] {
  const kinds = syncedKinds(config).map(({ kind }) => kind);
  const ofOthers = [...secretRight(config), ...companionRights(config, isDryRun)];
  if (kinds.length === 0) return ofOthers;
  // Services decide whether other objects are synced, and a copy would get the traffic of the host Service of its name.
  const read = [...kinds.map(({ resource }) => resource), SERVICES].map(targetOf);
  const rights = [
    ...read.flatMap((target) => onHost(config, target, READ)),
    ...read.flatMap((target) => onVirtual(target, READ)),
    ...(config.leaderElection.enabled && !isDryRun ? rightsOnLease(config) : []),
    ...references.flatMap((kind) => referenceRights(kind, config, isDryRun)),
    ...ofOthers,
    ...(isDryRun ? [] : writeRights(config, kinds)),
  ];
  return [...new Map(rights.map((right) => [describeRight(right), right])).values()];
}

function writeRights(config: Config, kinds: readonly SyncedKind[]): readonly Right[] {
  const virtualVerbs = ['update', 'patch', ...(config.onHostDelete === 'deleteVirtual' ? ['delete'] : [])];
  const namespaces = { cluster: 'host', group: '', resource: 'namespaces', namespace: '' } as const;
  return [
    ...kinds.flatMap(({ resource, hasStatus }) => {
      const target = targetOf(resource);
      const status = { ...target, resource: `${target.resource}/status` };
      return [
        ...onHost(config, target, ['create', 'update', 'patch', 'delete']),
        ...onVirtual(target, virtualVerbs),
        ...(hasStatus ? onVirtual(status, ['patch']) : []),
      ];
    }),
    ...['', 'events.k8s.io'].flatMap((group) =>
      onVirtual({ group, resource: 'events' }, ['create', 'patch']),
    ),
    ...(config.createNamespaces ? rightsOn(namespaces, ['create']) : []),
  ];
}

/** Read access in both clusters; write access only in the directions in which this kind is imported. */
function referenceRights(
  { isSynced, isImportable, host, virtual }: ReferencedKind,
  config: Config,
  isDryRun: boolean,
): readonly Right[] {
  const write = isDryRun || !isImportable ? [] : ['create', 'update', 'delete'];
  return [
    ...onHost(config, targetOf(host), [...READ, ...(isSynced ? write : [])]),
    ...onVirtual(targetOf(virtual), [...READ, ...write]),
  ];
}

function targetOf({ group, plural }: Pick<Resource, 'group' | 'plural'>): Target {
  return { group, resource: plural };
}

/** In every host namespace that copies are written to. */
function onHost(config: Config, target: Target, verbs: readonly string[]): readonly Right[] {
  const namespaces = hostNamespaces(config) ?? [''];
  return namespaces.flatMap((namespace) => rightsOn({ cluster: 'host', ...target, namespace }, verbs));
}

function onVirtual(target: Target, verbs: readonly string[]): readonly Right[] {
  return rightsOn({ cluster: 'virtual', ...target, namespace: '' }, verbs);
}

/** Optional without leader election: the Lease then only has the hash of the configuration in use. Only `create` cannot be restricted to one name. */
export function rightsOnLease({ name, host }: Config): readonly Right[] {
  const { namespace } = host;
  const leases = { cluster: 'host', group: 'coordination.k8s.io', resource: 'leases', namespace } as const;
  return [
    ...rightsOn(leases, ['create']),
    ...rightsOn({ ...leases, name: leaseName(name) }, ['get', 'update']),
  ];
}

/** Optional: to report a configuration that is not applied in an Event on the Lease. */
export function rightsOnEvents({ host }: Config): readonly Right[] {
  const { namespace } = host;
  return rightsOn({ cluster: 'host', group: 'events.k8s.io', resource: 'events', namespace }, [
    'create',
    'patch',
  ]);
}

function secretRight({ virtual, host }: Config): readonly Right[] {
  if (virtual.secret === '') return [];
  const { secret: name } = virtual;
  return [{ cluster: 'host', verb: 'get', group: '', resource: 'secrets', namespace: host.namespace, name }];
}

/** What the program serves beside the sync needs. */
export function companionRights({ companion, host }: Config, isDryRun: boolean): readonly Right[] {
  if (!companion.isServed || isDryRun) return [];
  return companion.rights.map((right) => ({ cluster: 'host', namespace: host.namespace, ...right }));
}

function rightsOn(target: Omit<Right, 'verb'>, verbs: readonly string[]): Right[] {
  return verbs.map((verb) => ({ ...target, verb }));
}

export function describeRight({ cluster, verb, group, resource, namespace, name }: Right): string {
  const what = group === '' ? resource : `${resource}.${group}`;
  const which = name === undefined ? '' : ` "${name}"`;
  const where = namespace === '' ? 'in every namespace' : `in namespace "${namespace}"`;
  return `${verb} ${what}${which} ${where} of the ${cluster} cluster`;
}
