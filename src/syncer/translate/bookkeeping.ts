/** The marker label and the annotations that identify the original of a host copy, and whose copy an object is according to them alone, so that the
 * result is the same after a restart. They are never synced to the virtual side. */

import {
  gvkString,
  keyOf,
  type GroupVersionKind,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type ObjectMeta,
  type StringMap,
} from '../../kube/object.ts';
import { stringMapOf, pick } from '../../kube/string-map.ts';
import { ownValue } from '../../base/json.ts';
import { isBookkeepingLabel, MANAGED_BY_LABEL } from './labels.ts';
import type { NameTranslator, Ownership } from './types.ts';

/** In `managedFields`. */
export const FIELD_MANAGER = 'endpoint-syncer';
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
/** On an import: which object it is, so that a tenant's copy of it under another name is none. */
export const IMPORTED_AS = 'endpoint-syncer/imported-as';

/** On a host namespace that this program created: the virtual namespace for which it did. */
export const VIRTUAL_NAMESPACE = 'endpoint-syncer/virtual-namespace';

const LEADER = 'control-plane.alpha.kubernetes.io/leader';
/** On the copy of an Endpoints while the host has no Service of its name: with any value, the host's endpoints controller spares it when it starts.
 * The mirroring controller ignores such Endpoints. Another value is data of a leader election. */
export const UNSERVED: StringMap = { [LEADER]: 'endpoint-syncer' };

export const BOOKKEEPING_ANNOTATIONS: ReadonlySet<string> = new Set([
  OBJECT_NAME,
  OBJECT_NAMESPACE,
  OBJECT_UID,
  OBJECT_KIND,
  OBJECT_HOST_NAME,
  OBJECT_HOST_NAMESPACE,
  MANAGED_ANNOTATIONS,
  LAST_SYNCED,
  OBJECT_IMPORTED,
  IMPORTED_AS,
  // Written by vClusters before 0.20.
  'vcluster.loft.sh/managed-labels',
]);

export function isBookkeepingAnnotation(key: string): boolean {
  return BOOKKEEPING_ANNOTATIONS.has(key);
}

export function isUnservedMark(key: string, value: string): boolean {
  return key === LEADER && value === UNSERVED[LEADER];
}

