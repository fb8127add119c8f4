/** The state of both sides when they last agreed: the base of the three-way merge, stored in one annotation on the host copy and written in
 * the same request as the data it describes. It contains only hashes, so it is small and reveals no values.
 *
 * Format: `{"v":1,"r":…,"a":…,"l":…,"p":…,"av":…,"lv":…,"k":…}`; the resourceVersion of the virtual object, annotations, labels (host
 * key space), paths, the versions of the rules that made annotations and labels, and the kinds that the copy names (`v1 Secret`, joined by newline),
 * so that imports of them are found when no patch names them any more. Each section is a run of entries: a flag, 8 digits of the key's hash, then 8
 * digits for each value that the flag announces. Versions are runs of a key's hash and 8 digits of the version. Sections without entries are left out.
 *
 * A later program may add members, as long as a record is right without them: they are ignored, and cause no write. Otherwise it raises `v`, and
 * its record counts as none here. {@link NO_ROOM} is such a record.
 *
 * What comes from the host is recorded before it is written to the virtual cluster: such an entry (flag `i`) holds the base, the host's
 * value and the incoming value. When the virtual object holds the incoming value, that is the base from then on, without another write. */

import { hash } from 'node:crypto';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from './bookkeeping.ts';
import { MANAGED_BY_LABEL } from './labels.ts';

/** One key (annotation, label, path) at the last sync. Hashes; undefined: it was not there. At least one side was. */
export interface SyncedEntry {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** Another client put it on the host, not this program. */
  readonly isFromHost: boolean;
  /** A value of the host on its way to the virtual side, which held `virtual` before. */
  readonly incoming?: IncomingValue;
  /** The version of the patches that made the host's value of the virtual one; undefined: none did, or it is not recorded. */
  readonly rules?: string | undefined;
}

export interface IncomingValue {
  /** Undefined: the key is removed. */
  readonly virtual: string | undefined;
  /** Values that were overtaken on their way: the virtual side may have received one of them after all. */
  readonly earlier: readonly (string | undefined)[];
}

/** By {@link shortHash} of the key. */
export type SyncedSection = ReadonlyMap<string, SyncedEntry>;

export interface LastSynced {
  readonly annotations: SyncedSection;
  readonly labels: SyncedSection;
  readonly paths: SyncedSection;
  readonly kinds?: readonly string[];
  /** The version of the virtual object that the record was made from, or an older one. A cache that is behind it is stale. */
  readonly revision?: string | undefined;
}

/** The version of rules that depend on what no record holds. */
export const UNPROVABLE = '';

const VERSION = 1;
/** Instead of a record that does not fit beside the other annotations: it proves that this program wrote the copy, and nothing else. */
export const NO_ROOM = '{"v":0}';
/** 48 bits, base64url. */
const HASH_CHARS = 8;
const DIGITS = /^[A-Za-z0-9_-]*$/;

/** All annotations of one object together may hold this many bytes, keys and values. */
export const ANNOTATION_BYTES_MAX = 256 * 1024;
/** A record of more entries does not fit: each has a flag, the hash of its key and that of a value. */
export const ENTRIES_MAX = Math.floor(ANNOTATION_BYTES_MAX / (1 + 2 * HASH_CHARS));

/** Flags; upper case: from the host. */
const EQUAL = 'e';
const DIFFERENT = 'd';
const VIRTUAL_ONLY = 'v';
const HOST_ONLY = 'h';
/** One digit for the number of earlier values, then base, host, incoming and the earlier values. */
const INCOMING = 'i';
const ABSENT = '-'.repeat(HASH_CHARS);
const EARLIER_MAX = 2;
const FLAGS = 'edvhiEDVHI';

export function shortHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, HASH_CHARS);
}

