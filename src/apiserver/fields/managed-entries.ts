/** The entries of `metadata.managedFields`: parsing, comparing, limiting and serializing. */

import type { JsonObject } from '../../base/json.ts';
import { MANAGED_FIELDS_MAX } from '../limits.ts';
import { tooManyOwnedFields } from '../status.ts';
import { text } from '../metadata.ts';
import { fromFieldsV1, toFieldsV1, unionOf, type FieldSet } from './field-set.ts';

/** The field manager and the kind of a write. */
export interface FieldWriter {
  readonly manager: string;
  readonly operation: 'Update' | 'Apply';
  readonly apiVersion: string;
  /** `''` for the object itself. */
  readonly subresource: string;
  /** RFC 3339, seconds. */
  readonly time: string;
}

/** One element of `managedFields`. */
export interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly fields: FieldSet;
}

/** Update entries beyond this number are merged into one, oldest first, so that the list stays bounded. */
const UPDATE_ENTRIES_MAX = 10;

export function isSameWriter(entry: Entry, writer: FieldWriter): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === writer.operation &&
    entry.apiVersion === writer.apiVersion &&
    entry.subresource === writer.subresource
  );
}

/** Undefined when an entry is invalid or all entries together hold too many fields: then all are ignored. */
export function readEntries(list: readonly JsonObject[]): Entry[] | undefined {
  const entries: Entry[] = [];
  let size = 0;
  for (const json of list) {
    const fields = fromFieldsV1(json['fieldsV1']);
    const operation = text(json, 'operation');
    const isRead = fields && text(json, 'fieldsType') === 'FieldsV1';
    size += 1 + (fields?.size ?? 0);
    if (!isRead || size > MANAGED_FIELDS_MAX) return undefined;
    if (operation !== 'Update' && operation !== 'Apply') return undefined;
    entries.push({
      manager: text(json, 'manager'),
      operation,
      apiVersion: text(json, 'apiVersion'),
      subresource: text(json, 'subresource'),
      time: text(json, 'time'),
      fields,
    });
  }
  return entries;
}

/** In the order of a kube-apiserver: applies first, then by time, then by name. Throws a 413 `StatusError` above `MANAGED_FIELDS_MAX`. */
export function writeEntries(entries: readonly Entry[]): JsonObject[] {
  const size = entries.reduce((sum, { fields }) => sum + 1 + fields.size, 0);
  if (size > MANAGED_FIELDS_MAX) throw tooManyOwnedFields(MANAGED_FIELDS_MAX);
  return entries
    .filter(({ fields }) => !fields.isEmpty)
    .sort((a, b) => compareText(orderOf(a), orderOf(b)))
    .map((entry) => {
      const json: JsonObject = {
        manager: entry.manager,
        operation: entry.operation,
        apiVersion: entry.apiVersion,
      };
      if (entry.time !== '') json['time'] = entry.time;
      json['fieldsType'] = 'FieldsV1';
      json['fieldsV1'] = toFieldsV1(entry.fields);
      if (entry.subresource !== '') json['subresource'] = entry.subresource;
      return json;
    });
}

function orderOf({ operation, time, manager, apiVersion, subresource }: Entry): string {
  return [operation, time, manager, apiVersion, subresource].join('\0');
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Merges the oldest updates into one entry. */
export function capped(entries: readonly Entry[]): Entry[] {
  const updates = entries.filter(({ operation }) => operation === 'Update');
  const surplus = updates.length - UPDATE_ENTRIES_MAX;
  if (surplus <= 0) return [...entries];
  const oldest = updates.sort((a, b) => compareText(orderOf(a), orderOf(b))).slice(0, surplus + 1);
  const newest = oldest.at(-1);
  if (!newest) return [...entries];
  const fields = unionOf(oldest.map((entry) => entry.fields));
  const ancient: Entry = { ...newest, manager: 'ancient-changes', fields };
  const merged = new Set(oldest);
  return [...entries.filter((entry) => !merged.has(entry)), ancient];
}
