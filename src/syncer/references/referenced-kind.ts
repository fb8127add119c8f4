/** The kinds that may be referenced: which ones the configuration allows, and their resources in both clusters. */

import type { SyncConfig } from '../config/config.ts';
import {
  apiVersionOf,
  groupOf,
  keyOf,
  type GroupVersionKind,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { ClusterScopedError, type Discovery } from '../../kube/discovery.ts';
import type { RequestOptions } from '../../kube/types.ts';
import { TerminalError } from '../../base/errors.ts';
import { isEnabledCustomResource } from '../kinds/guessed-resource.ts';
import { KINDS } from '../kinds/keys-of-kinds.ts';
import { isCopiedByKind, SYNCED_KEYS } from '../kinds/synced-kinds.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';

export interface KindPolicy {
  isAllowed(apiVersion: string, kind: string): boolean;
  /** A patch names this kind. Only then are host objects imported. */
  isNamed(kind: Pick<GroupVersionKind, 'group' | 'kind'>): boolean;
  isSynced(resource: Resource): boolean;
  readonly named: readonly NamedKind[];
  /** Objects of the virtual cluster can choose the kind (`kindPath`, `apiVersionPath`). */
  readonly isOpen: boolean;
  /** Kinds that no patch names but that objects can choose. */
  readonly reachable: readonly KindId[];
}

export interface KindParts {
  readonly apiVersion: string;
  readonly kind: string;
}

export function partsOfKind(id: KindId): KindParts {
  const [apiVersion = '', kind = ''] = id.split(' ');
  return { apiVersion, kind };
}

export interface NamedKind extends KindParts {
  /** `sync.toHost.endpoints.patches[0]`. */
  readonly patch: string;
}

export function kindPolicy(sync: SyncConfig): KindPolicy {
  const named = namedKinds(sync);
  const namedGroupKinds = new Set(named.map(groupKindOf));
  const enabled = [...sync.enabledResources].flatMap((key) => KINDS.get(key) ?? []);
  const enabledGroupKinds = new Set(enabled.map((id) => groupKindOf(partsOfKind(id))));
  const references = patchesOf(sync).flatMap(({ reference }) => reference ?? []);
  return {
    isAllowed(apiVersion, kind) {
      const id = groupKindOf({ apiVersion, kind });
      return (
        namedGroupKinds.has(id) ||
        enabledGroupKinds.has(id) ||
        isEnabledCustomResource(sync, apiVersion, kind)
      );
    },
    isNamed: ({ group, kind }) => namedGroupKinds.has(`${group}/${kind}`),
    isSynced: (resource) =>
      enabledGroupKinds.has(`${resource.group}/${resource.kind}`) ||
      sync.enabledCustomResources.has(`${resource.plural}.${resource.group}`) ||
      (resource.plural === '' && isEnabledCustomResource(sync, apiVersionOf(resource), resource.kind)),
    named,
    isOpen: references.some(
      ({ kindPath, apiVersionPath }) => kindPath !== undefined || apiVersionPath !== undefined,
    ),
    reachable: enabled.filter((id) => {
      const { apiVersion, kind } = partsOfKind(id);
      return (
        !namedGroupKinds.has(groupKindOf({ apiVersion, kind })) &&
        !isCopiedByKind({ group: groupOf(apiVersion), kind })
      );
    }),
  };
}

function namedKinds(sync: SyncConfig): readonly NamedKind[] {
  const named = new Map<string, NamedKind>();
  for (const { patch, reference } of patchesOf(sync)) {
    if (reference === undefined) continue;
    const { apiVersion, kind } = reference;
    const id = `${apiVersion} ${kind}`;
    if (!named.has(id)) named.set(id, { patch, apiVersion, kind });
  }
  return [...named.values()];
}

function patchesOf(sync: SyncConfig) {
  return SYNCED_KEYS.filter((key) => sync[key].enabled).flatMap((key) =>
    sync[key].patches.map(({ reference }, index) => ({
      patch: `sync.toHost.${key}.patches[${index}]`,
      reference,
    })),
  );
}

function groupKindOf({ apiVersion, kind }: KindParts): string {
  return `${groupOf(apiVersion)}/${kind}`;
}

export interface ReferencedKind {
  readonly id: KindId;
  readonly virtual: Resource;
  readonly host: Resource;
  readonly isNamed: boolean;
  /** Its sync is enabled: its virtual objects are imported into the host. */
  readonly isSynced: boolean;
  /** False: another syncer copies its objects, so they are not imported in either direction. */
  readonly isImportable: boolean;
}

export function describeReference(kind: ReferencedKind, name: NamespacedName): string {
  return `${kind.virtual.kind} "${keyOf(name)}"`;
}

export interface Discoveries {
  readonly virtual: Discovery;
  readonly host: Discovery;
}

/** Rejects with a `TerminalError` if a cluster does not serve it or it is cluster-scoped. */
export async function resolveKind(
  { apiVersion, kind }: KindParts,
  discoveries: Discoveries,
  policy: KindPolicy,
  options?: RequestOptions,
): Promise<ReferencedKind> {
  const [host, virtual] = await Promise.allSettled([
    discoveries.host.resolveNamespaced(apiVersion, kind, options),
    discoveries.virtual.resolveNamespaced(apiVersion, kind, options),
  ]);
  if (host.status === 'rejected') throw host.reason;
  if (virtual.status === 'rejected') throw virtual.reason;
  return asReferencedKind(virtual.value, host.value, policy);
}

export function asReferencedKind(virtual: Resource, host: Resource, policy: KindPolicy): ReferencedKind {
  return {
    id: kindIdOf({ apiVersion: apiVersionOf(virtual), kind: virtual.kind }),
    virtual,
    host,
    isNamed: policy.isNamed(virtual),
    isSynced: policy.isSynced(virtual),
    isImportable: !isCopiedByKind(virtual),
  };
}

/** Of the daemon: a healthy server responds in less, and the start waits. */
export const DISCOVERY: RequestOptions = { timeoutMs: 5000 };

/** `reportMissing`: a tenant may delete a CustomResourceDefinition, or have an API server that does not respond, which must not stop everything else.
 * Rejects if a cluster as a whole does not respond, and with a `TerminalError` for a kind that is cluster-scoped on the host, which no tenant
 * decides: its objects have the same name on both sides, so every reference would be rewritten to one that does not exist. */
export async function resolveNamedKinds(
  policy: KindPolicy,
  discoveries: Discoveries,
  reportMissing: (kind: NamedKind, error: unknown) => void,
  options: RequestOptions,
): Promise<readonly ReferencedKind[]> {
  const resolved = policy.named.map(async (named) => {
    try {
      return await resolveKind(named, discoveries, policy, options);
    } catch (error) {
      if (error instanceof ClusterScopedError && error.cluster === 'host')
        throw new TerminalError(`${named.patch}: ${error.message}: remove the patch`, { cause: error });
      if (!(error instanceof TerminalError)) await responds(discoveries);
      reportMissing(named, error);
      return [];
    }
  });
  return (await Promise.all(resolved)).flat();
}

const NOT_IMPORTED = 'objects of a kind that a patch references are not imported';

/** The message of the log for an error of {@link resolveNamedKinds}. An aggregated API server that is away is no mistake in the configuration. */
export function missingKindMessage(error: unknown): string {
  return error instanceof TerminalError
    ? `${NOT_IMPORTED}; correct apiVersion and kind of the reference, or install the CustomResourceDefinition of a namespaced kind in both ` +
        'clusters, which is noticed without a restart'
    : `${NOT_IMPORTED} until its API server answers, which is noticed without a restart; "kubectl get apiservices" names one that is not available`;
}

/** Rejects unless both clusters serve their own API. */
async function responds({ virtual, host }: Discoveries): Promise<void> {
  await Promise.all([virtual.resolve('v1', 'Namespace'), host.resolve('v1', 'Namespace')]);
}
