/** A Table of meta.k8s.io as text, in the columns of the server. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { memberOf, textIn } from './keys-output.ts';

/** The media type to ask for. */
export const TABLE_MEDIA = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Columns of a priority are for `wide`. `''` for a table without rows. */
export function tableText(table: JsonObject, isWide: boolean): string {
  const columns = objectsIn(table, 'columnDefinitions');
  const shown = columns.flatMap((column, index) => (isWide || column['priority'] === 0 ? [index] : []));
  const rows = objectsIn(table, 'rows').map((row) => {
    const cells = Array.isArray(row['cells']) ? row['cells'] : [];
    return shown.map((index) => cellText(cells[index]));
  });
  if (rows.length === 0) return '';
  const heads = shown.map((index) => textIn(columns[index] ?? {}, 'name').toUpperCase());
  const widths = shown.map((_, at) => Math.max(...[heads, ...rows].map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `${row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('   ')
      .trimEnd()}\n`;
  return [heads, ...rows].map(line).join('');
}

/** One line, whatever it holds: a display name must not control the terminal. */
function cellText(cell: JsonValue | undefined): string {
  if (cell === undefined || cell === null || cell === '') return '<none>';
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell);
  return text.replaceAll(/\p{Cc}/gu, ' ');
}

export function objectsIn(object: JsonObject, field: string): JsonObject[] {
  const value = memberOf(object, field);
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
