/**
 * What both sides of a pair should be, decided from the virtual object, the host copy with the sync record in it, and what the virtual
 * object translates and patches to. In two steps, because the way back through the patches costs something and is seldom needed:
 *
 *     const changes = detectChanges(input);
 *     const merged = resolveChanges(changes, changes.needsReverse ? await reverse(host) : undefined);
 *
 * Write the virtual side first where `isVirtualChanged`, then decide anew from what was stored: the pair is in step after at most two
 * writes, also where a reverseExpression is not the exact inverse, and a crash in between loses nothing.
 */

import { asJson, type KubeObject, type ObjectMeta, type StringMap } from '../kube/object.ts';
import { jsonEquals, ownValue, setOwn, type JsonObject, type JsonValue } from '../lib/json.ts';
import {
  EXCLUDED_ANNOTATIONS,
  isBookkeepingAnnotation,
  isBookkeepingLabel,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  parseManagedAnnotations,
  printManagedAnnotations,
} from './bookkeeping.ts';
import { subsetsOf } from './endpoints.ts';
import { carryMetadata } from './forge.ts';
import { labelsToHost, stringMapOf } from './labels.ts';
import { decodeLastSynced, encodeLastSynced, type LastSynced } from './last-synced.ts';
import { planMap, resolveMap, type MapMerge, type PlannedKey } from './merge-map.ts';
import { planPaths, resolvePaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import type { ConcretePath, FlowRules, LabelTranslator } from './types.ts';

export interface MergeInput {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is made, or made anew, and nothing of an old one stays. */
  readonly host: KubeObject | undefined;
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  /** Annotations that never cross; default {@link EXCLUDED_ANNOTATIONS}. */
  readonly excludedAnnotations?: ReadonlySet<string>;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
}

export interface DetectedChanges {
  readonly input: MergeInput;
  /** Some change of the host's flows back: {@link resolveChanges} needs the host object reversed. */
  readonly needsReverse: boolean;
  readonly annotations: readonly PlannedKey[];
  readonly labels: readonly PlannedKey[];
  readonly paths: PlannedPaths;
}

export interface MergedPair {
  /** The whole host object wanted: `desired` over what the host's own metadata holds besides. */
  readonly host: KubeObject;
  /** The whole virtual object wanted; the input itself when nothing flows back. */
  readonly virtual: KubeObject;
  readonly isVirtualChanged: boolean;
}

/** All annotations of one object together may hold this many bytes, keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

/** No patches: everything but `subsets` flows both ways. */
export const plainFlows: FlowRules = {
  flowOf: () => 'both',
  twoWayPaths: () => [],
  hostOwnedPaths: () => [],
};

export function detectChanges(input: MergeInput): DetectedChanges {
  const host = input.host && stringMapOf(input.host.metadata.annotations);
  const record = host && decodeLastSynced(ownValue(host, LAST_SYNCED) as string | undefined); // a map of strings
  const annotations = planAnnotations(input, host, record);
  const labels = planLabels(input, record);
  const paths = planPaths({
    virtual: asJson(input.virtual),
    host: input.host && asJson(input.host),
    desired: asJson(input.desired),
    twoWay: pathsOnBoth(input, (object) => input.flows.twoWayPaths(object)),
    hostOwned: pathsOnBoth(input, (object) => input.flows.hostOwnedPaths(object)),
    section: record?.paths,
  });
  const isTaken = ({ plan }: PlannedKey): boolean => plan.kind === 'take';
  const needsReverse = paths.needsReverse || annotations.some(isTaken) || labels.some(isTaken);
  return { input, annotations, labels, paths, needsReverse };
}

/** `reversed` is the host object after reverse patches and translation back (virtual label keys); required where `needsReverse`. */
export function resolveChanges(changes: DetectedChanges, reversed: KubeObject | undefined): MergedPair {
  const { input, paths } = changes;
  const { virtual, host, desired } = input;
  const crosses = crossing(input);
  const reversedAnnotations = reversed && pick(stringMapOf(reversed.metadata.annotations), crosses);
  const reversedLabels = reversed && labelsToHost(stringMapOf(reversed.metadata.labels), input.labels);
  const annotations = resolveMap(changes.annotations, reversedAnnotations);
  const labels = resolveMap(changes.labels, reversedLabels && pick(reversedLabels, crossingLabel(input)));
  const subsets = resolvePaths(paths, reversed && asJson(reversed));

  const record: LastSynced = {
    annotations: annotations.section,
    labels: labels.section,
    paths: subsets.section,
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
  };
  const metadata: ObjectMeta = {
    ...(host ? carryMetadata(host.metadata, desired.metadata) : desired.metadata),
    annotations: hostAnnotations(input, annotations, record),
    labels: { ...labels.host, ...pick(stringMapOf(desired.metadata.labels), isBookkeepingLabel) },
  };
  const wanted = withSubsets({ ...desired, metadata }, subsets.hostSubsets);
  const wantedVirtual = virtualWanted(input, { annotations, labels, subsets });
  return { host: wanted, virtual: wantedVirtual, isVirtualChanged: wantedVirtual !== virtual };
}

function planAnnotations(
  input: MergeInput,
  host: StringMap | undefined,
  record: LastSynced | undefined,
): readonly PlannedKey[] {
  const crosses = crossing(input);
  const flowOf = (key: string) => input.flows.flowOf(['metadata', 'annotations', key]);
  const managed = host && parseManagedAnnotations(ownValue(host, MANAGED_ANNOTATIONS) as string | undefined);
  return planMap({
    virtual: pick(stringMapOf(input.virtual.metadata.annotations), crosses),
    host: host && pick(host, crosses),
    forward: pick(stringMapOf(input.desired.metadata.annotations), crosses),
    section: record?.annotations,
    flowOf,
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: managed !== undefined && !managed.has(key),
      hostOnly: managed?.has(key) ? 'remove' : flowOf(key) === 'both' ? 'take' : 'keep',
    }),
  });
}