/** Canonical: the text does not depend on the order of the entries. */
export function encodeLastSynced(record: LastSynced): string {
  const text: JsonObject = { v: VERSION };
  if (record.revision !== undefined) text['r'] = record.revision;
  const sections = { a: record.annotations, l: record.labels, p: record.paths };
  for (const [name, section] of Object.entries(sections)) {
    if (section.size > 0) text[name] = encodeSection(section);
  }
  const versions = { av: encodeRules(record.annotations), lv: encodeRules(record.labels) };
  for (const [name, rules] of Object.entries(versions)) if (rules !== '') text[name] = rules;
  if (record.kinds !== undefined && record.kinds.length > 0) text['k'] = record.kinds.join('\n');
  return JSON.stringify(text);
}

function encodeSection(section: SyncedSection): string {
  return [...section]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, entry]) => encodeEntry(key, entry))
    .join('');
}

function encodeRules(section: SyncedSection): string {
  return [...section]
    .flatMap(([key, { rules }]) => (rules === undefined ? [] : [`${key}${rules}`]))
    .toSorted()
    .join('');
}

function encodeEntry(key: string, entry: SyncedEntry): string {
  const { virtual, host, isFromHost, incoming } = entry;
  if (incoming !== undefined) {
    const earlier = incoming.earlier.slice(-EARLIER_MAX);
    const values = [virtual, host, incoming.virtual, ...earlier].map((value) => value ?? ABSENT);
    const flag = isFromHost ? INCOMING.toUpperCase() : INCOMING;
    return `${flag}${key}${earlier.length}${values.join('')}`;
  }
  const flag =
    virtual === undefined
      ? HOST_ONLY
      : host === undefined
        ? VIRTUAL_ONLY
        : virtual === host
          ? EQUAL
          : DIFFERENT;
  const values = flag === EQUAL ? (virtual ?? '') : `${virtual ?? ''}${host ?? ''}`;
  return `${isFromHost ? flag.toUpperCase() : flag}${key}${values}`;
}

/** Never throws: an unreadable text counts as no record. */
export function decodeLastSynced(text: string | undefined): LastSynced | undefined {
  const parsed = jsonOrNull(text);
  if (!isJsonObject(parsed) || ownValue(parsed, 'v') !== VERSION) return undefined;
  const annotations = decodeSection(ownValue(parsed, 'a'), ownValue(parsed, 'av'));
  const labels = decodeSection(ownValue(parsed, 'l'), ownValue(parsed, 'lv'));
  const paths = decodeSection(ownValue(parsed, 'p'));
  if (!annotations || !labels || !paths) return undefined;
  const [kinds, revision] = [ownValue(parsed, 'k'), ownValue(parsed, 'r')];
  const named = typeof kinds === 'string' ? kinds.split('\n') : [];
  return {
    annotations,
    labels,
    paths,
    ...(named.length > 0 ? { kinds: named } : {}),
    ...(typeof revision === 'string' ? { revision } : {}),
  };
}

const COPIED_RECORD = new RegExp(`(^|\n)${LAST_SYNCED}(\n|$)`);

/** The record of a host copy, as text. One that another syncer has copied from the virtual object is none: a tenant can write any there. */
export function recordOf({ metadata: { annotations } }: KubeObject): string | undefined {
  const record = annotations?.[LAST_SYNCED];
  return record !== undefined && COPIED_RECORD.test(annotations?.[MANAGED_ANNOTATIONS] ?? '')
    ? undefined
    : record;
}

export function hasIncoming(record: LastSynced | undefined): boolean {
  if (record === undefined) return false;
  const sections = [record.annotations, record.labels, record.paths];
  return sections.some((section) => [...section.values()].some(({ incoming }) => incoming !== undefined));
}

const REVISION = /^\{"v":1,"r":"([^"\\]*)"/;

/** The revision alone, without reading the rest of the record. */
export function recordedRevision(text: string | undefined): string | undefined {
  return REVISION.exec(text ?? '')?.[1];
}

export function withRevision(text: string, revision: string | undefined): string {
  if (revision === undefined) return text;
  return text.replace(REVISION, () => `{"v":${VERSION},"r":${JSON.stringify(revision)}`);
}

