/** The merge of annotations and labels, key by key, in the host's key space, as the table of `merge-key.ts` decides. */

import { ownValue, setOwn } from '../../base/json.ts';
import type { KubeObject, StringMap } from '../../kube/object.ts';
import { stringMapOf, pick } from '../../kube/string-map.ts';
import {
  isBookkeepingAnnotation,
  isUnservedMark,
  MANAGED_ANNOTATIONS,
  parseManagedAnnotations,
} from './bookkeeping.ts';
import { NO_CONTENT } from './content.ts';
import { isBookkeepingLabel, labelsToHost } from './labels.ts';
import {
  madeBy,
  NO_ROOM,
  recordOf,
  shortHash,
  type Arrival,
  type LastSynced,
  type SyncedEntry,
  type SyncedSection,
} from './last-synced.ts';
import {
  followingSide,
  HOLD,
  isUncertain,
  planKey,
  resolveKey,
  type KeyBase,
  type KeyPlan,
  type KeyState,
} from './merge-key.ts';
import type { ContentRules, Crossing, Flow, FlowRules, KeptPaths, LabelTranslator } from './types.ts';

export type MetadataMember = 'annotations' | 'labels';

export interface MetadataInput {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is created, or rewritten so that nothing of the old one stays. */
  readonly host: KubeObject | undefined;
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  readonly content?: ContentRules;
  readonly memory?: MergeMemory | undefined;
  readonly kept?: KeptPaths | undefined;
  /** What is left alone, with the values of both sides and the entry that stay, instead of those of the objects. */
  readonly held?: readonly HeldKey[];
}

export interface HeldKey {
  readonly member: MetadataMember;
  readonly key: string;
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** Undefined: neither side has it. */
  readonly entry: SyncedEntry | undefined;
}

/** What this process remembers of a pair; without it, the record alone decides. */
export interface MergeMemory {
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** That the copy had when both were in step last, and since then; the latest first. */
  readonly records?: readonly string[];
  /** Hashes of those that the copy had before the last writes of this process, which may have kept them. */
  readonly formerRecords?: readonly string[];
  /** Values that this process has given back to the host moments ago, or that the virtual object has had as echoes since. */
  readonly corrected?: ReadonlySet<ValueId>;
  /** Values that another syncer has copied back are replaced now; otherwise, they stay. */
  readonly restoresEchoes: boolean;
  /** Keys that both sides keep rewriting: they are left alone for now. */
  readonly held?: ReadonlySet<KeyId>;
}

export interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

export interface PlannedKey {
  readonly id: KeyId;
  readonly member: MetadataMember;
  readonly key: string;
  /** See {@link FlowRules.rulesOf}. */
  readonly rules: string | undefined;
  readonly state: KeyState;
  readonly plan: KeyPlan;
  readonly isUncertain: boolean;
}

export interface MetadataMerge {
  readonly annotations: MapMerge;
  readonly labels: MapMerge;
  readonly managed: readonly string[];
  readonly flows: readonly KeyFlow[];
}

interface MapMerge {
  readonly virtual: StringMap;
  readonly host: StringMap;
  readonly section: SyncedSection;
}

/** A change of one side that goes to the other one. */
export interface KeyFlow {
  readonly id: KeyId;
  readonly to: 'host' | 'virtual';
}

/** `annotations KEY` or `labels KEY`, in the host's key space. */
export type KeyId = string;

/** A {@link KeyId} and the hash of a value. */
export type ValueId = string;

export function idOfKey(member: MetadataMember, key: string): KeyId {
  return `${member} ${key}`;
}

export function planMetadata(
  input: MetadataInput,
  recorded: Recorded,
  views: readonly MetadataView[] = viewsOf(input),
): readonly PlannedKey[] {
  const { held = [] } = input;
  const planned = views.flatMap((view) => planView(input, recorded, view));
  if (held.length === 0) return planned;
  const left = held.map((one) => plannedHold(one, recorded));
  const ids = new Set(left.map(({ id }) => id));
  return [...left, ...planned.filter(({ id }) => !ids.has(id))];
}

function plannedHold({ member, key, virtual, host, entry }: HeldKey, { arrival }: Recorded): PlannedKey {
  const base = { kind: 'recorded', entry, arrival } as const;
  const state = { virtual, host, forward: host, flow: 'none', base } as const;
  return { id: idOfKey(member, key), member, key, rules: undefined, state, plan: HOLD, isUncertain: false };
}

/** Some keys of both sides, and of what the virtual object translates to, as the host has them. */
export interface MetadataView {
  readonly rules: MapRules;
  readonly keys: readonly string[];
  readonly virtual: StringMap;
  readonly host: StringMap | undefined;
  readonly forward: StringMap;
}

