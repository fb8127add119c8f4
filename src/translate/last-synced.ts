/**
 * What both sides were when they last agreed: the base of the three-way merge, kept in one annotation on the host copy and written in
 * the same request as the data it describes. It holds hashes only, so it stays small and tells nobody anything.
 *
 * Format: `{"v":1,"a":…,"l":…,"p":…,"k":…}`; annotations, labels (host key space), paths, and the kinds that the copy names (`v1 Secret`,
 * joined by newline), so that what was imported of them is found again when no patch names them any more. Each section is a run of entries: a flag, 8 digits of
 * the key's hash, then 8 digits for each value that the flag announces. Sections without entries are left out.
 */

import { hash } from 'node:crypto';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../lib/json.ts';

/** One key (annotation, label, path) at the last sync. Hashes; undefined: it was not there. At least one side was. */
export interface SyncedEntry {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** Somebody on the host put it there, not this program. */
  readonly isFromHost: boolean;
}

/** By {@link shortHash} of the key. */
export type SyncedSection = ReadonlyMap<string, SyncedEntry>;

export interface LastSynced {
  readonly annotations: SyncedSection;
  readonly labels: SyncedSection;
  readonly paths: SyncedSection;
  /** Sorted. */
  readonly kinds?: readonly string[];
}

const VERSION = 1;
/** 48 bits, base64url. */
const HASH_CHARS = 8;
const DIGITS = /^[A-Za-z0-9_-]*$/;

/** Flags; upper case: from the host. */
const EQUAL = 'e';
const DIFFERENT = 'd';
const VIRTUAL_ONLY = 'v';
const HOST_ONLY = 'h';

export function shortHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, HASH_CHARS);
}

/** The same record gives the same text, whatever the order of its entries. */
export function encodeLastSynced(record: LastSynced): string {
  const text: JsonObject = { v: VERSION };
  const sections = { a: record.annotations, l: record.labels, p: record.paths };
  for (const [name, section] of Object.entries(sections)) {
    if (section.size > 0) text[name] = encodeSection(section);
  }
  if (record.kinds !== undefined && record.kinds.length > 0) text['k'] = record.kinds.join('\n');
  return JSON.stringify(text);
}

function encodeSection(section: SyncedSection): string {
  return [...section]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, entry]) => encodeEntry(key, entry))
    .join('');
}

function encodeEntry(key: string, { virtual, host, isFromHost }: SyncedEntry): string {
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

/** Total: whatever cannot be read is no record. */
export function decodeLastSynced(text: string | undefined): LastSynced | undefined {
  const parsed = parseJson(text);
  if (!isJsonObject(parsed) || ownValue(parsed, 'v') !== VERSION) return undefined;
  const annotations = decodeSection(ownValue(parsed, 'a'));
  const labels = decodeSection(ownValue(parsed, 'l'));
  const paths = decodeSection(ownValue(parsed, 'p'));
  if (!annotations || !labels || !paths) return undefined;
  const kinds = ownValue(parsed, 'k');
  const named = typeof kinds === 'string' ? kinds.split('\n') : [];
  return { annotations, labels, paths, ...(named.length > 0 ? { kinds: named } : {}) };
}

function parseJson(text: string | undefined): JsonValue {
  try {
    return text === undefined ? null : (JSON.parse(text) as JsonValue); // what JSON.parse answers
  } catch {
    return null;
  }
}

function decodeSection(text: JsonValue | undefined): SyncedSection | undefined {
  if (text === undefined) return new Map();
  if (typeof text !== 'string' || !DIGITS.test(text)) return undefined;
  const section = new Map<string, SyncedEntry>();
  for (let at = 0; at < text.length;) {
    const flag = text.charAt(at);
    const count = flag.toLowerCase() === DIFFERENT ? 2 : 1;
    const end = at + 1 + HASH_CHARS * (1 + count);
    if (!'edvhEDVH'.includes(flag) || end > text.length) return undefined;
    const key = text.slice(at + 1, at + 1 + HASH_CHARS);
    section.set(key, decodeEntry(flag, text.slice(at + 1 + HASH_CHARS, end)));
    at = end;
  }
  return section;
}

function decodeEntry(flag: string, values: string): SyncedEntry {
  const kind = flag.toLowerCase();
  const [first, second] = [values.slice(0, HASH_CHARS), values.slice(HASH_CHARS)];
  return {
    virtual: kind === HOST_ONLY ? undefined : first,
    host: kind === VIRTUAL_ONLY ? undefined : kind === DIFFERENT ? second : first,
    isFromHost: flag !== kind,
  };
}
