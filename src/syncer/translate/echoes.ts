/** What another syncer of the same objects has copied from the host copy back to the virtual object is an echo, not a change of the user:
 * translated again, a value would grow. It is taken out of the virtual object before the merge, which never learns of it. An echo has to be proven:
 *
 * | the virtual value is                                             | and then                                            |
 * |------------------------------------------------------------------|-----------------------------------------------------|
 * | what the patches make of itself, and no bookkeeping came back    | a user may have written it: no echo                 |
 * | what the rules in use wrote on the host, and not what it was     | an echo of the last sync                            |
 * | what an earlier record has for the host, if that record came     | a late echo: what counts is the last sync           |
 * | back too, this process knows it, and it is no value of the host  |                                                     |
 * | what this process has given back to the host moments ago, if the | a late echo, too: a correction may change no        |
 * | patches change it                                                | record, so its value comes back alone               |
 *
 * The virtual side gets back the value of the last sync, if that is known and it is time; else it keeps the echo for now. Either way, the merge
 * leaves the key alone: the value on the host and the entry of the record prove the echo until the virtual object is written, and a correction is
 * remembered for as long as the virtual object has it.
 *
 * What nothing proves any more is taken for the user's: an echo in a backup of the virtual cluster that is older than the last records of this
 * process, or than the process; and a correction that comes back after another record was written, and more than moments later or to another
 * process. */

import { ownValue, setOwn } from '../../base/json.ts';
import type { KubeObject, StringMap } from '../../kube/object.ts';
import { stringMapOf } from '../../kube/string-map.ts';
import { isBookkeepingAnnotation, LAST_SYNCED, OBJECT_HOST_NAME } from './bookkeeping.ts';
import { labelsToHost, virtualOnlyLabels } from './labels.ts';
import {
  arrivedEntry,
  decodeLastSynced,
  madeBy,
  recordOf,
  shortHash,
  type LastSynced,
  type SyncedEntry,
} from './last-synced.ts';
import { hashOf, isUncertain, type KeyBase, type KeyState } from './merge-key.ts';
import {
  holdOf,
  idOfKey,
  stateOf,
  stringAt,
  type HeldKey,
  type KeyId,
  type MetadataInput,
  type MetadataMember,
  type MetadataView,
  type ValueId,
  type Recorded,
} from './merge-metadata.ts';

/** Another syncer has copied the host copy's metadata back to the virtual object. */
export interface Echo {
  /** Keys of annotations and labels, bookkeeping included. */
  readonly keys: readonly string[];
  /** Those of them that the virtual object keeps for now. */
  readonly left: readonly string[];
}

export interface EchoedKey {
  readonly member: MetadataMember;
  readonly key: string;
  readonly state: KeyState;
  readonly agreed: SidedValues | undefined;
  /** The last sync. */
  readonly entry: SyncedEntry;
  /** It may be a value on its way from the host that another daemon is about to write. */
  readonly isUncertain: boolean;
  /** Nothing holds a key that flows to the host alone: no other client of the host changes it for good. */
  readonly isEnforced: boolean;
}

interface SidedValues {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
}

export interface WithoutEchoes {
  /** The virtual object with its own values, as far as they are known; the given one, if nothing is given back. */
  readonly virtual: KubeObject;
  /** For the merge, which leaves them alone. */
  readonly held: readonly HeldKey[];
  readonly echo: Echo | undefined;
}

export function echoedKeys(
  input: MetadataInput,
  recorded: Recorded,
  views: readonly MetadataView[],
): readonly EchoedKey[] {
  const isRecordEchoed = echoedBookkeeping(input).length > 0;
  // Without anything that came back, the record of the copy is the last one.
  const records = isRecordEchoed ? (input.memory?.records ?? []) : [];
  const known: Known = {
    isRecordEchoed,
    remembered: records.flatMap((record) => decodeLastSynced(record) ?? []),
    former: formerRecord(input),
  };
  return views.flatMap((view) => echoesInView(input, { recorded, view, known }));
}

interface Known {
  /** The virtual object has the record of its copy: another syncer copies the host's annotations back. */
  readonly isRecordEchoed: boolean;
  /** The last records that this process saw on the copy or wrote, the latest first; none, if they are not needed. */
  readonly remembered: readonly LastSynced[];
  /** A record that has come back to the virtual object, and that the copy had before a write of this process; undefined: none has. */
  readonly former: LastSynced | undefined;
}

