/** Which rights a configuration needs, and no more. Pure. */

import type { ClusterName } from '../cluster/types.ts';
import type { Config } from '../config/types.ts';
import type { ReferencedKind } from './references/referenced-kind.ts';

export interface Right {
  readonly cluster: ClusterName;
  readonly verb: string;
  /** API group; '' for the core group. */
  readonly group: string;
  readonly resource: string;
  /** '' asks for every namespace. */
  readonly namespace: string;
  /** Present: only this object. */
  readonly name?: string;
}

export interface RightsOptions {
  readonly isDryRun: boolean;
  /** What the patches name. */
  readonly references?: readonly ReferencedKind[];
}

export function requiredRights(
  config: Config,
  { isDryRun, references = [] }: RightsOptions,
): readonly Right[] {
  if (!config.sync.endpoints.enabled) return secretRight(config);
  const namespace = config.sync.namespaces.kind === 'single' ? config.host.namespace : '';
  const read = ['get', 'list', 'watch'];
  const rights: Right[] = [
    ...rightsOn({ cluster: 'host', group: '', resource: 'endpoints', namespace }, read),
    ...rightsOn({ cluster: 'virtual', group: '', resource: 'endpoints', namespace: '' }, read),
    ...rightsOn({ cluster: 'virtual', group: '', resource: 'services', namespace: '' }, read),
    ...secretRight(config),
    ...references.flatMap((kind) => referenceRights(kind, config, isDryRun)),
  ];
  return isDryRun ? rights : [...rights, ...writeRights(config, namespace)];
}

function writeRights(config: Config, namespace: string): readonly Right[] {
  const virtualVerbs = ['update', 'patch', ...(config.onHostDelete === 'deleteVirtual' ? ['delete'] : [])];
  const events = ['', 'events.k8s.io'].flatMap((group) =>
    rightsOn({ cluster: 'virtual', group, resource: 'events', namespace: '' }, ['create', 'patch']),
  );
  const namespaces = config.createNamespaces
    ? rightsOn({ cluster: 'host', group: '', resource: 'namespaces', namespace: '' }, ['create'])
    : [];
  return [
    ...rightsOn({ cluster: 'host', group: '', resource: 'endpoints', namespace }, [
      'create',
      'update',
      'patch',
      'delete',
    ]),
    ...rightsOn({ cluster: 'virtual', group: '', resource: 'endpoints', namespace: '' }, virtualVerbs),
    ...events,
    ...namespaces,
  ];
}

/** Objects are read where they may be, and written only in the directions in which this kind is imported. */
function referenceRights(kind: ReferencedKind, config: Config, isDryRun: boolean): readonly Right[] {
  const { isSynced, isImportable } = kind;
  const hostNamespace = config.host.namespace;
  const copies = config.sync.namespaces.kind === 'single' ? hostNamespace : '';
  const read = ['get', 'list', 'watch'];
  const write = isDryRun || !isImportable ? [] : ['create', 'update', 'delete'];
  const host = { cluster: 'host', group: kind.host.group, resource: kind.host.plural } as const;
  const virtual = { cluster: 'virtual', group: kind.virtual.group, resource: kind.virtual.plural } as const;
  return [
    ...rightsOn({ ...host, namespace: copies }, [...read, ...(isSynced ? write : [])]),
    ...rightsOn({ ...virtual, namespace: '' }, [...read, ...write]),
  ];
}

function secretRight({ virtual, host }: Config): readonly Right[] {
  if (virtual.secret === '') return [];
  const { secret: name } = virtual;
  return [{ cluster: 'host', verb: 'get', group: '', resource: 'secrets', namespace: host.namespace, name }];
}

function rightsOn(target: Omit<Right, 'verb'>, verbs: readonly string[]): Right[] {
  return verbs.map((verb) => ({ ...target, verb }));
}

/** One line for people: verb, resource, namespace and cluster. */
export function describeRight({ cluster, verb, group, resource, namespace, name }: Right): string {
  const what = group === '' ? resource : `${resource}.${group}`;
  const which = name === undefined ? '' : ` "${name}"`;
  const where = namespace === '' ? 'in every namespace' : `in namespace "${namespace}"`;
  return `${verb} ${what}${which} ${where} of the ${cluster} cluster`;
}
