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
import { isBookkeepingAnnotation, isBookkeepingLabel, LAST_SYNCED } from '../metadata/bookkeeping.ts';
import { memberOf, NO_CONTENT, withMembers } from '../content.ts';
import { carryMetadata } from '../forge.ts';
import { labelsToHost, stringMapOf, virtualOnlyLabels } from '../metadata/labels.ts';
import { hostAnnotations } from './host-annotations.ts';
import type { Arrival } from './incoming.ts';
import { decodeLastSynced, hasIncoming, type LastSynced } from './last-synced.ts';
import { resolveMap, settledPlans, type KeyFlow, type MapMerge, type PlannedKey } from './merge-map.ts';
import { resolvePaths, settledPaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import {
  crossingLabel,
  echoedBookkeeping,
  idOfKey,
  isHeld,
  pick,
  planAnnotations,
  planContent,
  planLabels,
  planOwnLabels,
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
  readonly echo: Echo | undefined;
  readonly flows: readonly MemberFlow[];
}

/** A change of an annotation or a label that goes to the other side. */
export interface MemberFlow extends KeyFlow {
  readonly member: 'annotations' | 'labels';
  /** See `idOfKey`. */
  readonly id: string;
}

/** Another syncer has copied the host copy's metadata back to the virtual object. */
export interface Echo {
  /** Keys of annotations and labels, bookkeeping included. */
  readonly keys: readonly string[];
  /** Those of them that the virtual object keeps for now. */
  readonly left: readonly string[];
}

export function detectChanges(input: MergeInput): DetectedChanges {
  const host = input.host && stringMapOf(input.host.metadata.annotations);
  const record = host && decodeLastSynced(ownValue(host, LAST_SYNCED) as string | undefined); // a map of strings
  const arrival = arrivalOf(input, record);
  const annotations = planAnnotations(input, { host, record, arrival });
  const labels = [...planLabels(input, { record, arrival }), ...planOwnLabels(input, { record, arrival })];
  const paths = planContent(input, { record, arrival });
  const isReversed = ({ plan, state }: PlannedKey): boolean =>
    plan.kind === 'take' || (plan.kind === 'echo' && state.restoresEcho === true);
  const needsReverse = paths.needsReverse || annotations.some(isReversed) || labels.some(isReversed);
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
  const crosses = (key: string): boolean =>
    !isBookkeepingAnnotation(key) && !isHeld(input, 'annotations', key);
  const reversedAnnotations = reversed && pick(stringMapOf(reversed.metadata.annotations), crosses);
  const reversedLabels = reversed && labelsToHost(stringMapOf(reversed.metadata.labels), input.labels);
  const annotations = resolveMap(changes.annotations, reversedAnnotations);
  // A label that comes from the translation alone flows back only where another syncer has copied its translation back.
  const echoed = new Set(changes.labels.filter(({ plan }) => plan.kind === 'echo').map(({ key }) => key));
  const crossesLabel = crossingLabel(input);
  const crossing = (key: string): boolean => crossesLabel(key) || echoed.has(key);
  const labels = resolveMap(changes.labels, reversedLabels && pick(reversedLabels, crossing));
  const content = resolvePaths(paths, reversed && asJson(reversed));

  const record: LastSynced = {
    annotations: annotations.section,
    labels: labels.section,
    paths: content.section,
    revision: virtual.metadata.resourceVersion,
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
  };
  const echo = echoOf(input, [...annotations.echoes, ...labels.echoes]);
  const wantedVirtual = virtualWanted(input, { annotations, labels, content }, echo);
  const isVirtualChanged = wantedVirtual !== virtual;
  const metadata: ObjectMeta = {
    ...(host ? carryMetadata(host.metadata, desired.metadata) : desired.metadata),
    annotations: hostAnnotations(changes, annotations, {
      record,
      isFlowingBack: isVirtualChanged && hasIncoming(record),
    }),
    labels: { ...labels.host, ...pick(stringMapOf(desired.metadata.labels), isBookkeepingLabel) },
  };
  const wanted = withMembers({ ...desired, metadata }, content.host);
  const flowsOf = (member: MemberFlow['member'], { flows }: MapMerge): MemberFlow[] =>
    flows.map((flow) => ({ ...flow, member, id: idOfKey(member, flow.key) }));
  const flows = [...flowsOf('annotations', annotations), ...flowsOf('labels', labels)];
  return { host: wanted, virtual: wantedVirtual, isVirtualChanged, echo, flows };
}

/** The bookkeeping is removed last: another syncer carries its removal to the host, where it proves the other keys. */
function echoOf(input: MergeInput, echoes: MapMerge['echoes']): Echo | undefined {
  const bookkeeping = echoedBookkeeping(input);
  if (bookkeeping.length === 0 && echoes.length === 0) return undefined;
  const left = echoes.filter(({ isLeft }) => isLeft).map(({ key }) => key);
  const isKept = left.length > 0 || input.memory?.restoresEchoes !== true;
  return {
    keys: [...echoes.map(({ key }) => key), ...bookkeeping],
    left: isKept ? [...left, ...bookkeeping] : [],
  };
}

interface Merges {
  readonly annotations: MapMerge;
  readonly labels: MapMerge;
  readonly content: PathMerge;
}

function virtualWanted(input: MergeInput, merges: Merges, echo: Echo | undefined): KubeObject {
  const { virtual, labels, content = NO_CONTENT } = input;
  const actualAnnotations = stringMapOf(virtual.metadata.annotations);
  const actualLabels = stringMapOf(virtual.metadata.labels);
  const isRemoved = (key: string): boolean => echo?.keys.includes(key) === true && !echo.left.includes(key);
  const own = pick(actualAnnotations, (key) => isBookkeepingAnnotation(key) && !isRemoved(key));
  const annotations = { ...own, ...merges.annotations.virtual };
  const wantedLabels = virtualOnlyLabels(actualLabels, labels);
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