interface ViewContext {
  readonly recorded: Recorded;
  readonly view: MetadataView;
  readonly known: Known;
}

function echoesInView(input: MetadataInput, context: ViewContext): readonly EchoedKey[] {
  const { view, known, recorded } = context;
  const { member, isOwn = false } = view.rules;
  const isMarked = known.isRecordEchoed || isOwn;
  const holdAt = (key: string) => (isOwn ? undefined : holdOf(input, member, key));
  // A value that the patches do not change cannot grow, and a user may well have written it.
  const isPossible = (key: string): boolean =>
    isMarked || stringAt(view.virtual, key) !== stringAt(view.forward, key);
  const keys = view.keys.filter((key) => isPossible(key) && holdAt(key) !== 'excluded');
  const agreedOn = keys.length === 0 ? undefined : agreedValues(input, view);
  return keys.flatMap((key) => {
    const [state, agreed, hash] = [stateOf(view, recorded, key), agreedOn?.(key), shortHash(key)];
    const entry = echoedEntry(state, {
      isMarked,
      agreed,
      rules: input.flows.rulesOf(['metadata', member, key]),
      remembered: known.remembered.flatMap((record) => record[member].get(hash) ?? []),
      former: known.former?.[member].get(hash),
      isCorrection: isCorrection(input, { member, key, state }),
    });
    if (entry === undefined) return [];
    const isFree = holdAt(key) === undefined;
    const isEnforced = isFree && state.flow === 'toHost';
    return [{ member, key, state, agreed, entry, isUncertain: isFree && isUncertain(state), isEnforced }];
  });
}

/** The values of both sides when they were in step last, as this process remembers them; undefined: it does not, or the host's value had not come
 * from the virtual side. */
function agreedValues(
  { memory }: MetadataInput,
  { rules: { mapOf, member, isOwn = false } }: MetadataView,
): ((key: string) => SidedValues | undefined) | undefined {
  if (memory?.agreed === undefined) return undefined;
  const { host: copy } = memory.agreed;
  const virtual = mapOf(memory.agreed.virtual, 'virtual');
  const host = mapOf(copy, 'host');
  let decoded: { readonly record: LastSynced | undefined } | undefined;
  // The merge leaves alone what only the host has, without an entry: a user of the virtual cluster may write the same value.
  const isLeft = (key: string): boolean => {
    decoded ??= { record: decodeLastSynced(recordOf(copy)) };
    return !isOwn && decoded.record?.[member].has(shortHash(key)) === false;
  };
  return (key) => {
    const values = { virtual: stringAt(virtual, key), host: stringAt(host, key) };
    const isOnHostOnly = values.virtual === undefined && values.host !== undefined;
    return isOnHostOnly && isLeft(key) ? undefined : values;
  };
}

interface Evidence {
  readonly isMarked: boolean;
  readonly agreed: SidedValues | undefined;
  readonly rules: string | undefined;
  readonly remembered: readonly SyncedEntry[];
  readonly former: SyncedEntry | undefined;
  readonly isCorrection: boolean;
}

/** What was in step before another syncer copied the host's value back; undefined: the virtual value is no such copy. */
function echoedEntry({ virtual, base }: KeyState, evidence: Evidence): SyncedEntry | undefined {
  const value = hashOf(virtual);
  const arrival = base.kind === 'recorded' ? base.arrival : 'unknown';
  const entries = lastEntries(base, evidence);
  const arrived = entries.map((entry) => arrivedEntry(entry, value, arrival));
  const echoed = arrived.find(
    ({ entry, isDue }) => !isDue && value === entry?.host && value !== entry?.virtual,
  );
  if (echoed !== undefined) return echoed.entry;
  const last = entries[0] ?? unrecorded(base, evidence);
  if (last === undefined || isOfVirtual(last, value) || !isLateEcho(evidence, value)) return undefined;
  const [first] = arrived;
  return first === undefined || first.isDue ? last : (first.entry ?? last);
}

