/** The entry files of a folder below `src`: those that the first table of its README names, which other folders may import. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SRC = join(import.meta.dirname, '..', '..', 'src');

/** Paths below `src`. In the table, `*.ts` and `FOLDER/` stand for each file of a folder. */
export function entriesOf(folder: string): readonly string[] {
  const readme = readFileSync(join(SRC, folder, 'README.md'), 'utf8');
  const table = /^\| entry \| for \|\n\|---\|---\|\n((?:\|.*\n)+)/mu.exec(readme)?.[1] ?? '';
  const cells = table.split('\n').map((row) => row.split('|')[1] ?? '');
  const names = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/gu)].map(([, name = '']) => name));
  return names.flatMap((name) => {
    const pattern = `${folder}/${name.replace(/\/$/u, '/*.ts')}`;
    const found = globSync(pattern, { cwd: SRC });
    return found.length > 0 ? found : [pattern];
  });
}