export function withoutRevision(text: string): string {
  return text.replace(REVISION, `{"v":${VERSION}`);
}

function jsonOrNull(text: string | undefined): JsonValue {
  try {
    return text === undefined ? null : (JSON.parse(text) as JsonValue); // what JSON.parse returns
  } catch {
    return null;
  }
}

/** What is no list of versions is ignored. */
function decodeRules(text: JsonValue | undefined): ReadonlyMap<string, string> {
  if (typeof text !== 'string' || !DIGITS.test(text)) return new Map();
  return new Map(
    (text.match(/.{16}/g) ?? []).map((one) => [one.slice(0, HASH_CHARS), one.slice(HASH_CHARS)]),
  );
}

function decodeSection(text: JsonValue | undefined, versions?: JsonValue): SyncedSection | undefined {
  if (text === undefined) return new Map();
  if (typeof text !== 'string' || !DIGITS.test(text)) return undefined;
  const section = new Map<string, SyncedEntry>();
  const rules = decodeRules(versions);
  for (let at = 0; at < text.length;) {
    const flag = text.charAt(at);
    const keyEnd = at + 1 + HASH_CHARS;
    const isIncoming = flag.toLowerCase() === INCOMING;
    const from = isIncoming ? keyEnd + 1 : keyEnd;
    const count = isIncoming ? 3 + Number(text.charAt(keyEnd)) : flag.toLowerCase() === DIFFERENT ? 2 : 1;
    const end = from + HASH_CHARS * count;
    if (!FLAGS.includes(flag) || !(count <= 3 + EARLIER_MAX) || end > text.length) return undefined;
    const key = text.slice(at + 1, keyEnd);
    const version = rules.get(key);
    const entry = decodeEntry(flag, text.slice(from, end));
    section.set(key, version === undefined ? entry : { ...entry, rules: version });
    at = end;
  }
  return section;
}

function decodeEntry(flag: string, text: string): SyncedEntry {
  const kind = flag.toLowerCase();
  const isFromHost = flag !== kind;
  const first = text.slice(0, HASH_CHARS);
  if (kind === EQUAL) return { virtual: first, host: first, isFromHost };
  if (kind === VIRTUAL_ONLY) return { virtual: first, host: undefined, isFromHost };
  if (kind === HOST_ONLY) return { virtual: undefined, host: first, isFromHost };
  if (kind === DIFFERENT) return { virtual: first, host: text.slice(HASH_CHARS), isFromHost };
  const values = (text.match(/.{8}/g) ?? []).map((value) => (value === ABSENT ? undefined : value));
  const [virtual, host, incoming, ...earlier] = values;
  return { virtual, host, isFromHost, incoming: { virtual: incoming, earlier } };
}

/* Two writes carry a change of the host over: the record (base b, incoming i) with the host copy, then the virtual object. A daemon that reads the
 * record in between, after a crash or as a second replica, sees from the virtual value how far the change came: i, in step; b, the patch is
 * due; another value, the virtual side changed too and wins.
 *
 * After the patch, the virtual side may be changed back to b, which the process that wrote the patch knows. To any other process, two histories look
 * the same: (1) recorded, never patched, another key of the virtual object changed; (2) recorded, patched, changed back to b. INVARIANT: it is taken
 * for (2). The record stays as it is until another one is written, so (2) is every change back while no daemon runs, however old the edit of the
 * host is; (1) needs a process that ended between its two writes. */

/** What is known of the incoming values where the virtual side holds the base. `due`: the virtual object is the version that the record was made
 * from, or its write was rejected. `arrived`: this process saw it arrive. `unknown`: neither. */
export type Arrival = 'due' | 'arrived' | 'unknown';

export interface ArrivedEntry {
  /** The base of the merge, without an incoming value. */
  readonly entry: SyncedEntry | undefined;
  /** The incoming value still has to be written to the virtual side. */
  readonly isDue: boolean;
  readonly isUncertain: boolean;
}

