/** The static site: the pages of docs/ as they are. Links out of docs/ lead to the repository. The build fails on a link without a target. */

import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { defineConfig } from 'vitepress';

/** A copy of docs/, because Vue, which the compiled pages import, is installed here and not beside them. */
const PAGES = join(import.meta.dirname, '..', 'pages');
/** In each page, so that browsers do not ask for /favicon.ico, which a site below a path cannot have. */
const ICON = encodeURIComponent(readFileSync(join(PAGES, 'images', 'icon.svg'), 'utf8'));
const BASE = process.env.SITE_BASE ?? '/';
const REPOSITORY = `https://github.com/${process.env.GITHUB_REPOSITORY ?? 'endpoint-syncer/endpoint-syncer'}`;

export default defineConfig({
  title: 'endpoint-syncer',
  description: 'Patches for the Endpoints, EndpointSlices and Services of a virtual Kubernetes cluster',
  base: BASE,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml,${ICON}` }]],
  srcDir: 'pages',
  rewrites: { 'README.md': 'index.md' },
  markdown: { anchor: { slugify: githubSlug }, config: (markdown) => linkToRepository(markdown) },
  vite: { publicDir: false },
  themeConfig: {
    search: { provider: 'local' },
    nav: [{ text: 'Repository', link: REPOSITORY }],
    sidebar: [
      group('Sync', [
        'index',
        'deploy',
        'upgrade',
        'fleet',
        'migration',
        'patches',
        'references',
        'slices-and-services',
        'testing',
        'operations',
        'commands',
        'security',
        'differences',
        'reference',
      ]),
      group('Keys and tokens', [
        'keys/start',
        'keys/in-a-cluster',
        'keys/scopes',
        'keys/connected-clusters',
        'keys/store',
      ]),
    ],
  },
  buildEnd: ({ outDir }) => checkAnchors(outDir),
});

/** A part of the sidebar, with the headings of the pages. */
function group(text, pages) {
  const items = pages.map((page) => {
    const file = page === 'index' ? 'README' : page;
    const [, title] = /^# (.*)$/mu.exec(readFileSync(join(PAGES, `${file}.md`), 'utf8'));
    return { text: title, link: `/${page === 'index' ? '' : page}` };
  });
  return { text, items };
}

/** As GitHub derives anchors, so that one link works in both. */
function githubSlug(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/gu, '')
    .replaceAll(' ', '-');
}

function linkToRepository(markdown) {
  markdown.core.ruler.push('repository-links', ({ tokens, env: { relativePath } }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.attrGet('href');
      if (token.type !== 'link_open' || !href?.startsWith('../')) continue;
      const path = posix.join(posix.dirname(relativePath), href);
      if (path.startsWith('../'))
        token.attrSet('href', `${REPOSITORY}/blob/HEAD/${path.slice('../'.length)}`);
    }
  });
}

/** VitePress checks pages, not the headings on them. */
function checkAnchors(outDir) {
  const pages = new Map(
    globSync('**/*.html', { cwd: outDir }).map((file) => [file, readFileSync(join(outDir, file), 'utf8')]),
  );
  const broken = [...pages].flatMap(([file, html]) =>
    [...html.matchAll(/href="(?<page>[^"#:]*)#(?<anchor>[^"]+)"/gu)]
      .filter(({ groups: { page, anchor } }) => {
        const target = page === '' ? file : targetOf(file, page);
        return anchor !== 'VPContent' && !pages.get(target)?.includes(`id="${anchor}"`);
      })
      .map(([link]) => `${file}: ${link}`),
  );
  if (broken.length > 0) throw new Error(`links without a target:\n${broken.join('\n')}`);
}

/** The file, below the folder of the site, to which a page links. */
function targetOf(file, link) {
  const path = link.startsWith('/') ? link.slice(BASE.length) : posix.join(posix.dirname(file), link);
  return path === '' || path.endsWith('/') ? `${path}index.html` : path;
}
