/**
 * The three-way merge of a pair: the virtual object, its host copy, and the record of their last sync on the copy. First, what is known of every
 * annotation, label and path is gathered and planned; then the plans become the objects that both sides should hold.
 */

import { asJson, type KubeObject, type ObjectMeta, type StringMap } from '../../kube/object.ts';
import { jsonEquals, ownValue, setOwn, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  isBookkeepingAnnotation,
  isBookkeepingLabel,
  MANAGED_ANNOTATIONS,
  parseManagedAnnotations,
} from './bookkeeping.ts';
import { memberOf, NO_CONTENT, withMembers } from './content.ts';
import { carryMetadata } from './forge.ts';
import { labelsToHost, stringMapOf, virtualOnlyLabels, pick } from './labels.ts';
import { type Arrival, decodeLastSynced, hasIncoming, recordOf, type LastSynced } from './last-synced.ts';
import { echoInput, echoOf, type Echo, type MergeMemory } from './merge-echo.ts';
import { hostAnnotations } from './merge-record.ts';
import {
  planMap,
  resolveMap,
  settledPlans,
  type KeyFlow,
  type MapMerge,
  type PlannedKey,
} from './merge-map.ts';
import { planPaths, resolvePaths, settledPaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import type { ConcretePath, ContentRules, FlowRules, KeptPaths, LabelTranslator } from './types.ts';

export interface Pair {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is created, or rewritten so that nothing of the old one stays. */
  readonly host: KubeObject | undefined;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  /** Default: nothing but metadata crosses both ways. */
  readonly content?: ContentRules;
  readonly memory?: MergeMemory | undefined;
  /** What this process knows of the values that the record says are on their way; undefined: nothing. */
  readonly arrival?: Arrival | undefined;
}

/** Translation and patches of a pair. */
export interface PairTranslation<T extends Forwarded> {
  forward(virtual: KubeObject): Promise<T>;
  /** The host object after reverse patches and translation back (virtual label keys). Undefined: nothing flows back. */
  reverse?(): Promise<Reversed>;
}

export interface Forwarded {
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
  /** Instead of those of the pair: filters have decided. */
  readonly flows?: FlowRules;
  /** Where patches have failed: the host keeps what it has, and nothing flows back. */
  readonly kept?: KeptPaths | undefined;
}

export interface Reversed {
  readonly virtual: KubeObject;
  /** Names that cannot be translated back: an error where one would reach the virtual object. */
  readonly unresolved?: readonly { readonly path: ConcretePath; readonly error: Error }[];
  /** Where patches in reverse have failed: what would flow back stays on the host. */
  readonly kept?: KeptPaths | undefined;
}

export interface MergedPair<T extends Forwarded> {
  /** The whole host object wanted: `desired` over what the host's own metadata holds besides. */
  readonly host: KubeObject;
  /** The whole virtual object wanted; undefined: nothing flows back. */
  readonly virtual: KubeObject | undefined;
  /** Some value is on its way to the virtual side, according to the record of the host copy, as it is or as it is wanted. */
  readonly hasIncoming: boolean;
  /**
   * A value was on its way, the virtual object changed since, and holds the old value: another daemon may be about to write it. Resolved
   * now, the virtual side wins.
   */
  readonly isUncertain: boolean;
  readonly echo: Echo | undefined;
  readonly flows: readonly MemberFlow[];
  /** Annotations and labels, as {@link idOfKey}, of which the copy held what an earlier version had not translated. */
  readonly repaired: readonly string[];
  /** What the wanted virtual object translates to. */
  readonly forwarded: T;
  /** What the virtual object would translate to with a change of the host that stays there: a patch fails on it. */
  readonly rejected?: T;
}

/** A change of an annotation or a label that goes to the other side. */
export interface MemberFlow extends KeyFlow {
  readonly member: 'annotations' | 'labels';
  /** See {@link idOfKey}. */
  readonly id: string;
}

/**
 * Runs the patches once forward, in reverse only where a change of the host flows back, and then forward again: what the virtual object
 * translates to once it holds that change is written to the host at the same time, so that nothing follows, also where a reverseExpression
 * is not the exact inverse of its expression. Rejects with the errors of `translation`.
 */
export async function mergePair<T extends Forwarded>(
  pair: Pair,
  translation: PairTranslation<T>,
): Promise<MergedPair<T>> {
  const first = await translation.forward(pair.virtual);
  const wanted = planPair({ ...pair, ...first });
  const reversed = wanted.needsReverse ? await translation.reverse?.() : undefined;
  let planned = reversed?.kept === undefined ? wanted : withoutKept(wanted, reversed.kept);
  let rejected: { readonly rejected: T } | undefined;
  for (;;) {
    const merged = resolvePair(planned, reversed?.virtual);
    const { virtual } = merged;
    if (virtual === undefined || pair.host === undefined) return { ...merged, forwarded: first, ...rejected };
    const unknown = reversed?.unresolved?.find(({ path }) => !isKnownAt(path, virtual, pair));
    if (unknown !== undefined) throw unknown.error;
    const second = await translation.forward(virtual);
    if (second.kept === undefined || !takesAt(planned, second.kept))
      return {
        ...resolvePair(settledPair(planned, second), reversed?.virtual),
        forwarded: second,
        ...rejected,
      };
    // What cannot be translated to the host again stays there, as what cannot be translated back does.
    planned = withoutKept(planned, second.kept);
    rejected = { rejected: second };
  }
}

/** A change of the host that flows back is at one of these paths. */
function takesAt({ annotations, labels, paths }: PlannedPair, kept: KeptPaths): boolean {
  const isAt = (member: 'annotations' | 'labels') => (one: PlannedKey) =>
    one.plan.kind === 'take' && kept.covers(['metadata', member, one.key]);
  return (
    annotations.some(isAt('annotations')) ||
    labels.some(isAt('labels')) ||
    paths.paths.some((one) => one.isTaken && !one.isKept && kept.covers(one.path))
  );
}

/** The virtual object has the value at this path, or had it before another syncer copied the host's back: it does not come from the host. */
function isKnownAt(path: ConcretePath, wanted: KubeObject, { virtual, memory }: Pair): boolean {
  const valueIn = (object: KubeObject): JsonValue => valueAt(asJson(object), path) ?? null;
  const known = [virtual, memory?.agreed?.virtual].filter((object) => object !== undefined);
  return known.some((object) => jsonEquals(valueIn(object), valueIn(wanted)));
}

type MergeInput = Pair & Forwarded;

interface PlannedPair {
  readonly input: MergeInput;
  /** As read from the host copy. */
  readonly record: LastSynced | undefined;
  readonly isUncertain: boolean;
  /** Some change of the host's flows back. */
  readonly needsReverse: boolean;
  readonly annotations: readonly PlannedKey[];
  readonly labels: readonly PlannedKey[];
  readonly paths: PlannedPaths;
}

function planPair(input: MergeInput): PlannedPair {
  const host = input.host && stringMapOf(input.host.metadata.annotations);
  const record = input.host && decodeLastSynced(recordOf(input.host));
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

/** A patch that is guarded by the version in the record is due exactly while the virtual object has that version. */
function arrivalOf({ virtual, arrival }: MergeInput, record: LastSynced | undefined): Arrival {
  if (arrival !== undefined && arrival !== 'unknown') return arrival;
  const { resourceVersion } = virtual.metadata;
  return resourceVersion !== undefined && resourceVersion === record?.revision ? 'due' : 'unknown';
}

/** `annotations KEY` or `labels KEY`, in the host's key space. */
export function idOfKey(member: 'annotations' | 'labels', key: string): string {
  return `${member} ${key}`;
}

/** Why a key is not synced: by configuration, or for now. */
function holdOf(
  { labels, memory, kept }: MergeInput,
  member: 'annotations' | 'labels',
  key: string,
): 'excluded' | 'held' | undefined {
  const virtualKey = member === 'labels' ? labels.keyToVirtual(key) : key;
  if (labels.isExcluded(member, virtualKey)) return 'excluded';
  const isHeld = kept?.covers(['metadata', member, key]) === true || memory?.held?.has(idOfKey(member, key));
  return isHeld === true ? 'held' : undefined;
}

interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

function planAnnotations(
  input: MergeInput,
  { host, record, arrival }: Recorded & { readonly host: StringMap | undefined },
): readonly PlannedKey[] {
  const crosses = (key: string): boolean => !isBookkeepingAnnotation(key);
  const flowOf = (key: string) => input.flows.flowOf(['metadata', 'annotations', key]);
  const managed = host && parseManagedAnnotations(ownValue(host, MANAGED_ANNOTATIONS) as string | undefined);
  return planMap({
    virtual: pick(stringMapOf(input.virtual.metadata.annotations), crosses),
    host: host && pick(host, crosses),
    forward: pick(stringMapOf(input.desired.metadata.annotations), crosses),
    section: record?.annotations,
    isOwn: record?.isOwn === true,
    arrival,
    flowOf,
    holdOf: (key) => holdOf(input, 'annotations', key),
    ...echoInput(input, 'annotations', (object) => pick(stringMapOf(object.metadata.annotations), crosses)),
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
    isOwn: record?.isOwn === true,
    arrival,
    holdOf: (key) => holdOf(input, 'labels', key),
    ...echoInput(input, 'labels', (object, side) => {
      const map = stringMapOf(object.metadata.labels);
      return pick(side === 'virtual' ? labelsToHost(map, labels) : map, crosses);
    }),
    // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
}

/**
 * The labels that come from the translation alone. Only the virtual side decides about them; they are planned because another syncer may
 * copy them back.
 */
function planOwnLabels(input: MergeInput, { record, arrival }: Recorded): readonly PlannedKey[] {
  const { content = NO_CONTENT, host } = input;
  const virtual = stringMapOf(input.virtual.metadata.labels);
  const isOwn = (key: string): boolean => content.isOwnLabel(key) && Object.hasOwn(virtual, key);
  const ownOf = (object: KubeObject): StringMap => pick(stringMapOf(object.metadata.labels), isOwn);
  const echo = echoInput(input, 'labels', ownOf);
  return planMap({
    virtual: ownOf(input.virtual),
    host: host && ownOf(host),
    forward: ownOf(input.desired),
    section: record?.labels,
    isOwn: record?.isOwn === true,
    arrival,
    flowOf: () => 'toHost',
    holdOf: () => undefined,
    ...echo,
    // The translation is the same for what it has translated, and no user writes that.
    echoes: { ...echo.echoes, isRecordEchoed: true },
    lostBase: () => ({ kind: 'lost', isFromHost: false, hostOnly: 'remove' }),
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
    kept: pathsOnBoth(input, (object) => input.kept?.locate(object) ?? []),
    section: record?.paths,
    arrival,
  });
}

/** A label key in the host's key space that may reach the virtual side. */
function crossingLabel(input: MergeInput): (key: string) => boolean {
  const isOurs = isOurLabel(input);
  return (key) => !isOurs(key) && !input.labels.isReserved(key) && holdOf(input, 'labels', key) === undefined;
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

/** What cannot be translated back stays where it is, and so does its record: a later try starts from the same state. */
function withoutKept(planned: PlannedPair, kept: KeptPaths): PlannedPair {
  const hold =
    (member: 'annotations' | 'labels') =>
    (one: PlannedKey): PlannedKey =>
      one.plan.kind === 'take' && kept.covers(['metadata', member, one.key])
        ? { ...one, plan: { kind: 'hold' } }
        : one;
  const { annotations, labels, paths } = planned;
  return {
    ...planned,
    annotations: annotations.map(hold('annotations')),
    labels: labels.map(hold('labels')),
    paths: {
      ...paths,
      paths: paths.paths.map((one) =>
        one.isTaken && kept.covers(one.path) ? { ...one, isKept: true } : one,
      ),
    },
  };
}

/** The same plans for what flows back; for the rest, those of what the virtual object translates to once it holds that. */
function settledPair(before: PlannedPair, forwarded: Forwarded): PlannedPair {
  const input = { ...before.input, ...forwarded };
  const settled = planPair(input);
  return {
    ...before,
    input,
    annotations: settledPlans(settled.annotations, before.annotations),
    labels: settledPlans(settled.labels, before.labels),
    paths: settledPaths(settled.paths, before.paths),
  };
}

/** `reversed` is required where `needsReverse`. */
function resolvePair(
  planned: PlannedPair,
  reversed: KubeObject | undefined,
): Omit<MergedPair<Forwarded>, 'forwarded' | 'rejected'> {
  const { input, paths } = planned;
  const { virtual, host, desired } = input;
  const crosses = (key: string): boolean =>
    !isBookkeepingAnnotation(key) && holdOf(input, 'annotations', key) === undefined;
  const reversedAnnotations = reversed && pick(stringMapOf(reversed.metadata.annotations), crosses);
  const reversedLabels = reversed && labelsToHost(stringMapOf(reversed.metadata.labels), input.labels);
  const annotations = resolveMap(planned.annotations, reversedAnnotations);
  // A label that comes from the translation alone flows back only where another syncer has copied its translation back.
  const echoed = new Set(planned.labels.filter(({ plan }) => plan.kind === 'echo').map(({ key }) => key));
  const crossesLabel = crossingLabel(input);
  const crossing = (key: string): boolean => crossesLabel(key) || echoed.has(key);
  const labels = resolveMap(planned.labels, reversedLabels && pick(reversedLabels, crossing));
  const content = resolvePaths(paths, reversed && asJson(reversed));

  const record: LastSynced = {
    annotations: annotations.section,
    labels: labels.section,
    paths: content.section,
    revision: virtual.metadata.resourceVersion,
    isOwn: true,
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
  };
  const echo = echoOf(input, [...annotations.echoes, ...labels.echoes]);
  const wantedVirtual = virtualWanted(input, { annotations, labels, content }, echo);
  const metadata: ObjectMeta = {
    ...(host ? carryMetadata(host.metadata, desired.metadata) : desired.metadata),
    annotations: hostAnnotations(input, annotations, {
      before: planned.record,
      record,
      isFlowingBack: wantedVirtual !== undefined && hasIncoming(record),
    }),
    labels: { ...labels.host, ...pick(stringMapOf(desired.metadata.labels), isBookkeepingLabel) },
  };
  const wanted = withMembers({ ...desired, metadata }, content.host);
  const flowsOf = (member: MemberFlow['member'], { flows }: MapMerge): MemberFlow[] =>
    flows.map((flow) => ({ ...flow, member, id: idOfKey(member, flow.key) }));
  const flows = [...flowsOf('annotations', annotations), ...flowsOf('labels', labels)];
  return {
    host: wanted,
    virtual: wantedVirtual,
    isUncertain: planned.isUncertain,
    hasIncoming: wantedVirtual !== undefined || hasIncoming(planned.record),
    echo,
    flows,
    repaired: [
      ...annotations.repaired.map((key) => idOfKey('annotations', key)),
      ...labels.repaired.map((key) => idOfKey('labels', key)),
    ],
  };
}

interface Merges {
  readonly annotations: MapMerge;
  readonly labels: MapMerge;
  readonly content: PathMerge;
}

/** Undefined: the virtual object stays as it is. */
function virtualWanted(input: MergeInput, merges: Merges, echo: Echo | undefined): KubeObject | undefined {
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
  return isSame ? undefined : withMembers({ ...virtual, metadata }, merges.content.virtual);
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
