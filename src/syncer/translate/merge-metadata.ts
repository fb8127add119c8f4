/** The three-way merge of the annotations and labels of a pair, key by key, in the host's key space: what is known of each key is gathered, the
 * table of `merge-key.ts` decides, and the decisions become both maps. What another syncer of the same objects has copied from the host copy back
 * to the virtual object is an echo, which has to be proven. */

import { ownValue, setOwn } from '../../base/json.ts';
import type { KubeObject, StringMap } from '../../kube/object.ts';
import {
  isBookkeepingAnnotation,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  OBJECT_HOST_NAME,
  parseManagedAnnotations,
} from './bookkeeping.ts';
import { NO_CONTENT } from './content.ts';
import { isBookkeepingLabel, labelsToHost, pick, stringMapOf } from './labels.ts';
import {
  decodeLastSynced,
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
  isUntranslated,
  planHeldKey,
  planKey,
  resolveKey,
  type KeyBase,
  type KeyPlan,
  type KeyState,
} from './merge-key.ts';
import type { ContentRules, Flow, FlowRules, KeptPaths, LabelTranslator } from './types.ts';

export type MetadataMember = 'annotations' | 'labels';

export interface MetadataInput {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is created, or rewritten so that nothing of the old one stays. */
  readonly host: KubeObject | undefined;
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  /** Default: nothing but metadata crosses both ways. */
  readonly content?: ContentRules;
  readonly memory?: MergeMemory | undefined;
  /** Where patches have failed: the host keeps what it has, and nothing flows back. */
  readonly kept?: KeptPaths | undefined;
}

/** What this process remembers of a pair; without it, the record alone decides. */
export interface MergeMemory {
  /** Both objects when they were in step last. */
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** The last record of the copy that this process saw or wrote. */
  readonly record?: string | undefined;
  /** Hashes of the records before it, which this process has replaced on the copy. */
  readonly formerRecords?: readonly string[];
  /** Values that another syncer has copied back are replaced now; otherwise, they stay. */
  readonly restoresEchoes: boolean;
  /** Keys that both sides keep rewriting, as {@link idOfKey}: they are left alone for now. */
  readonly held?: ReadonlySet<string>;
}

/** Another syncer has copied the host copy's metadata back to the virtual object. */
export interface Echo {
  /** Keys of annotations and labels, bookkeeping included. */
  readonly keys: readonly string[];
  /** Those of them that the virtual object keeps for now. */
  readonly left: readonly string[];
}

/** The record of the host copy, and what is known of the values that it lists as on their way. */
export interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

export interface PlannedKey {
  readonly member: MetadataMember;
  readonly key: string;
  readonly state: KeyState;
  readonly plan: KeyPlan;
  readonly isUncertain: boolean;
}

export interface MapMerge {
  readonly virtual: StringMap;
  readonly host: StringMap;
  /** By hash of the key. */
  readonly section: SyncedSection;
  /** Keys of the virtual object that are on the host by our doing. */
  readonly managed: readonly string[];
  /** Keys of which the virtual side holds, or held, what another syncer has copied back; `isLeft`: it stays there. */
  readonly echoes: readonly { readonly key: string; readonly isLeft: boolean }[];
  readonly flows: readonly KeyFlow[];
  /** Of keys of which the copy held what an earlier version had not translated, as {@link idOfKey}. */
  readonly repaired: readonly string[];
}

/** A change of one side that goes to the other one. `id`: see {@link idOfKey}. */
export interface KeyFlow {
  readonly id: string;
  readonly to: 'host' | 'virtual';
}

/** `annotations KEY` or `labels KEY`, in the host's key space. */
export function idOfKey(member: MetadataMember, key: string): string {
  return `${member} ${key}`;
}

export function planAnnotations(input: MetadataInput, recorded: Recorded): readonly PlannedKey[] {
  const crosses = (key: string): boolean => !isBookkeepingAnnotation(key);
  const flowOf = (key: string): Flow => input.flows.flowOf(['metadata', 'annotations', key]);
  const listed = input.host && ownValue(stringMapOf(input.host.metadata.annotations), MANAGED_ANNOTATIONS);
  const managed = parseManagedAnnotations(listed as string | undefined); // a map of strings
  return planMap(input, recorded, {
    member: 'annotations',
    mapOf: (object) => pick(stringMapOf(object.metadata.annotations), crosses),
    flowOf,
    holdOf: (key) => holdOf(input, 'annotations', key),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: managed !== undefined && !managed.has(key),
      hostOnly: managed?.has(key) ? 'remove' : flowOf(key) === 'both' ? 'take' : 'keep',
    }),
  });
}