/** The mirroring controller ignores an Endpoints with this annotation, whatever its value. */
export function isElected({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[LEADER] !== undefined;
}

/** A syncer has copied the object there, so what it contains may be a tenant's. */
export function hasBookkeeping({ metadata: { annotations, labels } }: KubeObject): boolean {
  return (
    Object.keys(labels ?? {}).some(isBookkeepingLabel) ||
    Object.keys(annotations ?? {}).some(isBookkeepingAnnotation)
  );
}

/** The key of the virtual object that a copy says it was made from, whether or not that is true; undefined: it says none. */
export function statedOrigin({ metadata: { annotations = {} } }: KubeObject): ObjectKey | undefined {
  const { [OBJECT_NAME]: name, [OBJECT_NAMESPACE]: namespace } = annotations;
  return name === undefined || namespace === undefined ? undefined : keyOf({ namespace, name });
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

interface Bookkeeping {
  readonly annotations: StringMap;
  readonly marker: 'ours' | 'absent' | 'other';
  readonly host: NamespacedName;
}

/** An annotation may agree with what the object is, contradict it, or be missing (older vClusters wrote fewer of them). */
type Agreement = 'agrees' | 'contradicts' | 'missing';

/** The marker label of our copies may be absent: the host's endpoints controller rewrites labels in place. Where other bookkeeping is missing, the
 * name rule has to agree. `expected`: whose copy belongs to this place; with it, a damaged copy is known by its marker label and its record. */
export function ownershipOf(
  object: KubeObject,
  kind: GroupVersionKind,
  translator: NameTranslator,
  expected?: NamespacedName,
): Ownership {
  const known = bookkeepingOf(object, translator);
  const stated = annotatedVirtual(known.annotations);
  const uid = ownValue(known.annotations, OBJECT_UID) as string | undefined; // a map of strings
  if (translator.isTargetNamespace(known.host.namespace) && known.marker !== 'other') {
    const isProvenCopy = stated !== undefined && isProven(known, stated, kind, translator);
    const virtual = isProvenCopy
      ? rightful(known, stated, { translator, expected })
      : isDamagedCopy(known, kind, { translator, expected })
        ? expected
        : undefined;
    if (virtual !== undefined) return { kind: 'ours', virtual, uid };
  }
  return { kind: stated === undefined ? 'unmarked' : 'foreign', object };
}

/** Whatever the object's own name is: other syncers may follow another rule. Undefined where the bookkeeping contradicts object, kind or cluster. */
export function namedVirtual(
  object: KubeObject,
  kind: GroupVersionKind,
  translator: NameTranslator,
): NamespacedName | undefined {
  const known = bookkeepingOf(object, translator);
  if (known.marker === 'other' || !translator.isTargetNamespace(known.host.namespace)) return undefined;
  const virtual = virtualByAnnotations(object, kind);
  if (virtual === undefined) return undefined;
  if (known.marker === 'ours') return rightful(known, virtual, { translator });
  return isProven(known, virtual, kind, translator) ? virtual : undefined;
}

/** Host → virtual: from bookkeeping, or, for an object without bookkeeping, from the naming rule if it has exactly one result. */
export function virtualOf(
  object: KubeObject,
  kind: GroupVersionKind,
  translator: NameTranslator,
): NamespacedName | undefined {
  const known = bookkeepingOf(object, translator);
  if (annotatedVirtual(known.annotations) !== undefined) return namedVirtual(object, kind, translator);
  if (known.marker === 'other') return undefined;
  const candidates = translator.toVirtualCandidates(known.host);
  return candidates.length === 1 ? candidates[0] : undefined;
}

/** Undefined if an annotation contradicts the object or this kind. */
export function virtualByAnnotations(object: KubeObject, kind: GroupVersionKind): NamespacedName | undefined {
  const annotations = stringMapOf(object.metadata.annotations);
  const virtual = annotatedVirtual(annotations);
  const isContradicted = agreements(annotations, kind, hostOf(object)).includes('contradicts');
  return isContradicted ? undefined : virtual;
}

function bookkeepingOf(object: KubeObject, translator: NameTranslator): Bookkeeping {
  const marker = ownValue(stringMapOf(object.metadata.labels), MANAGED_BY_LABEL);
  return {
    annotations: stringMapOf(object.metadata.annotations),
    marker: marker === undefined ? 'absent' : marker === translator.vcluster ? 'ours' : 'other',
    host: hostOf(object),
  };
}

function hostOf({ metadata: { name, namespace = '' } }: KubeObject): NamespacedName {
  return { name, namespace };
}

function annotatedVirtual(annotations: StringMap): NamespacedName | undefined {
  const name = ownValue(annotations, OBJECT_NAME);
  if (typeof name !== 'string' || name === '') return undefined;
  const namespace = ownValue(annotations, OBJECT_NAMESPACE);
  return { name, namespace: typeof namespace === 'string' ? namespace : '' };
}

function agreements(
  annotations: StringMap,
  kind: GroupVersionKind,
  host: NamespacedName,
): readonly Agreement[] {
  const agreementOn = (key: string, actual: string): Agreement => {
    const stated = ownValue(annotations, key);
    return stated === undefined ? 'missing' : stated === actual ? 'agrees' : 'contradicts';
  };
  return [
    agreementOn(OBJECT_KIND, gvkString(kind)),
    agreementOn(OBJECT_HOST_NAME, host.name),
    agreementOn(OBJECT_HOST_NAMESPACE, host.namespace),
  ];
}

function isProven(
  known: Bookkeeping,
  virtual: NamespacedName,
  kind: GroupVersionKind,
  translator: NameTranslator,
): boolean {
  const found = agreements(known.annotations, kind, known.host);
  if (found.includes('contradicts')) return false;
  if (!found.includes('missing')) return true;
  return known.marker === 'ours' && isAtItsPlace(known.host, virtual, translator);
}

/** Bookkeeping that is whole may name the wrong object: a copy of ours that is not at its place was left behind by another naming rule, or the name
 * in it was changed. Then this is the place of `expected`, or of the one object that the rule puts here. */
function rightful(
  known: Bookkeeping,
  stated: NamespacedName,
  { translator, expected }: { translator: NameTranslator; expected?: NamespacedName | undefined },
): NamespacedName {
  if (!hasMarkerAndRecord(known) || isAtItsPlace(known.host, stated, translator)) return stated;
  if (expected !== undefined && isLikelyCopyOf(known, expected, translator)) return expected;
  const candidates = translator.toVirtualCandidates(known.host);
  const [best, ...others] = candidates.filter((one) => isLikelyCopyOf(known, one, translator));
  return best !== undefined && others.length === 0 ? best : stated;
}

/** The bookkeeping contradicts the object or is missing, but this program created the object at the place of the expected copy. */
function isDamagedCopy(
  known: Bookkeeping,
  kind: GroupVersionKind,
  { translator, expected }: { translator: NameTranslator; expected: NamespacedName | undefined },
): boolean {
  if (expected === undefined || !hasMarkerAndRecord(known)) return false;
  if (isCloned(known, translator) || isOfAnother(known, expected)) return false;
  if (isOfAnotherKind(known, kind) && fitOf(known, expected) < FULL_FIT) return false;
  return isLikelyCopyOf(known, expected, translator);
}

/** A controller derived it from a copy of that kind, with its labels and annotations: EndpointSlices from Endpoints. */
function isOfAnotherKind({ annotations }: Bookkeeping, { kind }: GroupVersionKind): boolean {
  const stated = /, Kind=(\w+)$/.exec(annotations[OBJECT_KIND] ?? '')?.[1];
  return stated !== undefined && stated !== kind;
}

/** The complete bookkeeping of another copy: another client applied the manifest of that copy under this name. */
function isCloned({ annotations, host }: Bookkeeping, translator: NameTranslator): boolean {
  const stated = annotatedVirtual(annotations);
  const [name, namespace] = [annotations[OBJECT_HOST_NAME], annotations[OBJECT_HOST_NAMESPACE]];
  if (stated === undefined || name === undefined || namespace === undefined) return false;
  const isElsewhere = name !== host.name || namespace !== host.namespace;
  return isElsewhere && isAtItsPlace({ name, namespace }, stated, translator);
}

/** It names another object and another host name: a clone, possibly of a copy whose place has changed with the naming rule. */
function isOfAnother(known: Bookkeeping, expected: NamespacedName): boolean {
  const stated = annotatedVirtual(known.annotations);
  const hostName = ownValue(known.annotations, OBJECT_HOST_NAME);
  return (
    stated !== undefined &&
    fitOf(known, expected) < FULL_FIT &&
    hostName !== undefined &&
    hostName !== known.host.name
  );
}

/** It is at the place of the copy of `virtual`, and its remaining bookkeeping matches no other object of this place better. */
function isLikelyCopyOf(known: Bookkeeping, virtual: NamespacedName, translator: NameTranslator): boolean {
  if (!isAtItsPlace(known.host, virtual, translator)) return false;
  const stated = annotatedVirtual(known.annotations);
  const isStatedHere = stated !== undefined && isAtItsPlace(known.host, stated, translator);
  const rivals = [...translator.toVirtualCandidates(known.host), ...(isStatedHere ? [stated] : [])];
  const fit = fitOf(known, virtual);
  return rivals.every((rival) => fitOf(known, rival) <= fit);
}

const FULL_FIT = 2;

/** The number of annotations (name, namespace) that match this virtual object. */
function fitOf({ annotations }: Bookkeeping, { name, namespace }: NamespacedName): number {
  return Number(annotations[OBJECT_NAME] === name) + Number(annotations[OBJECT_NAMESPACE] === namespace);
}

function hasMarkerAndRecord({ marker, annotations }: Bookkeeping): boolean {
  return marker === 'ours' && ownValue(annotations, LAST_SYNCED) !== undefined;
}

function isAtItsPlace(host: NamespacedName, virtual: NamespacedName, translator: NameTranslator): boolean {
  const place = translator.toHost(virtual);
  return place?.name === host.name && place.namespace === host.namespace;
}

/** A copy without the bookkeeping annotations and the marker labels. */
export function withoutBookkeeping(object: KubeObject): KubeObject {
  return withoutKeys(object, (member, key, value) =>
    member === 'annotations'
      ? isBookkeepingAnnotation(key) || isUnservedMark(key, value)
      : isBookkeepingLabel(key),
  );
}

export function withoutKeys(
  object: KubeObject,
  isHidden: (member: 'annotations' | 'labels', key: string, value: string) => boolean,
): KubeObject {
  const metadata: ObjectMeta = { ...object.metadata };
  for (const member of ['annotations', 'labels'] as const) {
    const kept = pick(stringMapOf(metadata[member]), (key, value) => !isHidden(member, key, value));
    if (Object.keys(kept).length > 0) metadata[member] = kept;
    else delete metadata[member];
  }
  return { ...object, metadata };
}
