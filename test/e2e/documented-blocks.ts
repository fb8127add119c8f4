/** The fenced blocks of a page below `docs/`, by the name after their language, so that tests use exactly the documented files. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const DOCS = join(import.meta.dirname, '..', '..', 'docs');

/** Name → text, without the fences; blocks without a name are left out. */
export function documentedBlocks(page: string): ReadonlyMap<string, string> {
  const text = readFileSync(join(DOCS, page), 'utf8');
  const blocks = new Map<string, string>();
  for (const [, name = '', block = ''] of text.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)) {
    if (blocks.has(name)) throw new Error(`${page} has two blocks called ${name}`);
    blocks.set(name, block);
  }
  return blocks;
}
