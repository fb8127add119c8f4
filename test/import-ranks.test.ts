/** Imports only go down the ranks, or stay inside a folder; see the table in ARCHITECTURE.md. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');

/** A folder may import itself and every folder of a lower rank. */
const RANKS: Record<string, number> = {
  lib: 0,
  kube: 1,
  observe: 1,
  config: 2,
  queue: 2,
  store: 2,
  translate: 3,
  api: 3,
  sandbox: 3,
  cluster: 3,
  patch: 4,
  write: 5,
  sync: 6,
  daemon: 7,
  app: 8,
  cli: 9,
  main: 10,
};

/** What runs in the sandbox child imports nothing of the daemon but what crosses the pipe. */
const GUEST = 'sandbox/guest';

function roomOf(file: string): string {
  const first = relative(SRC, file).split('/')[0] ?? '';
  return first.replace(/\.ts$/, '');
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(SRC, name));

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map((match) =>
    normalize(join(dirname(file), match[1] ?? '')),
  );
}

describe('import ranks', () => {
  test('every folder below src has a rank', () => {
    expect(files.map(roomOf).filter((room) => RANKS[room] === undefined)).toEqual([]);
  });

  test('imports only go down', () => {
    const wrong = files.flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith(SRC))
        .filter((target) => {
          const [from, to] = [roomOf(file), roomOf(target)];
          return from !== to && (RANKS[from] ?? 0) <= (RANKS[to] ?? 0);
        })
        .map((target) => `${relative(SRC, file)} -> ${relative(SRC, target)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('the guest imports only itself and the wire protocol', () => {
    const wrong = files
      .filter((file) => relative(SRC, file).startsWith(GUEST))
      .flatMap((file) => importsOf(file).map((target) => relative(SRC, target)))
      .filter((target) => !target.startsWith(GUEST) && target !== 'sandbox/protocol.ts');
    expect(wrong).toEqual([]);
  });
});
