/** The three-way merge of a pair: what is no change of the virtual object is taken out of it, every annotation, label and path is planned, then
 * the plans become the objects that both sides hold. */

import { asJson, type KubeObject, type ObjectMeta, type StringMap } from '../../kube/object.ts';
import { stringMapOf, pick } from '../../kube/string-map.ts';
import { jsonEquals, setOwn, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  isBookkeepingAnnotation,
  isUnservedMark,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  printManagedAnnotations,
  UNSERVED,
} from './bookkeeping.ts';
import { memberOf, NO_CONTENT, withMembers } from './content.ts';
import { echoedKeys, withoutEchoes, type Echo, type WithoutEchoes } from './echoes.ts';
import { carryMetadata } from './forge.ts';
import { isBookkeepingLabel, virtualOnlyLabels } from './labels.ts';
import {
  ANNOTATION_BYTES_MAX,
  type Arrival,
  decodeLastSynced,
  encodeLastSynced,
  ENTRIES_MAX,
  hasArrivedAs,
  hasIncoming,
  NO_ROOM,
  recordOf,
  withoutRevision,
  type LastSynced,
  type SyncedSection,
} from './last-synced.ts';
import {
  isTakenAt,
  planMetadata,
  resolveMetadata,
  settledPlans,
  type KeyFlow,
  type MetadataInput,
  type MetadataMerge,
  type MetadataView,
  type PlannedKey,
  type Recorded,
  viewsOf,
} from './merge-metadata.ts';
import { planPaths, resolvePaths, settledPaths, type PathMerge, type PlannedPaths } from './merge-paths.ts';
import type { ConcretePath, FlowRules, KeptPaths } from './types.ts';

export interface Pair extends Omit<MetadataInput, 'desired' | 'kept' | 'held'> {
  readonly arrival?: Arrival | undefined;
}

export interface PairTranslation<T extends Forwarded> {
  forward(virtual: KubeObject): Promise<T>;
  /** The host object after reverse patches and translation back (virtual label keys). Undefined: nothing flows back, and what would stays on the host. */
  reverse?(): Promise<Reversed>;
  /** Called between two steps of the merge, each of which takes long for a large object. */
  readonly pause?: (() => Promise<void>) | undefined;
}

export interface Forwarded {
  readonly desired: KubeObject;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
  /** Instead of those of the pair: filters have decided. */
  readonly flows?: FlowRules;
  readonly kept?: KeptPaths | undefined;
  /** See {@link UNSERVED}. */
  readonly isUnserved?: boolean;
}

export interface Reversed {
  readonly virtual: KubeObject;
  /** Names that cannot be translated back: an error where one would reach the virtual object. */
  readonly unresolved?: readonly { readonly path: ConcretePath; readonly error: Error }[];
  readonly kept?: KeptPaths | undefined;
}

export interface MergedPair<T extends Forwarded> {
  /** The whole host object wanted: `desired` over what the host's own metadata holds besides. */
  readonly host: KubeObject;
  /** The whole virtual object wanted; undefined: nothing flows back. */
  readonly virtual: KubeObject | undefined;
  /** Some value is on its way to the virtual side, according to the record of the host copy, as it is or as it is wanted. */
  readonly hasIncoming: boolean;
  /** A value was on its way, and the changed virtual object holds the old one: another daemon may be about to write it. Now, the virtual one wins. */
  readonly isUncertain: boolean;
  readonly echo: Echo | undefined;
  readonly flows: readonly KeyFlow[];
  /** What the wanted virtual object translates to. */
  readonly forwarded: T;
  /** The runs of the patches, that of `forwarded` or others, in which some failed: both sides keep the values of these. */
  readonly failed: readonly T[];
}

/** After what flows back, the patches run forward again: what the virtual object then translates to is written to the host at the same time, so
 * that nothing follows, also where a reverseExpression is not the exact inverse of its expression. Rejects with the errors of `translation`. */
