/** The merge of annotations and labels, key by key, in the host's key space, as the table of `merge-key.ts` decides. What another syncer of the
 * same objects has copied from the host copy back to the virtual object is an echo, which has to be proven. */

import { ownValue, setOwn } from '../../base/json.ts';
import type { KubeObject, StringMap } from '../../kube/object.ts';
import { stringMapOf, pick } from '../../kube/string-map.ts';
import {
  isBookkeepingAnnotation,
  isUnservedMark,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  OBJECT_HOST_NAME,
  parseManagedAnnotations,
} from './bookkeeping.ts';
import { NO_CONTENT } from './content.ts';
import { isBookkeepingLabel, labelsToHost } from './labels.ts';
import {
  decodeLastSynced,
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
  planHeldKey,
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
}

/** What this process remembers of a pair; without it, the record alone decides. */
export interface MergeMemory {
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  readonly record?: string | undefined;
  /** Hashes of the records before it, which this process has replaced on the copy. */
  readonly formerRecords?: readonly string[];
  /** Values that another syncer has copied back are replaced now; otherwise, they stay. */
  readonly restoresEchoes: boolean;
  /** Keys that both sides keep rewriting: they are left alone for now. */
  readonly held?: ReadonlySet<KeyId>;
}

/** Another syncer has copied the host copy's metadata back to the virtual object. */
export interface Echo {
  /** Keys of annotations and labels, bookkeeping included. */
  readonly keys: readonly string[];
  /** Those of them that the virtual object keeps for now. */
  readonly left: readonly string[];
}

export interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

export interface PlannedKey {
  readonly id: KeyId;
  readonly member: MetadataMember;
  readonly key: string;
  readonly state: KeyState;
  readonly plan: KeyPlan;
  readonly isUncertain: boolean;
}

