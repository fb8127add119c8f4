/** The kinds that may be referenced: which ones the configuration allows, and their resources in both clusters. */

import type { SyncConfig } from '../../config/config.ts';
import {
  apiVersionOf,
  groupOf,
  keyOf,
  type GroupVersionKind,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import type { Discovery } from '../../kube/discovery.ts';
import type { RequestOptions } from '../../kube/types.ts';
import { messageOf, TerminalError } from '../../base/errors.ts';
import { isCopiedByKind } from '../translate/names.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';

/** Keys of `sync.toHost` (vCluster's names) → kinds as `group/Kind`. */
const KINDS: Readonly<Record<string, string>> = {
  configMaps: '/ConfigMap',
  endpointSlices: 'discovery.k8s.io/EndpointSlice',
  endpoints: '/Endpoints',
  ingresses: 'networking.k8s.io/Ingress',
  networkPolicies: 'networking.k8s.io/NetworkPolicy',
  persistentVolumeClaims: '/PersistentVolumeClaim',
  podDisruptionBudgets: 'policy/PodDisruptionBudget',
  pods: '/Pod',
  resourceClaimTemplates: 'resource.k8s.io/ResourceClaimTemplate',
  resourceClaims: 'resource.k8s.io/ResourceClaim',
  secrets: '/Secret',
  serviceAccounts: '/ServiceAccount',
  services: '/Service',
};

export interface KindPolicy {
  isAllowed(apiVersion: string, kind: string): boolean;
  /** A patch names this kind. Only then are host objects imported. */
  isNamed(kind: Pick<GroupVersionKind, 'group' | 'kind'>): boolean;
  isSynced(resource: Resource): boolean;
  isImportable(kind: Pick<GroupVersionKind, 'group' | 'kind'>): boolean;
  readonly named: readonly NamedKind[];
  /** Objects of the virtual cluster can choose the kind (`kindPath`, `apiVersionPath`). */
  readonly isOpen: boolean;
  /** Kinds that no patch names but that objects can choose, as `group/Kind`. */
  readonly reachable: readonly string[];
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
  const namedIds = new Set(named.map(({ apiVersion, kind }) => groupKind(apiVersion, kind)));
  const enabled = new Set(
    [...sync.enabledResources].flatMap((key) => (Object.hasOwn(KINDS, key) ? (KINDS[key] ?? []) : [])),
  );
  const references = patchesOf(sync).flatMap(({ reference }) => reference ?? []);
  const isImportable: KindPolicy['isImportable'] = (kind) => !isCopiedByKind(kind);
  return {
    isAllowed(apiVersion, kind) {
      const id = groupKind(apiVersion, kind);
      return namedIds.has(id) || enabled.has(id) || isEnabledCustomResource(sync, apiVersion, kind);
    },
    isNamed: ({ group, kind }) => namedIds.has(`${group}/${kind}`),
    isSynced: (resource) =>
      enabled.has(`${resource.group}/${resource.kind}`) ||
      sync.enabledCustomResources.has(`${resource.plural}.${resource.group}`) ||
      (resource.plural === '' && isEnabledCustomResource(sync, apiVersionOf(resource), resource.kind)),
    isImportable,
    named,
    isOpen: references.some(
      ({ kindPath, apiVersionPath }) => kindPath !== undefined || apiVersionPath !== undefined,
    ),
    reachable: [...enabled].filter((id) => !namedIds.has(id) && isImportable(partsOf(id))),
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

function patchesOf({ endpoints, endpointSlices, services }: SyncConfig) {
  return Object.entries({ endpoints, endpointSlices, services })
    .filter(([, { enabled }]) => enabled)
    .flatMap(([section, { patches }]) =>
      patches.map(({ reference }, index) => ({
        patch: `sync.toHost.${section}.patches[${index}]`,
        reference,
      })),
    );
}

function groupKind(apiVersion: string, kind: string): string {
  return `${groupOf(apiVersion)}/${kind}`;
}

function partsOf(groupAndKind: string): Pick<GroupVersionKind, 'group' | 'kind'> {
  const [group = '', kind = ''] = groupAndKind.split('/');
  return { group, kind };
}

/** Custom resources are enabled as `<plural>.<group>`. Without discovery, the plural is guessed from the kind. */
function isEnabledCustomResource(sync: SyncConfig, apiVersion: string, kind: string): boolean {
  const group = groupOf(apiVersion);
  if (group === '') return false;
  const singular = kind.toLowerCase();
  const plurals = [singular, `${singular}s`, `${singular}es`, singular.replace(/y$/, 'ies')];
  return plurals.some((plural) => sync.enabledCustomResources.has(`${plural}.${group}`));
}

export interface ReferencedKind {
  readonly id: KindId;
  readonly virtual: Resource;
  readonly host: Resource;
  /** A patch names it: its objects may be imported from the host. */
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

/** Resolves the kind in both clusters. Rejects with a `TerminalError` if a cluster does not serve it or it is cluster-scoped. */
export async function resolveKind(
  { apiVersion, kind }: KindParts,
  discoveries: Discoveries,
  policy: KindPolicy,
  options?: RequestOptions,
): Promise<ReferencedKind> {
  const [virtual, host] = await Promise.all([
    discoveries.virtual.resolveNamespaced(apiVersion, kind, options),
    discoveries.host.resolveNamespaced(apiVersion, kind, options),
  ]);
  return asReferencedKind(virtual, host, policy);
}

export function asReferencedKind(virtual: Resource, host: Resource, policy: KindPolicy): ReferencedKind {
  return {
    id: kindIdOf({ apiVersion: apiVersionOf(virtual), kind: virtual.kind }),
    virtual,
    host,
    isNamed: policy.isNamed(virtual),
    isSynced: policy.isSynced(virtual),
    isImportable: policy.isImportable(virtual),
  };
}

/** A healthy server responds in less, and the start waits. */
const DISCOVERY: RequestOptions = { timeoutMs: 5000 };

/** Resolves the kinds that patches name. `reportMissing` is called for each that a cluster does not serve: a tenant may delete a
 * CustomResourceDefinition, or have an API server of its own that does not respond, at any time, which must not stop everything else. Rejects if a
 * cluster as a whole does not respond. */
export async function resolveNamedKinds(
  policy: KindPolicy,
  discoveries: Discoveries,
  reportMissing: (kind: NamedKind, why: string) => void,
): Promise<readonly ReferencedKind[]> {
  const resolved = policy.named.map(async (named) => {
    try {
      return await resolveKind(named, discoveries, policy, DISCOVERY);
    } catch (error) {
      if (!(error instanceof TerminalError)) await responds(discoveries);
      reportMissing(named, messageOf(error));
      return [];
    }
  });
  return (await Promise.all(resolved)).flat();
}

/** Rejects unless both clusters serve their own API. */
async function responds({ virtual, host }: Discoveries): Promise<void> {
  await Promise.all([virtual.resolve('v1', 'Namespace'), host.resolve('v1', 'Namespace')]);
}
