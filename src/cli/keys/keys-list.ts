/** `keys list` and `keys get`: keys without their secrets. */

import { InvalidArgumentError } from 'commander';
import { TerminalError } from '../../base/errors.ts';
import { textAt, isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { endOfKey } from '../../access-keys/keys/key-expiry.ts';
import { formatListing, type Listing } from '../output/listing.ts';
import type { ApiClient } from './api-client.ts';

export interface ListOptions {
  readonly output: string;
  readonly selector?: string;
  readonly fieldSelector?: string;
  /** Seconds. */
  readonly expiring?: number;
  readonly expired?: true;
  readonly sortBy?: string;
}

const TABLE_MEDIA = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Rejects with `StatusError` when the server denies the request. */
export async function listKeys(client: ApiClient, options: ListOptions): Promise<number> {
  const { output } = options;
  const isTable = isTableFormat(output);
  const path = `ownedaccesskeys${queryOf(options, isTable)}`;
  const list = await client.send({ method: 'GET', path, ...(isTable ? { accept: TABLE_MEDIA } : {}) });
  const selected = isTable
    ? select(list, 'rows', (row) => objectIn(row), options)
    : select(list, 'items', (item) => item, options);
  const listing = isTable ? listingOfTable(selected) : listingOf(objectsIn(selected, 'items'), selected);
  process.stdout.write(formatListing(listing, output));
  if (isTable && listing.rows.length === 0) process.stderr.write('no keys\n');
  return 0;
}

/** Rejects with `StatusError` when the server denies the request. */
export async function getKey(client: ApiClient, name: string, output: string): Promise<number> {
  const path = `ownedaccesskeys/${encodeURIComponent(name)}`;
  const isTable = isTableFormat(output);
  const answer = await client.send({ method: 'GET', path, ...(isTable ? { accept: TABLE_MEDIA } : {}) });
  const listing = isTable ? listingOfTable(answer) : listingOf([answer], answer);
  process.stdout.write(formatListing(listing, output));
  return 0;
}

function isTableFormat(output: string): boolean {
  return output === 'table' || output === 'wide';
}

function queryOf({ selector, fieldSelector }: ListOptions, isTable: boolean): string {
  const query = new URLSearchParams({
    ...(selector === undefined ? {} : { labelSelector: selector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(isTable ? { includeObject: 'Object' } : {}),
  });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function listingOf(keys: readonly JsonObject[], document: JsonObject): Listing {
  const rows = keys.map((key) => ({ cells: [], name: textAt(key, 'metadata', 'name'), json: key }));
  return { heading: [], rows, document };
}

/** A Table of meta.k8s.io: columns with a priority are only in `wide`. */
function listingOfTable(table: JsonObject): Listing {
  const columns = objectsIn(table, 'columnDefinitions');
  const isShown = (isWide: boolean) => (_: unknown, index: number) =>
    ((columns[index]?.['priority'] ?? 0) !== 0) === isWide;
  const heads = columns.map((column) => textAt(column, 'name').toUpperCase());
  const rows = objectsIn(table, 'rows').map((row) => {
    const cells = (Array.isArray(row['cells']) ? row['cells'] : []).map(cellText);
    const json = objectIn(row);
    return {
      cells: cells.filter(isShown(false)),
      wideCells: cells.filter(isShown(true)),
      name: textAt(json, 'metadata', 'name'),
      json,
    };
  });
  return { heading: heads.filter(isShown(false)), wideHeading: heads.filter(isShown(true)), rows };
}

function cellText(cell: JsonValue): string {
  if (cell === null || cell === '') return '<none>';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

function objectIn(row: JsonObject): JsonObject {
  const { object } = row;
  return isJsonObject(object) ? object : {};
}

function objectsIn(object: JsonObject, field: string): JsonObject[] {
  const value = object[field];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** The list with the members that match `--expiring` or `--expired`, sorted by `--sort-by`. Without `--expired`, keys that have expired are hidden. */
function select(
  list: JsonObject,
  field: 'rows' | 'items',
  keyOf: (member: JsonObject) => JsonObject,
  { expiring, expired, sortBy }: ListOptions,
): JsonObject {
  const nowMs = Date.now();
  const [fromMs, untilMs] = expired
    ? [Number.NEGATIVE_INFINITY, nowMs]
    : [nowMs, expiring === undefined ? Number.POSITIVE_INFINITY : nowMs + expiring * 1000];
  let members = objectsIn(list, field).filter((member) => {
    const endMs = endOfKey(keyOf(member)) ?? Number.POSITIVE_INFINITY;
    return endMs > fromMs && endMs <= untilMs;
  });
  if (sortBy !== undefined) {
    requireField(members.map(keyOf), sortBy);
    const valueOf = (member: JsonObject): string | number => sortValue(keyOf(member), sortBy);
    members = members.toSorted((a, b) => compare(valueOf(a), valueOf(b)));
  }
  return { ...list, [field]: members };
}

const SORT_PATHS: Readonly<Record<string, string>> = {
  name: '.metadata.name',
  created: '.metadata.creationTimestamp',
  'last-activity': '.status.lastActivity',
};

const COMPUTED = ['expires', 'subject'];

/** Parser of `--sort-by`; throws for anything but these names and a path. */
export function sortField(text: string): string {
  const names = [...Object.keys(SORT_PATHS), ...COMPUTED].toSorted();
  if (names.includes(text) || text.includes('.')) return text;
  throw new InvalidArgumentError(`Use a field such as .spec.ttl, or one of ${names.join(', ')}.`);
}

/** As kubectl does, a field that no key has is an error; it is probably misspelled. */
function requireField(keys: readonly JsonObject[], by: string): void {
  if (!by.includes('.') || keys.length === 0) return;
  if (keys.some((key) => valueAt(key, pathOf(by)) !== undefined)) return;
  throw new TerminalError(`--sort-by ${by}: none of the keys has this field; see keys list -o yaml`);
}

function pathOf(by: string): string[] {
  return (SORT_PATHS[by] ?? by).replaceAll(/[{}]/gu, '').split('.').filter(Boolean);
}

/** `by` is `expires`, `subject`, a name in {@link SORT_PATHS} or a field such as `.spec.ttl`. */
function sortValue(key: JsonObject, by: string): string | number {
  if (by === 'expires') return endOfKey(key) ?? Number.POSITIVE_INFINITY;
  if (by === 'subject') {
    return ['user', 'team', 'subject'].map((field) => textAt(key, 'spec', field)).find(Boolean) ?? '';
  }
  const value: JsonValue | undefined = valueAt(key, pathOf(by));
  if (typeof value === 'number' || typeof value === 'string') return value;
  return value === undefined ? '' : JSON.stringify(value);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a === b ? 0 : a - b;
  const [left, right] = [String(a), String(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
