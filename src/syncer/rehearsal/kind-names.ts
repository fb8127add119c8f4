/** Kinds as users write them: which are known, and whether they are cluster-scoped, without asking an API server. */

import { didYouMean } from '../../base/suggest.ts';
import { printKindName, type KindName } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import { pluralOf } from '../kinds/guessed-resource.ts';
import { SYNCABLE_RESOURCES } from '../kinds/synced-kinds.ts';
import { kindPolicy } from '../references/referenced-kind.ts';

type KindScope = 'cluster' | 'namespaced' | 'unknown';

const CLUSTER_SCOPED = words(`
  APIService CSIDriver CSINode ClusterRole ClusterRoleBinding CustomResourceDefinition
  IngressClass Namespace Node PersistentVolume PriorityClass RuntimeClass StorageClass
  VolumeSnapshotClass VolumeSnapshotContent
`);

const NAMESPACED = [
  ...SYNCABLE_RESOURCES.map(({ kind }) => kind),
  ...words(`
    ConfigMap CSIStorageCapacity DaemonSet Deployment Ingress Job NetworkPolicy PersistentVolumeClaim Pod
    PodDisruptionBudget ReplicaSet Role RoleBinding Secret ServiceAccount StatefulSet VolumeSnapshot
  `),
];

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/u);
}

/** In its usual spelling where it is known, else as given. */
export interface KnownKind extends KindName {
  readonly scope: KindScope;
}

/** Accepts any spelling of a known kind (`endpoints`, `pods`), and `KIND.GROUP`; other kinds are used as given. */
export function knownKind(text: string): KnownKind {
  const [, name = text, group] = /^([^.]+)\.(.+)$/u.exec(text) ?? [];
  const isSpelled = (kind: string): boolean =>
    [kind.toLowerCase(), pluralOf(kind)].includes(name.toLowerCase());
  const [cluster, namespaced] = [CLUSTER_SCOPED.find(isSpelled), NAMESPACED.find(isSpelled)];
  if (cluster !== undefined) return { kind: cluster, scope: 'cluster', group };
  return namespaced === undefined
    ? { kind: name, scope: 'unknown', group }
    : { kind: namespaced, scope: 'namespaced', group };
}

/** Undefined: of any kind. */
export function wantedKind(text: string | undefined): KnownKind | undefined {
  return text === undefined ? undefined : knownKind(text);
}

/** The known kind that `text` most likely means, as `, did you mean "Pod"?`; '' if there is none. */
export function similarKind(text: string): string {
  return didYouMean(text, [...CLUSTER_SCOPED, ...NAMESPACED]);
}

/** The configuration syncs this kind, or a patch references it. */
export function isNamedBy({ sync }: Config, kind: string): boolean {
  const isReferenced = kindPolicy(sync).named.some((one) => one.kind === kind);
  return isReferenced || [...sync.enabledCustomResources].some((key) => key.startsWith(`${pluralOf(kind)}.`));
}

/** What is wrong with a kind that no object of this configuration can have: most likely a typo. */
export function kindProblem(config: Config, text: string | undefined): string | undefined {
  if (text === undefined || kindPolicy(config.sync).isOpen) return undefined;
  const wanted = knownKind(text);
  const { kind, scope } = wanted;
  if (scope !== 'unknown' || isNamedBy(config, kind)) return undefined;
  return unknownKind(wanted, '; neither is it synced, nor does a patch reference it');
}

/** `why`: it is not known, where no kind has a similar name. */
export function unknownKind(wanted: KnownKind, why = ''): string {
  return `--kind: unknown kind "${printKindName(wanted)}"${similarKind(wanted.kind) || why}`;
}
