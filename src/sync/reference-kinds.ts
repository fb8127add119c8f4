/** Which kinds a reference may lead to: those that a patch names, and those whose syncing is enabled. Pure. */

import type { SyncConfig } from '../config/types.ts';

/** Keys of `sync.toHost` (vCluster's names) and the kinds behind them, as `group/Kind`. */
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

/** Decides for every `apiVersion` and `kind` that data inside the virtual cluster may name. */
export function allowedKinds(sync: SyncConfig): (apiVersion: string, kind: string) => boolean {
  const allowed = new Set<string>();
  for (const { reference } of sync.endpoints.patches) {
    if (reference !== undefined) allowed.add(groupKind(reference.apiVersion, reference.kind));
  }
  for (const key of sync.enabledResources) {
    const kind = Object.hasOwn(KINDS, key) ? KINDS[key] : undefined;
    if (kind !== undefined) allowed.add(kind);
  }
  return (apiVersion, kind) =>
    allowed.has(groupKind(apiVersion, kind)) || isEnabledCustomResource(sync, apiVersion, kind);
}

function groupKind(apiVersion: string, kind: string): string {
  const slash = apiVersion.indexOf('/');
  return `${slash < 0 ? '' : apiVersion.slice(0, slash)}/${kind}`;
}

/** Custom resources are enabled as `<plural>.<group>`; a plural is the kind in lower case with an English ending. */
function isEnabledCustomResource(sync: SyncConfig, apiVersion: string, kind: string): boolean {
  const group = groupKind(apiVersion, '').slice(0, -1);
  if (group === '') return false;
  const singular = kind.toLowerCase();
  const plurals = [singular, `${singular}s`, `${singular}es`, singular.replace(/y$/, 'ies')];
  return plurals.some((plural) => sync.enabledCustomResources.has(`${plural}.${group}`));
}
