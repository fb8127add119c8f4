/** Rows as aligned columns, as kubectl prints them. */

/** The first row is the heading. The last column is not padded. Control characters are replaced by spaces. */
export function formatTable(table: readonly (readonly string[])[]): string {
  const rows = table.map((row) => row.map((cell) => cell.replaceAll(/\p{Cc}+/gu, ' ')));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) => {
      const last = row.length - 1;
      return `${row.map((cell, column) => (column === last ? cell : cell.padEnd(widths[column] ?? 0))).join('   ')}\n`;
    })
    .join('');
}
