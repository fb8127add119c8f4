/** `keys list`: the keys that the caller may see, selected by the server, by expiry and order selected here. */

import { stringify } from 'yaml';
import { endOfKey } from '../../access-keys/keys/lifecycle/key-expiry.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { ApiClient } from './api-client.ts';
import { memberOf, textIn } from './keys-output.ts';
import { objectsIn, TABLE_MEDIA, tableText } from './keys-table.ts';

export interface ListOptions {
  readonly output: string;
  readonly selector?: string;
  readonly fieldSelector?: string;
  /** Seconds. */
  readonly expiring?: number;
  readonly sortBy?: string;
}

export async function listKeys(client: ApiClient, options: ListOptions): Promise<number> {
  const { output } = options;
  const isTable = output === 'table' || output === 'wide';
  const path = `ownedaccesskeys${queryOf(options, isTable)}`;
  const list = await client.send({ method: 'GET', path, ...(isTable ? { accept: TABLE_MEDIA } : {}) });
  const shown = isTable
    ? selected(list, 'rows', (row) => objectIn(row), options)
    : selected(list, 'items', (item) => item, options);
  process.stdout.write(isTable ? tableText(shown, output === 'wide') : listText(shown, output));
  if (isTable && objectsIn(shown, 'rows').length === 0) process.stderr.write('no keys\n');
  return 0;
}

function queryOf({ selector, fieldSelector }: ListOptions, isTable: boolean): string {
  const query = new URLSearchParams({
    ...(selector === undefined ? {} : { labelSelector: selector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(isTable ? { includeObject: 'Object' } : {}),
  });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function objectIn(row: JsonObject): JsonObject {
  const { object } = row;
  return typeof object === 'object' && object !== null && !Array.isArray(object) ? object : {};
}

/** The list with those of its members that were asked for, in the order that was asked for. */
function selected(
  list: JsonObject,
  field: 'rows' | 'items',
  keyOf: (member: JsonObject) => JsonObject,
  { expiring, sortBy }: ListOptions,
): JsonObject {
  let members = objectsIn(list, field);
  if (expiring !== undefined) {
    const untilMs = Date.now() + expiring * 1000;
    members = members.filter((member) => (endOfKey(keyOf(member)) ?? Number.POSITIVE_INFINITY) <= untilMs);
  }
  if (sortBy !== undefined) {
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

/** `expires` and `subject` are computed; else a field, `.spec.ttl`, or a name for one. */
function sortValue(key: JsonObject, by: string): string | number {
  if (by === 'expires') return endOfKey(key) ?? Number.POSITIVE_INFINITY;
  if (by === 'subject') {
    return ['user', 'team', 'subject'].map((field) => textIn(key, 'spec', field)).find(Boolean) ?? '';
  }
  const path = (SORT_PATHS[by] ?? by).replaceAll(/[{}]/gu, '').split('.').filter(Boolean);
  const value: JsonValue | undefined = memberOf(key, ...path);
  if (typeof value === 'number' || typeof value === 'string') return value;
  return value === undefined ? '' : JSON.stringify(value);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a === b ? 0 : a - b;
  const [left, right] = [String(a), String(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function listText(list: JsonObject, output: string): string {
  const items = objectsIn(list, 'items');
  if (output === 'name') return items.map((item) => `${textIn(item, 'metadata', 'name')}\n`).join('');
  return output === 'json' ? `${JSON.stringify(list, null, 2)}\n` : stringify(list);
}