function planLabels(input: MergeInput, record: LastSynced | undefined): readonly PlannedKey[] {
  const { labels, flows, host } = input;
  const notMarker = (key: string): boolean => !isBookkeepingLabel(key);
  return planMap({
    virtual: labelsToHost(stringMapOf(input.virtual.metadata.labels), labels),
    host: host && pick(stringMapOf(host.metadata.labels), notMarker),
    forward: pick(stringMapOf(input.desired.metadata.labels), notMarker),
    section: record?.labels,
    // Raw on the host, a reserved key is somebody else's: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
}

function crossing({ excludedAnnotations = EXCLUDED_ANNOTATIONS }: MergeInput): (key: string) => boolean {
  return (key) => !excludedAnnotations.has(key) && !isBookkeepingAnnotation(key);
}

/** A label key in the host's key space that may reach the virtual side. */
function crossingLabel({ labels }: MergeInput): (key: string) => boolean {
  return (key) => !isBookkeepingLabel(key) && !labels.isReserved(key);
}

function pathsOnBoth(
  { desired, host }: MergeInput,
  pathsOf: (object: JsonObject) => readonly ConcretePath[],
): readonly ConcretePath[] {
  const wanted = pathsOf(asJson(desired));
  return host === undefined ? wanted : [...wanted, ...pathsOf(asJson(host))];
}

/** Excluded keys stay where they are; bookkeeping comes from the translation, whatever somebody made of it. */
function hostAnnotations(input: MergeInput, merge: MapMerge, record: LastSynced): StringMap {
  const excluded = input.excludedAnnotations ?? EXCLUDED_ANNOTATIONS;
  const actual = stringMapOf(input.host?.metadata.annotations);
  const desired = stringMapOf(input.desired.metadata.annotations);
  const annotations: StringMap = {
    ...pick(actual, (key) => excluded.has(key)),
    ...merge.host,
    ...pick(desired, isBookkeepingAnnotation),
  };
  const managed = printManagedAnnotations(merge.managed);
  if (managed === undefined) delete annotations[MANAGED_ANNOTATIONS];
  else annotations[MANAGED_ANNOTATIONS] = managed;
  delete annotations[LAST_SYNCED];
  const text = fittingRecord(record, annotations);
  if (text !== undefined) annotations[LAST_SYNCED] = text;
  return annotations;
}

/** The record never costs an object its sync: without room for all of it paths go first, then the rest. */
function fittingRecord(record: LastSynced, annotations: StringMap): string | undefined {
  let room = ANNOTATION_BYTES_MAX - LAST_SYNCED.length;
  for (const [key, value] of Object.entries(annotations)) {
    room -= Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  const whole = encodeLastSynced(record);
  if (whole.length <= room) return whole;
  const withoutPaths = encodeLastSynced({ ...record, paths: new Map() });
  return withoutPaths.length <= room ? withoutPaths : undefined;
}

interface Merges {
  readonly annotations: MapMerge;
  readonly labels: MapMerge;
  readonly subsets: PathMerge;
}

function virtualWanted(input: MergeInput, merges: Merges): KubeObject {
  const { virtual, labels } = input;
  const crosses = crossing(input);
  const actualAnnotations = stringMapOf(virtual.metadata.annotations);
  const actualLabels = stringMapOf(virtual.metadata.labels);
  const annotations = { ...pick(actualAnnotations, (key) => !crosses(key)), ...merges.annotations.virtual };
  const wantedLabels = pick(actualLabels, (key) => labels.isRewritten(key));
  for (const key of Object.keys(merges.labels.virtual)) {
    setOwn(wantedLabels, labels.keyToVirtual(key), merges.labels.virtual[key] ?? '');
  }
  const metadata = { ...virtual.metadata };
  const isSame = [
    setIfChanged(metadata, 'annotations', [actualAnnotations, annotations]),
    setIfChanged(metadata, 'labels', [actualLabels, wantedLabels]),
    jsonEquals(subsetsOf(virtual), merges.subsets.virtualSubsets),
  ].every(Boolean);
  return isSame ? virtual : withSubsets({ ...virtual, metadata }, merges.subsets.virtualSubsets);
}

function setIfChanged(
  metadata: ObjectMeta,
  member: 'annotations' | 'labels',
  [actual, wanted]: readonly [StringMap, StringMap],
): boolean {
  if (jsonEquals(actual, wanted)) return true;
  metadata[member] = wanted;
  return false;
}

/** A missing member stays missing where there is nothing to put. */
function withSubsets(object: KubeObject, subsets: JsonValue): KubeObject {
  return jsonEquals(subsetsOf(object), subsets) ? object : { ...object, subsets };
}

function pick(map: StringMap, isWanted: (key: string) => boolean): StringMap {
  const picked: StringMap = {};
  for (const key of Object.keys(map)) {
    if (isWanted(key)) setOwn(picked, key, map[key] ?? '');
  }
  return picked;
}
