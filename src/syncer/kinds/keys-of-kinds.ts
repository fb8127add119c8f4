/** The kinds that vCluster syncs, by their keys of `sync.toHost`. */

import { apiVersionOf } from '../../kube/object.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';
import { SYNCABLE_KINDS } from './synced-kinds.ts';

export const KINDS: ReadonlyMap<string, KindId> = new Map<string, KindId>([
  ...SYNCABLE_KINDS.map(
    ({ key, resource }) =>
      [key, kindIdOf({ apiVersion: apiVersionOf(resource), kind: resource.kind })] as const,
  ),
  ['configMaps', 'v1 ConfigMap'],
  ['ingresses', 'networking.k8s.io/v1 Ingress'],
  ['networkPolicies', 'networking.k8s.io/v1 NetworkPolicy'],
  ['persistentVolumeClaims', 'v1 PersistentVolumeClaim'],
  ['podDisruptionBudgets', 'policy/v1 PodDisruptionBudget'],
  ['pods', 'v1 Pod'],
  ['resourceClaimTemplates', 'resource.k8s.io/v1 ResourceClaimTemplate'],
  ['resourceClaims', 'resource.k8s.io/v1 ResourceClaim'],
  ['secrets', 'v1 Secret'],
  ['serviceAccounts', 'v1 ServiceAccount'],
]);