export function viewsOf(input: MetadataInput): readonly MetadataView[] {
  return [annotationRules(input), labelRules(input), ownLabelRules(input)].map((rules) => {
    const virtual = rules.mapOf(input.virtual, 'virtual');
    const host = input.host && rules.mapOf(input.host, 'host');
    const forward = rules.mapOf(input.desired, 'host');
    const keys = Object.keys({ ...virtual, ...host, ...forward });
    return { rules, keys, virtual, host, forward };
  });
}

function annotationRules({ host, flows, content = NO_CONTENT }: MetadataInput): MapRules {
  const crossingOf = (key: string): Crossing | undefined => content.crossingOf?.('annotations', key);
  const neverCrosses = (key: string): boolean => crossingOf(key) === 'never';
  const flowOf = (key: string): Flow =>
    crossingOf(key) === undefined ? flows.flowOf(['metadata', 'annotations', key]) : 'toHost';
  const listed = host && ownValue(stringMapOf(host.metadata.annotations), MANAGED_ANNOTATIONS);
  const managed = parseManagedAnnotations(listed as string | undefined); // a map of strings
  // The annotations of the virtual object left no space for the list and the record; that must not protect a value from the patches.
  const isUnknown = managed === undefined && host !== undefined && recordOf(host) === NO_ROOM;
  return {
    member: 'annotations',
    mapOf: (object, side) =>
      pick(
        stringMapOf(object.metadata.annotations),
        (key, value) =>
          !isBookkeepingAnnotation(key) &&
          !isUnservedMark(key, value) &&
          (side === 'host' || !neverCrosses(key)),
      ),
    neverCrosses,
    flowOf,
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: managed !== undefined && !managed.has(key),
      hostOnly: managed?.has(key)
        ? 'remove'
        : flowOf(key) === 'both'
          ? 'take'
          : isUnknown
            ? 'remove'
            : 'keep',
    }),
  };
}

function labelRules(input: MetadataInput): MapRules {
  const { labels, flows, content = NO_CONTENT } = input;
  const isOurs = isOurLabel(input);
  const crossingOf = (key: string): Crossing | undefined => content.crossingOf?.('labels', key);
  const neverCrosses = (key: string): boolean => crossingOf(key) === 'never';
  // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
  const staysOnHost = (key: string): boolean => labels.isReserved(key) || crossingOf(key) !== undefined;
  return {
    member: 'labels',
    mapOf(object, side) {
      const map = stringMapOf(object.metadata.labels);
      if (side === 'host') return pick(map, (key) => !isOurs(key));
      return pick(labelsToHost(map, labels), (key) => !isOurs(key) && !neverCrosses(key));
    },
    neverCrosses,
    flowOf: (key) => (staysOnHost(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: staysOnHost(key) ? 'keep' : 'remove',
    }),
  };
}

/** Only the virtual side decides about the labels that come from the translation alone. Another syncer may copy them back. */
function ownLabelRules({ virtual, content = NO_CONTENT }: MetadataInput): MapRules {
  const labels = stringMapOf(virtual.metadata.labels);
  const isOwn = (key: string): boolean => content.isOwnLabel(key) && Object.hasOwn(labels, key);
  return {
    member: 'labels',
    mapOf: (object) => pick(stringMapOf(object.metadata.labels), isOwn),
    flowOf: () => 'toHost',
    lostBase: () => ({ kind: 'lost', isFromHost: false, hostOnly: 'remove' }),
    isOwn: true,
  };
}

export function holdOf(
  { labels, memory, kept }: MetadataInput,
  member: MetadataMember,
  key: string,
): 'excluded' | 'held' | undefined {
  const virtualKey = member === 'labels' ? labels.keyToVirtual(key) : key;
  if (labels.isExcluded(member, virtualKey)) return 'excluded';
  const isHeld = kept?.covers(['metadata', member, key]) === true || memory?.held?.has(idOfKey(member, key));
  return isHeld === true ? 'held' : undefined;
}

function isOurLabel({ content = NO_CONTENT }: MetadataInput): (key: string) => boolean {
  return (key) => isBookkeepingLabel(key) || content.isOwnLabel(key);
}

export interface MapRules {
  readonly member: MetadataMember;
  /** Of an object of this side: keys as the host has them, without those that never cross. */
  readonly mapOf: (object: KubeObject, side: 'virtual' | 'host') => StringMap;
  readonly flowOf: (key: string) => Flow;
  readonly lostBase: (key: string) => KeyBase & { readonly kind: 'lost' };
  readonly neverCrosses?: (key: string) => boolean;
  /** The labels that come from the translation alone: it is the same for what it has translated, which no user writes. They are never held. */
  readonly isOwn?: boolean;
}

function planView(input: MetadataInput, recorded: Recorded, view: MetadataView): readonly PlannedKey[] {
  const { member, isOwn = false } = view.rules;
  return view.keys.map((key) => {
    const state = stateOf(view, recorded, key);
    const isHeld = !isOwn && holdOf(input, member, key) !== undefined;
    const plan = isHeld ? HOLD : planKey(state);
    const rules = input.flows.rulesOf(['metadata', member, key]);
    const id = idOfKey(member, key);
    return { id, member, key, rules, state, plan, isUncertain: !isHeld && isUncertain(state) };
  });
}

