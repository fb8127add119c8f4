/** The tables of docs/reference.md are up to date, and name the metrics that the program serves and the Events that it sends, no more and no less. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reference } from '../../scripts/reference.ts';
import { servedSeries } from '../charts/served-series.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGE = readFileSync(join(ROOT, 'docs', 'reference.md'), 'utf8');

/** Cells of the first column of the tables below a heading, without the marks of code. */
function firstCells(heading: string): string[] {
  const [, section = ''] = PAGE.split(`\n## ${heading}\n`);
  const rows = section.split('\n## ')[0]?.matchAll(/^\| `([^`]+)`/gmu) ?? [];
  return [...rows].map(([, cell = '']) => cell);
}

function sources(folder: string): string {
  const files = globSync(join(ROOT, 'src', folder, '**', '*.ts'));
  return files.map((file) => readFileSync(file, 'utf8')).join('\n');
}

const isOurs = (name: string): boolean => name.startsWith('endpoint_syncer_');

test('the generated tables are up to date: npm run reference -- --write', () => {
  expect(reference(PAGE)).toBe(PAGE);
});

test('a page that has lost a table is refused', () => {
  const names = [...PAGE.matchAll(/<!-- (?!end)(\w+) -->/gu)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(5);
  for (const name of names) expect(() => reference(PAGE.replace(`<!-- ${name} -->`, ''))).toThrow(name);
});

test('every metric of this program is documented with its labels', async () => {
  const documented = firstCells('Metrics').filter(isOurs);
  const served = [...(await servedSeries())]
    .filter(([name]) => isOurs(name))
    .map(([name, labels]) => {
      const own = [...labels].filter((label) => label !== 'le');
      return name.replace(/_(bucket|sum|count)$/u, '') + (own.length === 0 ? '' : `{${own.join(',')}}`);
    });
  expect(documented).toEqual(expect.arrayContaining([...new Set(served)]));
  const names = documented.map((cell) => cell.replace(/\{.*/u, ''));
  expect(new Set(names).size).toBe(names.length);
  const inSource = [...sources('.').matchAll(/'(endpoint_syncer_\w+)'/gu)].map(([, name = '']) => name);
  expect(names).toEqual(expect.arrayContaining(inSource));
});

test('every reason of an Event is documented', () => {
  const sent = [...`${sources('syncer')}${sources('fleet')}`.matchAll(/\breason: '([A-Z][a-z]\w+)'/gu)].map(
    ([, reason = '']) => reason,
  );
  expect(firstCells('Events').toSorted()).toEqual([...new Set(sent)].toSorted());
});
