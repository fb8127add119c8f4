/** The blocks of `docs/keys/connected-clusters.md`, and the files that its commands make from them. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { documentedBlocks } from './documented-blocks.ts';

const FILES = ['authentication.yaml', 'authorization.yaml', 'tokenreviews.kubeconfig'];
const COMMANDS = ['accessreviews.sh', 'without-the-rule.sh'];

/** Name → text. `isOlder`: as a kube-apiserver before 1.34 needs them. */
export function connectedClusterBlocks(isOlder: boolean): ReadonlyMap<string, string> {
  const blocks = documentedBlocks('keys/connected-clusters.md');
  const block = (name: string): string => {
    const text = blocks.get(name);
    if (text === undefined) throw new Error(`the page has no block called ${name}`);
    return text;
  };
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-connected-'));
  try {
    for (const name of FILES) writeFileSync(join(folder, name), block(name));
    const commands = [...COMMANDS, ...(isOlder ? ['older-versions.sh'] : [])].map(block);
    execFileSync('sh', ['-ec', commands.join('')], { cwd: folder });
    const made = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const);
    return new Map([...blocks, ...made]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