export function planLabels(input: MetadataInput, recorded: Recorded): readonly PlannedKey[] {
  return [...planCrossingLabels(input, recorded), ...planOwnLabels(input, recorded)];
}

function planCrossingLabels(input: MetadataInput, recorded: Recorded): readonly PlannedKey[] {
  const { labels, flows } = input;
  const isOurs = isOurLabel(input);
  return planMap(input, recorded, {
    member: 'labels',
    mapOf(object, side) {
      const map = stringMapOf(object.metadata.labels);
      return pick(side === 'virtual' ? labelsToHost(map, labels) : map, (key) => !isOurs(key));
    },
    holdOf: (key) => holdOf(input, 'labels', key),
    // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
}

/** Only the virtual side decides about the labels that come from the translation alone. Another syncer may copy them back. */
function planOwnLabels(input: MetadataInput, recorded: Recorded): readonly PlannedKey[] {
  const { content = NO_CONTENT } = input;
  const virtual = stringMapOf(input.virtual.metadata.labels);
  const isOwn = (key: string): boolean => content.isOwnLabel(key) && Object.hasOwn(virtual, key);
  return planMap(input, recorded, {
    member: 'labels',
    mapOf: (object) => pick(stringMapOf(object.metadata.labels), isOwn),
    flowOf: () => 'toHost',
    holdOf: () => undefined,
    // The translation is the same for what it has translated, and no user writes that.
    isAlwaysEchoed: true,
    lostBase: () => ({ kind: 'lost', isFromHost: false, hostOnly: 'remove' }),
  });
}

/** Why a key is not synced: by configuration, or for now. */
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

/** A label of the host copy that comes from the translation alone. */
function isOurLabel({ content = NO_CONTENT }: MetadataInput): (key: string) => boolean {
  return (key) => isBookkeepingLabel(key) || content.isOwnLabel(key);
}

/** How one map of the metadata crosses. */
interface MapRules {
  readonly member: MetadataMember;
  /** Of an object of this side: keys as the host has them, without those that never cross. */
  readonly mapOf: (object: KubeObject, side: 'virtual' | 'host') => StringMap;
  readonly flowOf: (key: string) => Flow;
  /** What another syncer copied back is told from a key that is `held` all the same. */
  readonly holdOf: (key: string) => 'excluded' | 'held' | undefined;
  /** What is known of a key where the record is lost. */
  readonly lostBase: (key: string) => KeyBase & { readonly kind: 'lost' };
  readonly isAlwaysEchoed?: boolean;
}

function planMap(input: MetadataInput, recorded: Recorded, rules: MapRules): readonly PlannedKey[] {
  const { member, mapOf } = rules;
  const { memory } = input;
  const agreed = memory?.agreed;
  const agreedVirtual = agreed && mapOf(agreed.virtual, 'virtual');
  const agreedHost = agreed && mapOf(agreed.host, 'host');
  const isRecordEchoed = echoedBookkeeping(input).length > 0;
  // Without anything that came back, the record of the copy is the last one.
  const remembered = isRecordEchoed ? decodeLastSynced(memory?.record)?.[member] : undefined;
  const former = formerRecord(input)?.[member];
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
      base: host === undefined ? { kind: 'fresh' } : baseOf(recorded, rules, key),
      agreed: agreedVirtual &&
        agreedHost && { virtual: stringAt(agreedVirtual, key), host: stringAt(agreedHost, key) },
      remembered: remembered?.get(shortHash(key)),
      former: former?.get(shortHash(key)),
      isRecordEchoed: isRecordEchoed || rules.isAlwaysEchoed === true,
      restoresEcho: memory?.restoresEchoes === true,
    };
    const hold = rules.holdOf(key);
    if (hold === undefined)
      return { member, key, state, plan: planKey(state), isUncertain: isUncertain(state) };
    return { member, key, state, plan: hold === 'held' ? planHeldKey(state) : HOLD, isUncertain: false };
  });
}

