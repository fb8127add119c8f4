/** Every relative link and picture of the documentation leads to a file, and an anchor to a heading of that file. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = [ROOT, join(ROOT, 'docs'), join(ROOT, 'bench')].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);

test('every relative link has a target', () => {
  const broken = PAGES.flatMap((page) =>
    linksOf(page)
      .filter((link) => !hasTarget(page, link))
      .map((link) => `${page.slice(ROOT.length + 1)}: ${link}`),
  );
  expect(broken).toEqual([]);
});

function linksOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```$/gmsu, '');
  const links = [...text.matchAll(/\]\(([^)\s]+)\)|\bsrc(?:set)?="([^"\s]+)"/gu)].map(
    ([, link, picture]) => link ?? picture ?? '',
  );
  return links.filter((link) => !/^[a-z]+:/u.test(link));
}

function hasTarget(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const file = path === '' ? page : resolve(dirname(page), path);
  if (!existsSync(file)) return false;
  return anchor === undefined || anchorsOf(file).includes(anchor);
}

/** As GitHub derives them from headings. */
function anchorsOf(file: string): string[] {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gmu);
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}