export async function mergePair<T extends Forwarded>(
  pair: Pair,
  translation: PairTranslation<T>,
): Promise<MergedPair<T>> {
  const { pause } = translation;
  const failed: T[] = [];
  const forward = async (virtual: KubeObject): Promise<T> => {
    const run = await translation.forward(virtual);
    if (run.kept !== undefined) failed.push(run);
    return run;
  };
  const own = await ownValues(pair, { ...translation, forward });
  const { forwarded, echo } = own;
  if (pause !== undefined) await pause();
  const { virtual: source, held } = own;
  const input = { ...pair, ...forwarded, virtual: source, held, actual: pair.virtual };
  const wanted = planPair(input, own.recorded, own.views);
  const isUncertain = own.isUncertain || wanted.isUncertain;
  const reversed = own.reversed ?? (wanted.needsReverse ? await translation.reverse?.() : undefined);
  const left = translation.reverse === undefined ? EVERYTHING : reversed?.kept;
  let planned = left === undefined ? wanted : withoutKept(wanted, left);
  for (;;) {
    if (pause !== undefined) await pause();
    const merged = { ...resolvePair(planned, reversed?.virtual), echo, isUncertain };
    const { virtual } = merged;
    const isNothingTaken = virtual === undefined || virtual === source;
    if (isNothingTaken || pair.host === undefined) return { ...merged, forwarded, failed };
    const unknown = reversed?.unresolved?.find(({ path }) => !isKnownAt(path, virtual, input));
    if (unknown !== undefined) throw unknown.error;
    if (pause !== undefined) await pause();
    const second = alsoKeeping(await forward(virtual), forwarded.kept);
    if (second.kept === undefined || !takesAt(planned, second.kept)) {
      if (pause !== undefined) await pause();
      const settled = settledPair(planned, second);
      if (pause !== undefined) await pause();
      return {
        ...resolvePair(settled, reversed?.virtual),
        echo,
        isUncertain,
        forwarded: second,
        failed,
      };
    }
    // What cannot be translated to the host again stays there, as what cannot be translated back does.
    planned = withoutKept(planned, second.kept);
  }
}

interface OwnValues<T> extends WithoutEchoes {
  readonly forwarded: T;
  readonly reversed: Reversed | undefined;
  readonly isUncertain: boolean;
  readonly recorded: Recorded;
  /** Absent: those of another virtual object. */
  readonly views?: readonly MetadataView[];
}

/** The virtual object without echoes, and what it translates to. */
async function ownValues<T extends Forwarded>(
  pair: Pair,
  translation: PairTranslation<T>,
): Promise<OwnValues<T>> {
  const first = await translation.forward(pair.virtual);
  if (translation.pause !== undefined) await translation.pause();
  const input = { ...pair, ...first };
  const recorded = recordedIn(input);
  const views = viewsOf(input);
  const echoes = echoedKeys(input, recorded, views);
  const isRestoring = echoes.length > 0 && pair.memory?.restoresEchoes === true;
  const reversed = isRestoring ? await translation.reverse?.() : undefined;
  const own = withoutEchoes(input, echoes, reversed?.virtual);
  const forwarded =
    own.virtual === pair.virtual ? first : alsoKeeping(await translation.forward(own.virtual), first.kept);
  const isUncertain = echoes.some((echo) => echo.isUncertain);
  return { ...own, forwarded, reversed, isUncertain, recorded, ...(forwarded === first && { views }) };
}

/** What failed in an earlier run, perhaps because the sandbox was gone for a moment, is kept although this run made it: the plans were made without
 * it, so an echo or a change of the host there would be taken for one of the user. */
function alsoKeeping<T extends Forwarded>(run: T, earlier: KeptPaths | undefined): T {
  const { kept } = run;
  if (earlier === undefined) return run;
  if (kept === undefined) return { ...run, kept: earlier };
  return {
    ...run,
    kept: {
      covers: (path) => earlier.covers(path) || kept.covers(path),
      locate: (object) => [...earlier.locate(object), ...kept.locate(object)],
    },
  };
}

const EVERYTHING: KeptPaths = { covers: () => true, locate: () => [] };

/** A change of the host that flows back is at one of these paths. */
function takesAt({ keys, paths }: PlannedPair, kept: KeptPaths): boolean {
  return (
    keys.some((one) => isTakenAt(one, kept)) ||
    paths.paths.some((one) => one.isTaken && !one.isKept && kept.covers(one.path))
  );
}

/** The virtual object has the value at this path, or had it before another syncer copied the host's back: it does not come from the host. */
function isKnownAt(path: ConcretePath, wanted: KubeObject, { virtual, memory }: Pair): boolean {
  const valueIn = (object: KubeObject): JsonValue => valueAt(asJson(object), path) ?? null;
  const known = [virtual, memory?.agreed?.virtual].filter((object) => object !== undefined);
  return known.some((object) => jsonEquals(valueIn(object), valueIn(wanted)));
}

type MergeInput = Pair &
  Forwarded &
  Pick<MetadataInput, 'held'> & {
    /** The virtual object as it is; `virtual` has its own values instead of echoes. */
    readonly actual: KubeObject;
  };

interface PlannedPair {
  readonly input: MergeInput;
  readonly recorded: Recorded;
  readonly isUncertain: boolean;
  readonly needsReverse: boolean;
  readonly keys: readonly PlannedKey[];
  readonly paths: PlannedPaths;
}

