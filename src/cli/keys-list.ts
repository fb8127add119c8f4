/** `keys list`: the columns are the server's, as kubectl shows them. */

import { stringify } from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { ApiClient } from './api-client.ts';
import { memberOf, textIn } from './keys-output.ts';

export interface ListOptions {
  readonly output: string;
  readonly selector?: string;
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

export async function listKeys(client: ApiClient, { output, selector }: ListOptions): Promise<number> {
  const query = selector === undefined ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
  const path = `ownedaccesskeys${query}`;
  if (output === 'table' || output === 'wide') {
    const table = await client.send({ method: 'GET', path, accept: TABLE });
    process.stdout.write(tableText(table, output === 'wide'));
    if (objectsIn(table, 'rows').length === 0) process.stderr.write('no keys\n');
    return 0;
  }
  const list = await client.send({ method: 'GET', path });
  process.stdout.write(listText(list, output));
  return 0;
}

function listText(list: JsonObject, output: string): string {
  const items = objectsIn(list, 'items');
  if (output === 'name') return items.map((item) => `${textIn(item, 'metadata', 'name')}\n`).join('');
  return output === 'json' ? `${JSON.stringify(list, null, 2)}\n` : stringify(list);
}

/** A Table of meta.k8s.io as text; columns of a priority are for `wide`. */
function tableText(table: JsonObject, isWide: boolean): string {
  const columns = objectsIn(table, 'columnDefinitions');
  const shown = columns.flatMap((column, index) => (isWide || column['priority'] === 0 ? [index] : []));
  const rows = objectsIn(table, 'rows').map((row) => {
    const cells = Array.isArray(row['cells']) ? row['cells'] : [];
    return shown.map((index) => cellText(cells[index]));
  });
  if (rows.length === 0) return '';
  const heads = shown.map((index) => textIn(columns[index] ?? {}, 'name').toUpperCase());
  const widths = shown.map((_, at) => Math.max(...[heads, ...rows].map((row) => row[at]?.length ?? 0)));
  return [heads, ...rows]
    .map(
      (row) =>
        `${row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('   ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** One line, whatever it holds: a name for people must not write to the terminal. */
function cellText(cell: JsonValue | undefined): string {
  if (cell === undefined || cell === null || cell === '') return '<none>';
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell);
  return text.replaceAll(/\p{Cc}/gu, ' ');
}

function objectsIn(object: JsonObject, field: string): JsonObject[] {
  const value = memberOf(object, field);
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
