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
import { jsonEquals, ownValue, setOwn } from '../../../base/json.ts';
import { LAST_SYNCED } from '../metadata/bookkeeping.ts';
import { memberOf, NO_CONTENT, withMembers } from '../content.ts';
import { carryMetadata } from '../forge.ts';
import { labelsToHost, stringMapOf, virtualOnlyLabels } from '../metadata/labels.ts';
import { hostAnnotations } from './host-annotations.ts';
import type { Arrival } from './incoming.ts';
import { decodeLastSynced, type LastSynced } from './last-synced.ts';
import { resolveMap, settledPlans, type MapMerge, type PlannedKey } from './merge-map.ts';
import { resolvePaths, settledPaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import {
  crossing,
  crossingLabel,
  isOurLabel,
  pick,
  planAnnotations,
  planContent,
  planLabels,
  type MergeInput,
} from './merge-plan.ts';

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