/** The last sync of a key of which the record has no entry: what this process remembers, or neither side had it. */
function unrecorded(base: KeyBase, { agreed, rules }: Evidence): SyncedEntry | undefined {
  if (base.kind !== 'recorded' || base.entry !== undefined) return undefined;
  return entryOf(agreed ?? { virtual: undefined, host: undefined }, rules);
}

/** What another syncer has copied back is older than the last sync. */
function isLateEcho({ former, isCorrection }: Evidence, value: string | undefined): boolean {
  return isCorrection || (former !== undefined && value === former.host && !isOfVirtual(former, value));
}

/** The virtual side had it, or gets it from the host. */
function isOfVirtual({ virtual, incoming }: SyncedEntry, value: string | undefined): boolean {
  return value === virtual || (incoming !== undefined && value === incoming.virtual);
}

/** The last sync, from the record of the copy, or from the memory of this process where the copy has none, or an older one after a restore from a
 * backup. INVARIANT: never from the record that the virtual object has, because a tenant can write any; `former` is one that the copy had.
 * INVARIANT: only what the rules in use have made, or the value of an earlier rule could be kept on the host by writing it on the virtual side.
 * What this process remembers is made by them, because other rules make another engine. */
function lastEntries(
  base: KeyBase,
  { agreed, remembered, rules, isMarked }: Evidence,
): readonly SyncedEntry[] {
  const inStep = agreed === undefined ? [] : [entryOf(agreed, rules)];
  const held = base.kind === 'recorded' ? base.entry : undefined;
  const isMemoryNeeded = isMarked || base.kind !== 'recorded';
  const recorded = isMemoryNeeded ? [held, ...remembered] : [held];
  const made = recorded.filter((entry) => entry !== undefined).filter((entry) => isMadeBy(rules, entry));
  const isByOtherRules = held !== undefined && !made.includes(held);
  return isMemoryNeeded || isByOtherRules ? [...made, ...inStep] : made;
}

/** A value that is the same on both sides is made by no rule. */
function isMadeBy(rules: string | undefined, { virtual, host, incoming, rules: by }: SyncedEntry): boolean {
  return by === rules || (incoming === undefined && virtual === host);
}

function entryOf({ virtual, host }: SidedValues, rules: string | undefined): SyncedEntry {
  return madeBy(rules, { virtual: hashOf(virtual), host: hashOf(host), isFromHost: false });
}

/** A value that the patches leave as it is cannot grow. */
function isCorrection(
  { memory }: MetadataInput,
  { member, key, state: { virtual, forward } }: Pick<EchoedKey, 'member' | 'key' | 'state'>,
): boolean {
  if (memory?.corrected === undefined || virtual === undefined || virtual === forward) return false;
  return memory.corrected.has(idOfValue(idOfKey(member, key), virtual));
}

function idOfValue(id: KeyId, value: string): ValueId {
  return `${id} ${shortHash(value)}`;
}

/** The values that a write gives back to the host, with their keys: those of the last sync, by the record of the copy or by what this process
 * remembers. Another client, or a restore, has changed them there. */
export function correctedValues(
  host: KubeObject,
  written: KubeObject,
  agreed: KubeObject | undefined,
): ReadonlyMap<ValueId, string> {
  const corrected = new Map<ValueId, string>();
  let decoded: { readonly record: LastSynced | undefined } | undefined;
  const isRecorded = (member: MetadataMember, key: string, value: string): boolean => {
    decoded ??= { record: decodeLastSynced(recordOf(host)) };
    return decoded.record?.[member].get(shortHash(key))?.host === shortHash(value);
  };
  for (const member of ['annotations', 'labels'] as const) {
    const now = stringMapOf(host.metadata[member]);
    const inStep = stringMapOf(agreed?.metadata[member]);
    for (const [key, value] of Object.entries(stringMapOf(written.metadata[member]))) {
      if (value === ownValue(now, key) || isBookkeepingAnnotation(key)) continue;
      if (value === ownValue(inStep, key) || isRecorded(member, key, value))
        corrected.set(idOfValue(idOfKey(member, key), value), key);
    }
  }
  return corrected;
}

/** The record that the virtual object has, if the copy had exactly that before a write of this process. */
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