export interface MetadataMerge {
  readonly annotations: MapMerge;
  readonly labels: MapMerge;
  readonly managed: readonly string[];
  readonly echo: Echo | undefined;
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

export function idOfKey(member: MetadataMember, key: string): KeyId {
  return `${member} ${key}`;
}

export function planMetadata(input: MetadataInput, recorded: Recorded): readonly PlannedKey[] {
  const known = knownRecords(input, recorded);
  const rules = [annotationRules(input), labelRules(input), ownLabelRules(input)];
  return rules.flatMap((one) => planMap(input, known, one));
}

function knownRecords(input: MetadataInput, recorded: Recorded) {
  const isRecordEchoed = echoedBookkeeping(input).length > 0;
  // Without anything that came back, the record of the copy is the last one.
  const remembered = isRecordEchoed ? decodeLastSynced(input.memory?.record) : undefined;
  return { ...recorded, isRecordEchoed, remembered, former: formerRecord(input) };
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

function holdOf(
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

interface MapRules {
  readonly member: MetadataMember;
  /** Of an object of this side: keys as the host has them, without those that never cross. */
  readonly mapOf: (object: KubeObject, side: 'virtual' | 'host') => StringMap;
  readonly flowOf: (key: string) => Flow;
  readonly lostBase: (key: string) => KeyBase & { readonly kind: 'lost' };
  readonly neverCrosses?: (key: string) => boolean;
  /** The labels that come from the translation alone: it is the same for what it has translated, which no user writes. They are never held. */
  readonly isOwn?: boolean;
}

function planMap(
  input: MetadataInput,
  known: ReturnType<typeof knownRecords>,
  rules: MapRules,
): readonly PlannedKey[] {
  const { member, mapOf, isOwn = false } = rules;
  const { memory } = input;
  const agreed = memory?.agreed;
  const agreedVirtual = agreed && mapOf(agreed.virtual, 'virtual');
  const agreedHost = agreed && mapOf(agreed.host, 'host');
  const virtual = mapOf(input.virtual, 'virtual');
  const host = input.host && mapOf(input.host, 'host');
  const forward = mapOf(input.desired, 'host');
  const keys = new Set([virtual, host ?? {}, forward].flatMap((map) => Object.keys(map)));
  return [...keys].map((key) => {
    const state: KeyState = {
      virtual: stringAt(virtual, key),
      host: host && stringAt(host, key),
      forward: stringAt(forward, key),
      flow: rules.flowOf(key),
      rules: input.flows.rulesOf(['metadata', member, key]),
      base: host === undefined ? { kind: 'fresh' } : baseOf(known, rules, key),
      agreed: agreedVirtual &&
        agreedHost && { virtual: stringAt(agreedVirtual, key), host: stringAt(agreedHost, key) },
      remembered: known.remembered?.[member].get(shortHash(key)),
      former: known.former?.[member].get(shortHash(key)),
      isRecordEchoed: known.isRecordEchoed || isOwn,
      restoresEcho: memory?.restoresEchoes === true,
    };
    const hold = isOwn ? undefined : holdOf(input, member, key);
    // What another syncer copied back is told from a key that is `held` all the same.
    const plan = hold === undefined ? planKey(state) : hold === 'held' ? planHeldKey(state) : HOLD;
    const id = idOfKey(member, key);
    return { id, member, key, state, plan, isUncertain: hold === undefined && isUncertain(state) };
  });
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

/** The record that the virtual object has, if this process wrote exactly that on the copy before the present one. */
function formerRecord({ virtual, memory }: MetadataInput): LastSynced | undefined {
  const record = recordOf(virtual);
  if (record === undefined || memory?.formerRecords?.includes(shortHash(record)) !== true) return undefined;
  return decodeLastSynced(record);
}

/** Annotations of the virtual object that are the bookkeeping of its own copy. Those of a virtual cluster inside this one name other objects. */
function echoedBookkeeping({ virtual, desired }: MetadataInput): readonly string[] {
  const annotations = stringMapOf(virtual.metadata.annotations);
  const found = Object.keys(annotations).filter(isBookkeepingAnnotation);
  if (found.length === 0) return [];
  const hostName = ownValue(annotations, OBJECT_HOST_NAME);
  const isOfCopy = hostName === undefined ? found.includes(LAST_SYNCED) : hostName === desired.metadata.name;
  return isOfCopy ? found : [];
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
  const back = reversed && reversedMaps(input, planned, reversed);
  const merged = { annotations: emptyMap(), labels: emptyMap() };
  const managed: string[] = [];
  const echoes: { key: string; isLeft: boolean }[] = [];
  const flows: KeyFlow[] = [];
  for (const { id, member, key, state, plan } of planned) {
    const { virtual, host, section } = merged[member];
    const result = resolveKey(state, plan, back && stringAt(back[member], key));
    if (plan.kind === 'echo') echoes.push({ key, isLeft: result.virtual === state.virtual });
    const to = followingSide(state, plan, result);
    if (to !== undefined) flows.push({ id, to });
    if (result.virtual !== undefined) setOwn(virtual, key, result.virtual);
    if (result.host !== undefined) setOwn(host, key, result.host);
    if (result.entry === undefined) continue;
    section.set(shortHash(key), result.entry);
    const isOnBoth = result.virtual !== undefined && result.host !== undefined;
    if (member === 'annotations' && isOnBoth && !result.entry.isFromHost) managed.push(key);
  }
  const seen = back && new Set(planned.map(({ id }) => id));
  for (const member of ['annotations', 'labels'] as const) {
    for (const [key, value] of Object.entries(back?.[member] ?? {}))
      if (seen?.has(idOfKey(member, key)) === false) setOwn(merged[member].virtual, key, value);
  }
  return { ...merged, managed, echo: echoOf(input, echoes), flows };
}

/** The bookkeeping is removed last: another syncer carries its removal to the host, where it proves the other keys. */
function echoOf(
  input: MetadataInput,
  echoes: readonly { readonly key: string; readonly isLeft: boolean }[],
): Echo | undefined {
  const bookkeeping = echoedBookkeeping(input);
  if (bookkeeping.length === 0 && echoes.length === 0) return undefined;
  const left = echoes.filter(({ isLeft }) => isLeft).map(({ key }) => key);
  const isKept = left.length > 0 || input.memory?.restoresEchoes !== true;
  return {
    keys: [...echoes.map(({ key }) => key), ...bookkeeping],
    left: isKept ? [...left, ...bookkeeping] : [],
  };
}

function emptyMap(): { virtual: StringMap; host: StringMap; section: Map<string, SyncedEntry> } {
  return { virtual: {}, host: {}, section: new Map() };
}

/** What may reach the virtual side. A label that comes from the translation alone only does where another syncer has copied its translation back. */
function reversedMaps(
  input: MetadataInput,
  planned: readonly PlannedKey[],
  { metadata }: KubeObject,
): Readonly<Record<MetadataMember, StringMap>> {
  const isOurs = isOurLabel(input);
  const echoed = new Set(planned.filter(({ plan }) => plan.kind === 'echo').map(({ id }) => id));
  const isSynced = (member: MetadataMember, key: string): boolean => holdOf(input, member, key) === undefined;
  return {
    annotations: pick(
      stringMapOf(metadata.annotations),
      (key) => !isBookkeepingAnnotation(key) && isSynced('annotations', key),
    ),
    labels: pick(
      labelsToHost(stringMapOf(metadata.labels), input.labels),
      (key) =>
        echoed.has(idOfKey('labels', key)) ||
        (!isOurs(key) && !input.labels.isReserved(key) && isSynced('labels', key)),
    ),
  };
}

function stringAt(map: StringMap, key: string): string | undefined {
  return ownValue(map, key) as string | undefined; // a map of strings
}
