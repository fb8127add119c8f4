/**
 * What both sides of a pair should be, decided from the virtual object, the host copy with the sync record in it, and what the virtual
 * object translates and patches to. In two steps, because the way back through the patches costs something and is seldom needed:
 *
 *     const changes = detectChanges(input);
 *     const reversed = changes.needsReverse ? await reverse(host) : undefined;
 *     let merged = resolveChanges(changes, reversed);
 *     if (merged.isVirtualChanged) merged = resolveChanges(settleChanges(changes, await forward(merged.virtual)), reversed);
 *
 * Write the host side first: it records what is on its way to the virtual side. Then write the virtual side where `isVirtualChanged`; after
 * that nothing has to be written. A crash in between, an edit on either side or a second daemon loses nothing (see `incoming.ts`).
 */

import { asJson, type KubeObject, type ObjectMeta, type StringMap } from '../../../kube/object.ts';
import { jsonEquals, ownValue, setOwn, type JsonObject } from '../../../base/json.ts';
import {
  EXCLUDED_ANNOTATIONS,
  isBookkeepingAnnotation,
  isBookkeepingLabel,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  parseManagedAnnotations,
  printManagedAnnotations,
} from '../metadata/bookkeeping.ts';
import { memberOf, NO_CONTENT, withMembers } from '../content.ts';
import { carryMetadata } from '../forge.ts';
import { labelsToHost, stringMapOf, virtualOnlyLabels } from '../metadata/labels.ts';
import type { Arrival } from './incoming.ts';
import { decodeLastSynced, encodeLastSynced, type LastSynced } from './last-synced.ts';
import {
  planMap,
  resolveMap,
  settledPlans,
  withRemovals,
  type MapMerge,
  type PlannedKey,
} from './merge-map.ts';
import { planPaths, resolvePaths, settledPaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import type { ConcretePath, ContentRules, FlowRules, LabelTranslator } from '../types.ts';

export interface MergeInput {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is created, or rewritten so that nothing of the old one stays. */
  readonly host: KubeObject | undefined;
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  /** Default: nothing but metadata crosses both ways. */
  readonly content?: ContentRules;
  /** Annotations that never cross; default {@link EXCLUDED_ANNOTATIONS}. */
  readonly excludedAnnotations?: ReadonlySet<string>;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
  /** What this process knows of the values that the record says are on their way; undefined: nothing. */
  readonly arrival?: Arrival | undefined;
}

export interface DetectedChanges {
  readonly input: MergeInput;
  /** As read from the host copy. */
  readonly record: LastSynced | undefined;
  /**
   * A value was on its way, the virtual object changed since, and holds the old value: another daemon may be about to write it. Resolved
   * now, the virtual side wins.
   */
  readonly isUncertain: boolean;
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

/** No patches: metadata flow both ways, content does not. */
export const plainFlows: FlowRules = {
  flowOf: () => 'both',
  twoWayPaths: () => [],
  hostOwnedPaths: () => [],
};

export function detectChanges(input: MergeInput): DetectedChanges {
  const host = input.host && stringMapOf(input.host.metadata.annotations);
  const record = host && decodeLastSynced(ownValue(host, LAST_SYNCED) as string | undefined); // a map of strings
  const arrival = arrivalOf(input, record);
  const annotations = planAnnotations(input, { host, record, arrival });
  const labels = planLabels(input, { record, arrival });
  const paths = planContent(input, { record, arrival });
  const isTaken = ({ plan }: PlannedKey): boolean => plan.kind === 'take';
  const needsReverse = paths.needsReverse || annotations.some(isTaken) || labels.some(isTaken);
  const isUncertain = [...annotations, ...labels, paths].some((planned) => planned.isUncertain);
  return { input, record, annotations, labels, paths, needsReverse, isUncertain };
}

/**
 * The same changes, with what the virtual object translates and patches to once it holds what flows back: then nothing has to be written
 * after it, also where a reverseExpression is not the exact inverse of its expression.
 */
export function settleChanges(changes: DetectedChanges, desired: KubeObject): DetectedChanges {
  const input = { ...changes.input, desired };
  const settled = detectChanges(input);
  return {
    ...changes,
    input,
    annotations: settledPlans(settled.annotations, changes.annotations),
    labels: settledPlans(settled.labels, changes.labels),
    paths: settledPaths(settled.paths, changes.paths),
  };
}

/** A patch that is guarded by the version in the record is due exactly while the virtual object has that version. */
function arrivalOf({ virtual, arrival }: MergeInput, record: LastSynced | undefined): Arrival {
  if (arrival !== undefined && arrival !== 'unknown') return arrival;
  const { resourceVersion } = virtual.metadata;
  return resourceVersion !== undefined && resourceVersion === record?.revision ? 'due' : 'unknown';
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
  const content = resolvePaths(paths, reversed && asJson(reversed));

  const record: LastSynced = {
    annotations: annotations.section,
    labels: labels.section,
    paths: content.section,
    revision: virtual.metadata.resourceVersion,
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
  };
  const wantedVirtual = virtualWanted(input, { annotations, labels, content });
  const isVirtualChanged = wantedVirtual !== virtual;
  const metadata: ObjectMeta = {
    ...(host ? carryMetadata(host.metadata, desired.metadata) : desired.metadata),
    annotations: hostAnnotations(changes, annotations, { record, isVirtualChanged }),
    labels: { ...labels.host, ...pick(stringMapOf(desired.metadata.labels), isOurLabel(input)) },
  };
  const wanted = withMembers({ ...desired, metadata }, content.host);
  return { host: wanted, virtual: wantedVirtual, isVirtualChanged };
}

interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

function planAnnotations(
  input: MergeInput,
  { host, record, arrival }: Recorded & { readonly host: StringMap | undefined },
): readonly PlannedKey[] {
  const crosses = crossing(input);
  const flowOf = (key: string) => input.flows.flowOf(['metadata', 'annotations', key]);
  const managed = host && parseManagedAnnotations(ownValue(host, MANAGED_ANNOTATIONS) as string | undefined);
  return planMap({
    virtual: pick(stringMapOf(input.virtual.metadata.annotations), crosses),
    host: host && pick(host, crosses),
    forward: pick(stringMapOf(input.desired.metadata.annotations), crosses),
    section: record?.annotations,
    arrival,
    flowOf,
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: managed !== undefined && !managed.has(key),
      hostOnly: managed?.has(key) ? 'remove' : flowOf(key) === 'both' ? 'take' : 'keep',
    }),
  });
}