export function arrivedEntry(
  entry: SyncedEntry | undefined,
  virtual: string | undefined,
  arrival: Arrival,
): ArrivedEntry {
  if (entry?.incoming === undefined) return { entry, isDue: false, isUncertain: false };
  const { host, isFromHost, incoming, rules } = entry;
  const isBase = virtual === entry.virtual && virtual !== incoming.virtual;
  // Until the incoming value has arrived, an overtaken one can only have come from the host: the patch with it may still have been applied.
  const isOvertaken =
    arrival !== 'arrived' && !isBase && virtual !== incoming.virtual && incoming.earlier.includes(virtual);
  const isDue = isOvertaken || (isBase && arrival === 'due');
  return {
    entry: { virtual: isDue ? virtual : incoming.virtual, host, isFromHost, rules },
    isDue,
    isUncertain: isBase && arrival === 'unknown',
  };
}

/** Both sides should hold what `wanted` says. Where the virtual side still holds another value (`before`), it is recorded as incoming. */
export function entryWith(
  wanted: SyncedEntry,
  before: string | undefined,
  recorded: SyncedEntry | undefined,
): SyncedEntry | undefined {
  if (wanted.virtual !== before) {
    const incoming = { virtual: wanted.virtual, earlier: overtaken(wanted.virtual, before, recorded) };
    return { ...wanted, virtual: before, incoming };
  }
  return wanted.virtual === undefined && wanted.host === undefined ? undefined : wanted;
}

/** The entry, with the version of the rules that made the host's value of the virtual one. A value that is the same on both sides is made by none. */
export function madeBy(rules: string | undefined, entry: SyncedEntry): SyncedEntry {
  const { host, incoming } = entry;
  const virtual = incoming === undefined ? entry.virtual : incoming.virtual;
  return rules === undefined || rules === UNPROVABLE || virtual === host ? entry : { ...entry, rules };
}

/** The entry differs from that of `now` only because its incoming value has arrived, which alone does not justify a write. */
export function hasArrivedAs(
  { host, isFromHost, incoming }: SyncedEntry,
  now: SyncedEntry | undefined,
): boolean {
  if (incoming === undefined || now?.incoming !== undefined) return false;
  const isRemovedOnBothSides = incoming.virtual === undefined && host === undefined;
  if (now === undefined) return isRemovedOnBothSides;
  return host === now.host && isFromHost === now.isFromHost && incoming.virtual === now.virtual;
}

/** The values that the virtual side may still receive or have received, besides `wanted` and `before`. */
function overtaken(
  wanted: string | undefined,
  before: string | undefined,
  recorded: SyncedEntry | undefined,
): readonly (string | undefined)[] {
  if (recorded?.incoming === undefined) return [];
  const { virtual, incoming } = recorded;
  const isPending = before === virtual || incoming.earlier.includes(before);
  const candidates = isPending ? [...incoming.earlier, virtual, incoming.virtual] : [];
  return [...new Set(candidates)].filter((value) => value !== wanted && value !== before).slice(-2);
}

/** `v1 Secret`, `example.com/v1 Gadget`. */
export type KindId = string;

export function kindIdOf({ apiVersion, kind }: { apiVersion: string; kind: string }): KindId {
  return `${apiVersion} ${kind}`;
}

/** Of which objects are referenced; none for a copy of another virtual cluster. */
export function recordedKinds(copy: KubeObject, vcluster: string): readonly KindId[] {
  if ((copy.metadata.labels?.[MANAGED_BY_LABEL] ?? vcluster) !== vcluster) return [];
  const { kinds = [] } = decodeLastSynced(recordOf(copy)) ?? {};
  return kinds.filter((id) => /^\S+ \S+$/.test(id));
}

export function kindsToRecord(
  references: readonly { apiVersion: string; kind: string }[],
): readonly KindId[] {
  return [...new Set(references.map(kindIdOf))].toSorted();
}
