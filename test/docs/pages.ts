/** The pages with commands, and the prerequisites of each. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** `nothing`: an empty folder; `kubectl`: also kubectl; `clusters`: also two real clusters; `install`: what docs/deploy.md leaves. */
export type PageNeed = 'nothing' | 'kubectl' | 'clusters' | 'install';

export const PLAYED_PAGES: Readonly<Record<string, PageNeed>> = {
  'README.md': 'clusters',
  'docs/commands.md': 'clusters',
  'docs/testing.md': 'nothing',
  'docs/slices-and-services.md': 'nothing',
  'docs/deploy.md': 'clusters',
  'docs/upgrade.md': 'install',
  'docs/migration.md': 'nothing',
  'docs/keys/start.md': 'kubectl',
};

export function pagesThatNeed(need: PageNeed): string[] {
  return Object.keys(PLAYED_PAGES).filter((page) => PLAYED_PAGES[page] === need);
}

/** Every page with a `console` block. */
export function pagesWithCommands(): string[] {
  const pages = ['README.md', 'CONTRIBUTING.md', ...docs('docs'), ...docs('charts')];
  return pages.filter((page) => /^```console$/mu.test(read(page)));
}

function docs(folder: string): string[] {
  try {
    const entries = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
    return entries.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
  } catch {
    return []; // the folder does not exist
  }
}

function read(page: string): string {
  try {
    return readFileSync(join(ROOT, page), 'utf8');
  } catch {
    return ''; // the page does not exist
  }
}