function planLabels(input: MergeInput, { record, arrival }: Recorded): readonly PlannedKey[] {
  const { labels, flows, host } = input;
  const isOurs = isOurLabel(input);
  const crosses = (key: string): boolean => !isOurs(key);
  return planMap({
    virtual: pick(labelsToHost(stringMapOf(input.virtual.metadata.labels), labels), crosses),
    host: host && pick(stringMapOf(host.metadata.labels), crosses),
    forward: pick(stringMapOf(input.desired.metadata.labels), crosses),
    section: record?.labels,
    arrival,
    // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
}

function planContent(input: MergeInput, { record, arrival }: Recorded): PlannedPaths {
  return planPaths({
    content: input.content ?? NO_CONTENT,
    virtual: asJson(input.virtual),
    host: input.host && asJson(input.host),
    desired: asJson(input.desired),
    twoWay: pathsOnBoth(input, (object) => input.flows.twoWayPaths(object)),
    hostOwned: pathsOnBoth(input, (object) => input.flows.hostOwnedPaths(object)),
    section: record?.paths,
    arrival,
  });
}

function crossing({ excludedAnnotations = EXCLUDED_ANNOTATIONS }: MergeInput): (key: string) => boolean {
  return (key) => !excludedAnnotations.has(key) && !isBookkeepingAnnotation(key);
}

/** A label key in the host's key space that may reach the virtual side. */
function crossingLabel(input: MergeInput): (key: string) => boolean {
  const isOurs = isOurLabel(input);
  return (key) => !isOurs(key) && !input.labels.isReserved(key);
}

/** A label of the host copy that comes from the translation alone. */
function isOurLabel({ content = NO_CONTENT }: MergeInput): (key: string) => boolean {
  return (key) => isBookkeepingLabel(key) || content.isOwnLabel(key);
}

function pathsOnBoth(
  { desired, host }: MergeInput,
  pathsOf: (object: JsonObject) => readonly ConcretePath[],
): readonly ConcretePath[] {
  const wanted = pathsOf(asJson(desired));
  return host === undefined ? wanted : [...wanted, ...pathsOf(asJson(host))];
}

interface NewRecord {
  readonly record: LastSynced;
  readonly isVirtualChanged: boolean;
}

/** Excluded keys stay where they are; bookkeeping comes from the translation, whatever is on the host. */
function hostAnnotations(
  { input, record: before }: DetectedChanges,
  merge: MapMerge,
  { record, isVirtualChanged }: NewRecord,
): StringMap {
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
  if (text === undefined) return annotations;
  const isSame =
    before !== undefined && isSameRecord(record, before, ownValue(actual, LAST_SYNCED) as string | undefined); // a map of strings
  annotations[LAST_SYNCED] = isSame && !isVirtualChanged ? (actual[LAST_SYNCED] ?? text) : text;
  return annotations;
}

/** Only the version of the virtual object differs, or entries that say nothing any more: not worth a write. */
function isSameRecord(now: LastSynced, before: LastSynced, text: string | undefined): boolean {
  const record = {
    ...now,
    revision: before.revision,
    annotations: withRemovals(now.annotations, before.annotations),
    labels: withRemovals(now.labels, before.labels),
    paths: withRemovals(now.paths, before.paths),
  };
  return encodeLastSynced(record) === text;
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
  readonly content: PathMerge;
}

function virtualWanted(input: MergeInput, merges: Merges): KubeObject {
  const { virtual, labels, content = NO_CONTENT } = input;
  const crosses = crossing(input);
  const actualAnnotations = stringMapOf(virtual.metadata.annotations);
  const actualLabels = stringMapOf(virtual.metadata.labels);
  const annotations = { ...pick(actualAnnotations, (key) => !crosses(key)), ...merges.annotations.virtual };
  const wantedLabels = {
    ...virtualOnlyLabels(actualLabels, labels),
    ...pick(actualLabels, (key) => content.isOwnLabel(key)),
  };
  for (const key of Object.keys(merges.labels.virtual)) {
    const virtualKey = labels.keyToVirtual(key);
    if (!Object.hasOwn(wantedLabels, virtualKey))
      setOwn(wantedLabels, virtualKey, merges.labels.virtual[key] ?? '');
  }
  const metadata = { ...virtual.metadata };
  const isSame = [
    setIfChanged(metadata, 'annotations', [actualAnnotations, annotations]),
    setIfChanged(metadata, 'labels', [actualLabels, wantedLabels]),
    ...content.members.map((name) => jsonEquals(memberOf(virtual, name), merges.content.virtual[name])),
  ].every(Boolean);
  return isSame ? virtual : withMembers({ ...virtual, metadata }, merges.content.virtual);
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

function pick(map: StringMap, isWanted: (key: string) => boolean): StringMap {
  const picked: StringMap = {};
  for (const key of Object.keys(map)) {
    if (isWanted(key)) setOwn(picked, key, map[key] ?? '');
  }
  return picked;
}