/** `reversed`: the host object translated back; undefined: nothing is read back from it. */
export function withoutEchoes(
  input: MetadataInput,
  echoes: readonly EchoedKey[],
  reversed: KubeObject | undefined,
): WithoutEchoes {
  const bookkeeping = echoedBookkeeping(input);
  const { virtual, labels } = input;
  if (echoes.length === 0 && bookkeeping.length === 0) return { virtual, held: [], echo: undefined };
  const restores = input.memory?.restoresEchoes === true;
  const back = reversed && {
    annotations: stringMapOf(reversed.metadata.annotations),
    labels: labelsToHost(stringMapOf(reversed.metadata.labels), labels),
  };
  const before = echoes.map((echo) =>
    restores ? valueBefore(echo, back && stringAt(back[echo.member], echo.key)) : undefined,
  );
  const left = echoes.filter((_, at) => before[at] === undefined).map(({ key }) => key);
  // The bookkeeping is removed last: another syncer carries its removal to the host, where it proves the other keys.
  const isMarkLeft = left.length > 0 || !restores;
  const held = echoes.map((echo, at) => heldKey(echo, before[at] ?? { value: echo.state.virtual }));
  return {
    virtual: withOwnValues(input, held, isMarkLeft ? [] : bookkeeping),
    held,
    echo: {
      keys: [...echoes.map(({ key }) => key), ...bookkeeping],
      left: isMarkLeft ? [...left, ...bookkeeping] : [],
    },
  };
}

/** The value that the virtual side had, proven by its hash; undefined: neither memory nor a reverse patch knows it. */
function valueBefore({ agreed, entry }: EchoedKey, reversed: string | undefined): Value | undefined {
  if (entry.virtual === undefined) return { value: undefined };
  const value = [agreed?.virtual, reversed].find((candidate) => hashOf(candidate) === entry.virtual);
  return value === undefined ? undefined : { value };
}

interface Value {
  readonly value: string | undefined;
}

function heldKey(echo: EchoedKey, { value }: Value): HeldKey {
  const { member, key, state, entry } = echo;
  const recorded = state.base.kind === 'recorded' ? state.base.entry : undefined;
  const kept = recorded ?? (isOnNeither(entry) ? undefined : entry);
  return { member, key, virtual: value, host: heldHostValue(echo, value), entry: kept };
}

function heldHostValue(
  { state, agreed, entry, isEnforced }: EchoedKey,
  virtual: string | undefined,
): string | undefined {
  const isWritten = (value: string | undefined): boolean => hashOf(value) === entry.host;
  // A copy that is created gets the value that the one before it had, and an echo is its text. Both sides may have been in step before that one.
  if (state.base.kind === 'fresh') return [state.virtual, agreed?.host].find(isWritten);
  // What only the host has stays.
  return isEnforced && !isOnNeither(entry) && isWritten(virtual) ? virtual : state.host;
}

function isOnNeither({ virtual, host }: SyncedEntry): boolean {
  return virtual === undefined && host === undefined;
}

/** The object itself, if it has them all. */
function withOwnValues(
  { virtual, labels }: MetadataInput,
  held: readonly HeldKey[],
  removed: readonly string[],
): KubeObject {
  const maps = {
    annotations: { ...stringMapOf(virtual.metadata.annotations) },
    labels: { ...stringMapOf(virtual.metadata.labels) },
  };
  const kept = virtualOnlyLabels(maps.labels, labels);
  const changed = new Set<MetadataMember>();
  const set = (member: MetadataMember, key: string, value: string | undefined): void => {
    if (ownValue(maps[member], key) === value) return;
    changed.add(member);
    if (value === undefined) delete maps[member][key];
    else setOwn(maps[member], key, value);
  };
  for (const key of removed) set('annotations', key, undefined);
  for (const { member, key, virtual: value } of held) {
    const own = member === 'labels' ? labels.keyToVirtual(key) : key;
    if (member === 'annotations' || !Object.hasOwn(kept, own)) set(member, own, value);
  }
  if (changed.size === 0) return virtual;
  const metadata: Partial<Record<MetadataMember, StringMap>> = Object.fromEntries(
    [...changed].map((member) => [member, maps[member]]),
  );
  return { ...virtual, metadata: { ...virtual.metadata, ...metadata } };
}
