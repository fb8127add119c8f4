/** Whole objects: the host copy that a virtual object translates to, and the virtual object that a host copy translates back to. */

import {
  apiVersionOf,
  type GroupVersionKind,
  type KubeObject,
  type NamespacedName,
  type ObjectMeta,
  type StringMap,
} from '../../kube/object.ts';
import { stringMapOf, pick } from '../../kube/string-map.ts';
import { jsonEquals, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { identityAnnotations, isBookkeepingAnnotation, isUnservedMark } from './bookkeeping.ts';
import { labelsToHost, labelsToVirtual, markerLabels } from './labels.ts';
import { withMembers } from './content.ts';
import type { ContentRules, LabelTranslator, NameTranslator } from './types.ts';

export interface Translators {
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
}

export interface OwnerReference extends JsonObject {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

export interface ForgeOptions extends Translators {
  readonly kind: GroupVersionKind;
  readonly content: ContentRules;
  readonly target: NamespacedName;
  /** Only set in the virtual cluster's own host namespace: with an owner in another namespace, the copy would be garbage collected. */
  readonly owner?: OwnerReference | undefined;
  readonly host?: KubeObject | undefined;
}

/** Before patches, and before the merge, which adds the sync record and the list of managed annotations. */
export function forgeHostObject(virtual: KubeObject, options: ForgeOptions): KubeObject {
  const { kind, names, content, host } = options;
  const copy: KubeObject = {
    ...virtual,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: forgeHostMetadata(virtual, options),
  };
  for (const member of content.ownMembers) delete copy[member];
  return withMembers(copy, content.toHost(virtual, { names, host }));
}

/** Without server-set fields, finalizers and owners other than ours. */
function forgeHostMetadata(virtual: KubeObject, options: ForgeOptions): ObjectMeta {
  const { kind, content, target, labels, names, owner } = options;
  const { namespace = '' } = virtual.metadata;
  const metadata: ObjectMeta = {
    name: target.name,
    annotations: {
      ...pick(
        crossingAnnotations(virtual.metadata, labels),
        (key) => content.crossingOf?.('annotations', key) !== 'never',
      ),
      ...identityAnnotations(virtual, kind, target),
    },
    labels: {
      ...crossingLabels(virtual, options),
      ...content.ownLabels(virtual, names),
      ...markerLabels(labels.vcluster, namespace),
    },
  };
  if (target.namespace !== '') metadata.namespace = target.namespace;
  if (owner !== undefined && target.namespace === names.hostNamespace) metadata['ownerReferences'] = [owner];
  return metadata;
}

/** Of a host copy whose patches are reversed already. Members that a server sets are those of `original`, where there is one. */
export function backTranslate(
  host: KubeObject,
  virtual: NamespacedName,
  { names, labels, content }: Translators & { readonly content: ContentRules },
  original?: KubeObject,
): KubeObject {
  const metadata: ObjectMeta = { ...original?.metadata, name: virtual.name };
  if (virtual.namespace !== '') metadata.namespace = virtual.namespace;
  const originalLabels = stringMapOf(original?.metadata.labels);
  const flowsBack = (member: 'annotations' | 'labels') => (key: string) =>
    content.crossingOf?.(member, key) === undefined && !(member === 'labels' && content.isOwnLabel(key));
  metadata.annotations = pick(crossingAnnotations(host.metadata, labels), flowsBack('annotations'));
  metadata.labels = {
    ...labelsToVirtual(pick(stringMapOf(host.metadata.labels), flowsBack('labels')), labels, originalLabels),
    ...content.ownLabelsToVirtual(host, virtual.namespace, names),
  };
  const result: KubeObject = { ...host, metadata };
  return withMembers(result, content.toVirtual(host, { names, namespace: virtual.namespace, original }));
}

function crossingLabels(virtual: KubeObject, { labels, content }: ForgeOptions): StringMap {
  const crossing = labelsToHost(stringMapOf(virtual.metadata.labels), labels);
  return pick(
    crossing,
    (key) =>
      !content.isOwnLabel(key) &&
      content.crossingOf?.('labels', key) !== 'never' &&
      !labels.isExcluded('labels', labels.keyToVirtual(key)),
  );
}

function crossingAnnotations(metadata: ObjectMeta, labels: LabelTranslator): StringMap {
  return pick(
    stringMapOf(metadata.annotations),
    (key, value) =>
      !isBookkeepingAnnotation(key) && !isUnservedMark(key, value) && !labels.isExcluded('annotations', key),
  );
}

/** Keeps finalizers, owners and all other metadata that other clients have set on the host, and adds our owner if it is not one of them, in the
 * place of its former self. */
export function carryMetadata(actual: ObjectMeta, desired: ObjectMeta): ObjectMeta {
  const { managedFields: _managedFields, ...kept } = actual;
  const owners = mergedOwners(desired['ownerReferences'], actual['ownerReferences']);
  return owners === undefined ? kept : { ...kept, ownerReferences: owners };
}

function mergedOwners(ours: JsonValue | undefined, theirs: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(ours) || ours.length === 0) return theirs;
  const uidOf = (owner: JsonValue): JsonValue | undefined => valueAt(owner, ['uid']);
  const isFormer = (owner: JsonValue): boolean =>
    ours.some(
      (one) =>
        uidOf(one) !== uidOf(owner) &&
        ['apiVersion', 'kind', 'name'].every((member) =>
          jsonEquals(valueAt(one, [member]), valueAt(owner, [member])),
        ),
    );
  const actual = (Array.isArray(theirs) ? theirs : []).filter((owner) => !isFormer(owner));
  const uids = new Set(actual.map(uidOf));
  return [...actual, ...ours.filter((owner) => !uids.has(uidOf(owner)))];
}