function baseOf({ record, arrival }: Recorded, { member, lostBase }: MapRules, key: string): KeyBase {
  if (record === undefined) return lostBase(key);
  const entry = record[member].get(shortHash(key));
  return { kind: 'recorded', entry, isOwn: record.isOwn === true, arrival };
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

/** The bookkeeping is removed last: another syncer carries its removal to the host, where it proves the other keys. */
export function echoOf(input: MetadataInput, echoes: MapMerge['echoes']): Echo | undefined {
  const bookkeeping = echoedBookkeeping(input);
  if (bookkeeping.length === 0 && echoes.length === 0) return undefined;
  const left = echoes.filter(({ isLeft }) => isLeft).map(({ key }) => key);
  const isKept = left.length > 0 || input.memory?.restoresEchoes !== true;
  return {
    keys: [...echoes.map(({ key }) => key), ...bookkeeping],
    left: isKept ? [...left, ...bookkeeping] : [],
  };
}

/** A change of the host that flows back, at a place where a patch has failed. */
export function isTakenAt({ member, key, plan }: PlannedKey, kept: KeptPaths): boolean {
  return plan.kind === 'take' && kept.covers(['metadata', member, key]);
}

/** The plans of `before` for what flows back; everything else as `settled` says, where what flows back has arrived. */
export function settledPlans(
  settled: readonly PlannedKey[],
  before: readonly PlannedKey[],
): readonly PlannedKey[] {
  const plans = new Map(before.map((one) => [one.key, one]));
  const forwards = new Map(settled.map(({ key, state }) => [key, state.forward]));
  const take = (one: PlannedKey): PlannedKey => {
    const state = { ...one.state, forward: forwards.get(one.key) };
    return { ...one, state, plan: { kind: 'take', isSettled: true } };
  };
  const isTaken = ({ plan }: PlannedKey): boolean => plan.kind === 'take';
  const isKept = ({ plan }: PlannedKey): boolean => plan.kind === 'echo' || plan.kind === 'hold';
  // A key that no plan knew may be one that only a reverse patch brings to the virtual side.
  const others = settled.filter(
    ({ key }) => !['take', 'echo', 'hold'].includes(plans.get(key)?.plan.kind ?? ''),
  );
  return [
    ...others.map((one) => (plans.has(one.key) ? one : take(one))),
    ...before.filter(isTaken).map(take),
    ...before.filter(isKept),
  ];
}

/** `reversed`: the host copy translated and patched back; undefined where no plan takes anything. */
export function resolveAnnotations(
  input: MetadataInput,
  planned: readonly PlannedKey[],
  reversed: KubeObject | undefined,
): MapMerge {
  const crosses = (key: string): boolean =>
    !isBookkeepingAnnotation(key) && holdOf(input, 'annotations', key) === undefined;
  return resolveMap(planned, reversed && pick(stringMapOf(reversed.metadata.annotations), crosses));
}

export function resolveLabels(
  input: MetadataInput,
  planned: readonly PlannedKey[],
  reversed: KubeObject | undefined,
): MapMerge {
  const isOurs = isOurLabel(input);
  // A label that comes from the translation alone flows back only where another syncer has copied its translation back.
  const echoed = new Set(planned.filter(({ plan }) => plan.kind === 'echo').map(({ key }) => key));
  const crosses = (key: string): boolean =>
    echoed.has(key) ||
    (!isOurs(key) && !input.labels.isReserved(key) && holdOf(input, 'labels', key) === undefined);
  const labels = reversed && labelsToHost(stringMapOf(reversed.metadata.labels), input.labels);
  return resolveMap(planned, labels && pick(labels, crosses));
}

/** Keys that only a reverse patch made join the virtual side. */
function resolveMap(planned: readonly PlannedKey[], reversed: StringMap | undefined): MapMerge {
  const [virtual, host]: StringMap[] = [{}, {}] as const;
  const section = new Map<string, SyncedEntry>();
  const managed: string[] = [];
  const echoes: { key: string; isLeft: boolean }[] = [];
  const flows: KeyFlow[] = [];
  const repaired: string[] = [];
  const seen = new Set<string>();
  for (const { member, key, state, plan } of planned) {
    seen.add(key);
    const result = resolveKey(state, plan, reversed && stringAt(reversed, key));
    if (plan.kind === 'echo') echoes.push({ key, isLeft: result.virtual === state.virtual });
    if (plan.kind === 'push' && isUntranslated(state)) repaired.push(idOfKey(member, key));
    const to = followingSide(state, plan, result);
    if (to !== undefined) flows.push({ id: idOfKey(member, key), to });
    if (result.virtual !== undefined) setOwn(virtual, key, result.virtual);
    if (result.host !== undefined) setOwn(host, key, result.host);
    if (result.entry === undefined) continue;
    section.set(shortHash(key), result.entry);
    if (result.virtual !== undefined && result.host !== undefined && !result.entry.isFromHost)
      managed.push(key);
  }
  for (const key of Object.keys(reversed ?? {})) {
    const value = reversed && stringAt(reversed, key);
    if (!seen.has(key) && value !== undefined) setOwn(virtual, key, value);
  }
  return { virtual, host, section, managed, echoes, flows, repaired };
}

function stringAt(map: StringMap, key: string): string | undefined {
  return ownValue(map, key) as string | undefined; // a map of strings
}
