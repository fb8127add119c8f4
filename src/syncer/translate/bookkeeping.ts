/** Marker labels and bookkeeping annotations, which identify the original of a host copy. They are never synced to the virtual side. */

import {
  gvkString,
  type GroupVersionKind,
  type KubeObject,
  type NamespacedName,
  type StringMap,
} from '../../kube/object.ts';

export const OBJECT_NAME = 'vcluster.loft.sh/object-name';
export const OBJECT_NAMESPACE = 'vcluster.loft.sh/object-namespace';
export const OBJECT_UID = 'vcluster.loft.sh/object-uid';
export const OBJECT_KIND = 'vcluster.loft.sh/object-kind';
export const OBJECT_HOST_NAME = 'vcluster.loft.sh/object-host-name';
export const OBJECT_HOST_NAMESPACE = 'vcluster.loft.sh/object-host-namespace';
/** Virtual annotation keys that this program has copied to the host: sorted, joined by newline, absent if there are none. */
export const MANAGED_ANNOTATIONS = 'vcluster.loft.sh/managed-annotations';
export const LAST_SYNCED = 'endpoint-syncer/last-synced';
/** On an object in the virtual cluster: together with the marker label, it was imported from the host by this program. */
export const OBJECT_IMPORTED = 'vcluster.loft.sh/object-imported';

/** On a host namespace that this program created: the virtual namespace for which it did. */
export const VIRTUAL_NAMESPACE = 'endpoint-syncer/virtual-namespace';

const BOOKKEEPING: ReadonlySet<string> = new Set([
  OBJECT_NAME,
  OBJECT_NAMESPACE,
  OBJECT_UID,
  OBJECT_KIND,
  OBJECT_HOST_NAME,
  OBJECT_HOST_NAMESPACE,
  MANAGED_ANNOTATIONS,
  LAST_SYNCED,
  OBJECT_IMPORTED,
  // Written by vClusters before 0.20.
  'vcluster.loft.sh/managed-labels',
]);

export function isBookkeepingAnnotation(key: string): boolean {
  return BOOKKEEPING.has(key);
}

/** Annotations that identify a copy, without those that depend on the merge ({@link MANAGED_ANNOTATIONS}, {@link LAST_SYNCED}). */
export function identityAnnotations(
  virtual: KubeObject,
  kind: GroupVersionKind,
  host: NamespacedName,
): StringMap {
  const { name, namespace = '', uid = '' } = virtual.metadata;
  const annotations: StringMap = {
    [OBJECT_NAME]: name,
    [OBJECT_UID]: uid,
    [OBJECT_KIND]: gvkString(kind),
    [OBJECT_HOST_NAME]: host.name,
  };
  if (namespace !== '') annotations[OBJECT_NAMESPACE] = namespace;
  if (host.namespace !== '') annotations[OBJECT_HOST_NAMESPACE] = host.namespace;
  return annotations;
}

export function printManagedAnnotations(keys: readonly string[]): string | undefined {
  return keys.length === 0 ? undefined : keys.toSorted().join('\n');
}

/** Undefined if the annotation is missing, which can also mean an empty list. */
export function parseManagedAnnotations(value: string | undefined): ReadonlySet<string> | undefined {
  return value === undefined ? undefined : new Set(value.split('\n').filter((key) => key !== ''));
}