export function stateOf(
  { rules, virtual, host, forward }: MetadataView,
  recorded: Recorded,
  key: string,
): KeyState {
  return {
    virtual: stringAt(virtual, key),
    host: host && stringAt(host, key),
    forward: stringAt(forward, key),
    flow: rules.flowOf(key),
    base: host === undefined ? { kind: 'fresh' } : baseOf(recorded, rules, key),
  };
}

function baseOf(
  { record, arrival }: Recorded,
  { member, lostBase, neverCrosses }: MapRules,
  key: string,
): KeyBase {
  if (record === undefined) return lostBase(key);
  const recorded = record[member].get(shortHash(key));
  // An earlier version took the host's own value over to the virtual side, which does not make it this program's.
  const isHosts = recorded?.isFromHost === true && neverCrosses?.(key) === true;
  const entry = isHosts ? { virtual: undefined, host: recorded.host, isFromHost: true } : recorded;
  return { kind: 'recorded', entry, arrival };
}

export function isTakenAt({ member, key, plan }: PlannedKey, kept: KeptPaths): boolean {
  return plan.kind === 'take' && kept.covers(['metadata', member, key]);
}

export function settledPlans(
  settled: readonly PlannedKey[],
  before: readonly PlannedKey[],
): readonly PlannedKey[] {
  const [plans, others] = [before, settled].map((all) => new Map(all.map((one) => [one.id, one])));
  return [...new Set([...settled, ...before].map(({ id }) => id))].flatMap((id) => {
    const [was, now] = [plans?.get(id), others?.get(id)];
    // A key that no plan knew may be one that only a reverse patch brings to the virtual side.
    const kind = was?.plan.kind ?? 'take';
    const one = kind === 'push' || kind === 'leave' ? now : (was ?? now);
    if (one === undefined) return [];
    if (kind !== 'take') return [one];
    const state = { ...one.state, forward: now?.state.forward };
    return [{ ...one, state, plan: { kind, isSettled: true } }];
  });
}

/** `reversed`: undefined where no plan takes anything. Keys that only a reverse patch made join the virtual side. */
export function resolveMetadata(
  input: MetadataInput,
  planned: readonly PlannedKey[],
  reversed: KubeObject | undefined,
): MetadataMerge {
  const back = reversed && reversedMaps(input, reversed);
  const merged = { annotations: emptyMap(), labels: emptyMap() };
  const managed: string[] = [];
  const flows: KeyFlow[] = [];
  for (const { id, member, key, rules, state, plan } of planned) {
    const { virtual, host, section } = merged[member];
    const result = resolveKey(state, plan, back && stringAt(back[member], key));
    const to = followingSide(state, plan, result);
    if (to !== undefined) flows.push({ id, to });
    if (result.virtual !== undefined) setOwn(virtual, key, result.virtual);
    if (result.host !== undefined) setOwn(host, key, result.host);
    if (result.entry === undefined) continue;
    section.set(shortHash(key), plan.kind === 'hold' ? result.entry : madeBy(rules, result.entry));
    // A key that only the host has and that is held is one whose removal waits.
    const isCopied = result.host !== undefined && (result.virtual !== undefined || plan.kind === 'hold');
    if (member === 'annotations' && isCopied && !result.entry.isFromHost) managed.push(key);
  }
  const seen = back && new Set(planned.map(({ id }) => id));
  for (const member of ['annotations', 'labels'] as const) {
    for (const [key, value] of Object.entries(back?.[member] ?? {}))
      if (seen?.has(idOfKey(member, key)) === false) setOwn(merged[member].virtual, key, value);
  }
  return { ...merged, managed, flows };
}

function emptyMap(): { virtual: StringMap; host: StringMap; section: Map<string, SyncedEntry> } {
  return { virtual: {}, host: {}, section: new Map() };
}

/** What may reach the virtual side. */
function reversedMaps(
  input: MetadataInput,
  { metadata }: KubeObject,
): Readonly<Record<MetadataMember, StringMap>> {
  const isOurs = isOurLabel(input);
  const isSynced = (member: MetadataMember, key: string): boolean => holdOf(input, member, key) === undefined;
  return {
    annotations: pick(
      stringMapOf(metadata.annotations),
      (key) => !isBookkeepingAnnotation(key) && isSynced('annotations', key),
    ),
    labels: pick(
      labelsToHost(stringMapOf(metadata.labels), input.labels),
      (key) => !isOurs(key) && !input.labels.isReserved(key) && isSynced('labels', key),
    ),
  };
}

export function stringAt(map: StringMap, key: string): string | undefined {
  return ownValue(map, key) as string | undefined; // a map of strings
}
