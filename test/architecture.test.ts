/** ARCHITECTURE.md and the READMEs of the folders: they exist, are short, and name files that exist; the import table is the one that is enforced. */

import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { IMPORT_TABLE } from './support/import-table.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDERS = globSync('src/*/', { cwd: ROOT });
const READMES = globSync('{src,test}/**/README.md', { cwd: ROOT });
const LINES_MAX = 150;
const WORDS_MAX = 1800;

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** Paths in a page: from the root, or in the folder of the page. In a table of a route, a path without a folder may be in another one. */
function missingPaths(page: string): string[] {
  const here = dirname(page);
  const names = [...read(page).matchAll(/`([\w./-]+(?:\.ts|\/))`/gu)].map(([, path = '']) => path);
  return names.filter(
    (path) =>
      !existsSync(join(ROOT, path)) &&
      !existsSync(join(ROOT, here, path)) &&
      globSync(`${here}/**/${path.replace(/\/$/u, '')}`, { cwd: ROOT }).length === 0,
  );
}

describe('ARCHITECTURE.md', () => {
  const text = read('ARCHITECTURE.md');

  test('is one page', () => {
    expect(text.split(/\s+/u).length).toBeLessThanOrEqual(WORDS_MAX);
  });

  test('every path that it names exists', () => {
    const paths = [...text.matchAll(/`((?:src|test|docs|bench)\/[^`<]*)`/gu)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(15);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('its import table is equal to the enforced one', () => {
    const rows = [...text.matchAll(/^\| `([a-z-]+)` \| [^|]* \| ([^|]*) \|$/gmu)].map(
      ([, folder = '', list = '']) => [
        folder,
        [...list.matchAll(/`([a-z-]+)`/gu)].map(([, name = '']) => name).toSorted(),
      ],
    );
    const enforced = Object.entries(IMPORT_TABLE).map(([folder, list]) => [folder, list.toSorted()]);
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(enforced));
  });
});

describe('the README of a folder', () => {
  test.each(FOLDERS)('%s has one, named like the folder', (folder) => {
    expect(read(`${folder}/README.md`)).toMatch(new RegExp(`^# ${basename(folder)}\n`, 'u'));
  });

  test.each(READMES)('%s is short, and every path that it names exists', (page) => {
    expect(read(page).split('\n').length).toBeLessThanOrEqual(LINES_MAX);
    expect(missingPaths(page)).toEqual([]);
  });
});

test('a table of folders has each, but for those of test that have the name of one of src', () => {
  const ofSrc = FOLDERS.map((folder) => basename(folder));
  const tables = READMES.filter((page) => read(page).includes('| folder | content |'));
  const unnamed = tables.flatMap((page) =>
    globSync(`${dirname(page)}/*/`, { cwd: ROOT })
      .filter((folder) => dirname(page) !== 'test' || !ofSrc.includes(basename(folder)))
      .filter((folder) => !new RegExp(`^\\|[^|]*\`${basename(folder)}/\`[^|]*\\|`, 'mu').test(read(page))),
  );
  expect(unnamed).toEqual([]);
});

test('no function only calls a constructor with its own parameter', () => {
  const wrapper = /^export function (\w+)\((\w+): [^{}]*\{\n {2}return new \w+\(\2\);\n\}/gmu;
  const found = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(wrapper)].map(([, name = '']) => `${file} ${name}`),
  );
  expect(found).toEqual([]);
});
