/** Which kinds are known to be cluster-scoped or namespaced without asking an API server. */

import { didYouMean } from '../../config/schema/suggest.ts';

export type KindScope = 'cluster' | 'namespaced' | 'unknown';

const CLUSTER_SCOPED = [
  'APIService',
  'CSIDriver',
  'CSINode',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'IngressClass',
  'Namespace',
  'Node',
  'PersistentVolume',
  'PriorityClass',
  'RuntimeClass',
  'StorageClass',
  'VolumeSnapshotClass',
  'VolumeSnapshotContent',
];

const NAMESPACED = [
  'ConfigMap',
  'CSIStorageCapacity',
  'DaemonSet',
  'Deployment',
  'EndpointSlice',
  'Endpoints',
  'Ingress',
  'Job',
  'NetworkPolicy',
  'PersistentVolumeClaim',
  'Pod',
  'PodDisruptionBudget',
  'ReplicaSet',
  'Role',
  'RoleBinding',
  'Secret',
  'Service',
  'ServiceAccount',
  'StatefulSet',
  'VolumeSnapshot',
];

export interface KnownKind {
  /** In its usual spelling where it is known, else as given. */
  readonly kind: string;
  readonly scope: KindScope;
}

/** Accepts any spelling of a known kind (`endpoints`, `pods`); other kinds are used as given. */
export function knownKind(text: string): KnownKind {
  const spelled = (kinds: readonly string[]): string | undefined =>
    kinds.find((kind) => spellingsOf(kind).includes(text.toLowerCase()));
  const cluster = spelled(CLUSTER_SCOPED);
  if (cluster !== undefined) return { kind: cluster, scope: 'cluster' };
  const namespaced = spelled(NAMESPACED);
  if (namespaced !== undefined) return { kind: namespaced, scope: 'namespaced' };
  return { kind: text, scope: 'unknown' };
}

/** The known kind that `text` most likely means, as `, did you mean "Pod"?`; '' if there is none. */
export function similarKind(text: string): string {
  return didYouMean(text, [...CLUSTER_SCOPED, ...NAMESPACED]);
}

/** The resource of a kind by the English plural, which is right for nearly all kinds. */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (word === 'endpoints') return word;
  if (/(s|x|ch)$/.test(word)) return `${word}es`;
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`;
}

function spellingsOf(kind: string): readonly string[] {
  return [kind.toLowerCase(), pluralOf(kind)];
}
