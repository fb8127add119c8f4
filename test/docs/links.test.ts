/** Every relative link and picture of the documentation leads to a file, and an anchor to a heading of that file. */

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = globSync(['*.md', '{docs,bench,src,test}/**/*.md'], { cwd: ROOT }).map((name) =>
  join(ROOT, name),
);

test('every relative link has a target', () => {
  const broken = PAGES.flatMap((page) =>
    linksOf(page)
      .filter((link) => !hasTarget(page, link))
      .map((link) => `${page.slice(ROOT.length + 1)}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test('every install line installs a release or a file, not a name of the registry, and runs no scripts', () => {
  const lines = PAGES.flatMap(
    (page) => readFileSync(page, 'utf8').match(/npm (?:install|i) [^`\n]*endpoint-syncer[^`\s]*/gu) ?? [],
  );
  expect(lines.length).toBeGreaterThan(2);
  const form = /^npm install --global --ignore-scripts (?:"?https:|\.\/)\S+\.tgz"?$/u;
  expect(lines.filter((line) => !form.test(line))).toEqual([]);
});

const SITE = 'https://endpoint-syncer.github.io/endpoint-syncer/';

test('the chart links to pages of the site, and not to files of the repository', () => {
  const folder = join(ROOT, 'charts', 'endpoint-syncer');
  expect(readFileSync(join(folder, 'Chart.yaml'), 'utf8')).toContain(`\nhome: ${SITE}\n`);
  const files = ['README.md', 'values.yaml', 'templates/NOTES.txt', 'files/alerts.yaml'];
  const text = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
  expect(text).not.toMatch(/\bdocs\/|\.md\b|github\.com/u);
  const links = [...text.replaceAll('{{ .Chart.Home }}', SITE).matchAll(/https:[^\s)]+\.html[^\s)]*/gu)];
  expect(links.length).toBeGreaterThan(2);
  const pages = links.map(([link]) => link.replace(SITE, 'docs/').replace('.html', '.md'));
  expect(pages.filter((link) => !hasTarget(join(ROOT, 'README.md'), link))).toEqual([]);
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