function planPair(input: MergeInput, recorded: Recorded, views?: readonly MetadataView[]): PlannedPair {
  const keys = planMetadata(input, recorded, views);
  const paths = planContent(input, recorded);
  const needsReverse = paths.needsReverse || keys.some(({ plan }) => plan.kind === 'take');
  const isUncertain = paths.isUncertain || keys.some((planned) => planned.isUncertain);
  return { input, recorded, keys, paths, needsReverse, isUncertain };
}

function recordedIn(input: Pair): Recorded {
  const record = input.host && decodeLastSynced(recordOf(input.host));
  return { record, arrival: arrivalOf(input, record) };
}

/** A patch that is guarded by the version in the record is due exactly while the virtual object has that version. */
function arrivalOf({ virtual, arrival }: Pair, record: LastSynced | undefined): Arrival {
  if (arrival !== undefined && arrival !== 'unknown') return arrival;
  const { resourceVersion } = virtual.metadata;
  return resourceVersion !== undefined && resourceVersion === record?.revision ? 'due' : 'unknown';
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

function pathsOnBoth(
  { desired, host }: MergeInput,
  pathsOf: (object: JsonObject) => readonly ConcretePath[],
): readonly ConcretePath[] {
  const wanted = pathsOf(asJson(desired));
  return host === undefined ? wanted : [...wanted, ...pathsOf(asJson(host))];
}

/** What cannot be translated back stays where it is, and so does its record: a later try starts from the same state. */
function withoutKept(planned: PlannedPair, kept: KeptPaths): PlannedPair {
  const hold = (one: PlannedKey): PlannedKey =>
    isTakenAt(one, kept) ? { ...one, plan: { kind: 'hold' } } : one;
  const { keys, paths } = planned;
  return {
    ...planned,
    keys: keys.map(hold),
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
  const settled = planPair(input, before.recorded);
  return {
    ...before,
    input,
    keys: settledPlans(settled.keys, before.keys),
    paths: settledPaths(settled.paths, before.paths),
  };
}

/** `reversed` is required where `needsReverse`. */
function resolvePair(
  planned: PlannedPair,
  reversed: KubeObject | undefined,
): Pick<MergedPair<Forwarded>, 'host' | 'virtual' | 'hasIncoming' | 'flows'> {
  const { input } = planned;
  const { virtual, host, desired } = input;
  const merge = resolveMetadata(input, planned.keys, reversed);
  const content = resolvePaths(planned.paths, reversed && asJson(reversed));
  const record: LastSynced = {
    annotations: merge.annotations.section,
    labels: merge.labels.section,
    paths: content.section,
    revision: virtual.metadata.resourceVersion,
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
  };
  const wantedVirtual = virtualWanted(input, merge, content);
  const isVirtualChanged = wantedVirtual !== input.actual;
  const metadata: ObjectMeta = {
    ...(host ? carryMetadata(host.metadata, desired.metadata) : desired.metadata),
    annotations: hostAnnotations(input, merge, {
      before: planned.recorded.record,
      record,
      isFlowingBack: isVirtualChanged && hasIncoming(record),
    }),
    labels: { ...merge.labels.host, ...pick(stringMapOf(desired.metadata.labels), isBookkeepingLabel) },
  };
  return {
    host: withMembers({ ...desired, metadata }, content.host),
    virtual: isVirtualChanged ? wantedVirtual : undefined,
    hasIncoming: isVirtualChanged || hasIncoming(planned.recorded.record),
    flows: merge.flows,
  };
}

/** The virtual object of the input itself, if nothing flows back. */
function virtualWanted(input: MergeInput, merge: MetadataMerge, content: PathMerge): KubeObject {
  const { virtual, labels, content: { members, crossingOf } = NO_CONTENT } = input;
  const actual = {
    annotations: stringMapOf(virtual.metadata.annotations),
    labels: stringMapOf(virtual.metadata.labels),
  };
  const own = pick(
    actual.annotations,
    (key, value) =>
      isBookkeepingAnnotation(key) ||
      isUnservedMark(key, value) ||
      crossingOf?.('annotations', key) === 'never',
  );
  const wanted = {
    annotations: { ...own, ...merge.annotations.virtual },
    labels: {
      ...virtualOnlyLabels(actual.labels, labels),
      ...pick(actual.labels, (key) => crossingOf?.('labels', key) === 'never'),
    },
  };
  for (const [key, value] of Object.entries(merge.labels.virtual)) {
    const virtualKey = labels.keyToVirtual(key);
    if (!Object.hasOwn(wanted.labels, virtualKey)) setOwn(wanted.labels, virtualKey, value);
  }
  const changed = (['annotations', 'labels'] as const).filter(
    (member) => !jsonEquals(actual[member], wanted[member]),
  );
  const isSame =
    changed.length === 0 &&
    members.every((name) => jsonEquals(memberOf(virtual, name), content.virtual[name]));
  if (isSame) return virtual;
  const metadata = {
    ...virtual.metadata,
    ...Object.fromEntries(changed.map((member) => [member, wanted[member]])),
  };
  return withMembers({ ...virtual, metadata }, content.virtual);
}

interface RecordChange {
  readonly before: LastSynced | undefined;
  readonly record: LastSynced;
  readonly isFlowingBack: boolean;
}

/** The annotations of the host copy, record included. Bookkeeping always comes from the translation. */
function hostAnnotations(
  input: MergeInput,
  { annotations: merged, managed }: MetadataMerge,
  { before, record, isFlowingBack }: RecordChange,
): StringMap {
  const actual = stringMapOf(input.host?.metadata.annotations);
  const desired = stringMapOf(input.desired.metadata.annotations);
  const annotations: StringMap = {
    ...(input.isUnserved === true ? UNSERVED : {}),
    ...merged.host,
    ...pick(desired, isBookkeepingAnnotation),
  };
  delete annotations[LAST_SYNCED];
  delete annotations[MANAGED_ANNOTATIONS];
  const { text, list } = fittingBookkeeping(record, printManagedAnnotations(managed), annotations);
  if (list !== undefined) annotations[MANAGED_ANNOTATIONS] = list;
  const held = actual[LAST_SYNCED];
  const isSame = held !== undefined && before !== undefined && isSameRecord(record, before, [text, held]);
  annotations[LAST_SYNCED] = isSame && !isFlowingBack ? held : text;
  return annotations;
}

/** True if only the version of the virtual object differs, that of the rules, or what has arrived there, which does not justify a write; nor does
 * what a later program has added. */
function isSameRecord(
  now: LastSynced,
  before: LastSynced,
  [text, textBefore]: readonly [string, string],
): boolean {
  if (withoutRevision(text) === withoutRevision(textBefore)) return true;
  const record = {
    ...now,
    revision: before.revision,
    annotations: withRulesOf(before.annotations, beforeArrivals(now.annotations, before.annotations)),
    labels: withRulesOf(before.labels, beforeArrivals(now.labels, before.labels)),
    paths: beforeArrivals(now.paths, before.paths),
  };
  return sizeOf(record) === sizeOf(before) && encodeLastSynced(record) === encodeLastSynced(before);
}

/** The annotations are synced in any case: the list of their keys is left out first, as the record proves more, then its paths, then all that it
 * says. INVARIANT: it is there on each copy, however large the virtual object is: guards take a host object without it for that of others. */
function fittingBookkeeping(
  record: LastSynced,
  list: string | undefined,
  annotations: StringMap,
): { readonly text: string; readonly list?: string | undefined } {
  const bytesLeft = ANNOTATION_BYTES_MAX - bytesOf(annotations);
  const listBytes = list === undefined ? 0 : bytesOf({ [MANAGED_ANNOTATIONS]: list });
  const text = textWithin(record, bytesLeft);
  if (text !== undefined)
    return bytesOf({ [LAST_SYNCED]: text }) + listBytes <= bytesLeft ? { text, list } : { text };
  return { text: textWithin({ ...record, paths: new Map() }, bytesLeft) ?? NO_ROOM };
}

/** Undefined: it needs more bytes. */
function textWithin(record: LastSynced, bytesMax: number): string | undefined {
  if (sizeOf(record) > ENTRIES_MAX) return undefined;
  const text = encodeLastSynced(record);
  return bytesOf({ [LAST_SYNCED]: text }) <= bytesMax ? text : undefined;
}

function sizeOf({ annotations, labels, paths }: LastSynced): number {
  return annotations.size + labels.size + paths.size;
}

function withRulesOf(before: SyncedSection, now: SyncedSection): SyncedSection {
  const changed = [...now].flatMap(([key, entry]) => {
    const rules = before.get(key)?.rules;
    return rules === entry.rules ? [] : [[key, { ...entry, rules }] as const];
  });
  return changed.length === 0 ? now : new Map([...now, ...changed]);
}

/** The entries of `now`, or of `before` where its incoming value has arrived since. */
function beforeArrivals(now: SyncedSection, before: SyncedSection): SyncedSection {
  const arrived = [...before].filter(([key, entry]) => hasArrivedAs(entry, now.get(key)));
  return arrived.length === 0 ? now : new Map([...now, ...arrived]);
}

/** As an API server counts them. */
function bytesOf(annotations: StringMap): number {
  let bytes = 0;
  for (const key in annotations) bytes += Buffer.byteLength(key) + Buffer.byteLength(annotations[key] ?? '');
  return bytes;
}
