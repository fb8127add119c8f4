/** Imports only go down the ranks, or stay inside a folder; see the table in ARCHITECTURE.md. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');

/** A folder may import itself and every folder of a lower rank. */
const RANKS: Record<string, number> = {
  lib: 0,
  kube: 1,
  observe: 2,
  config: 3,
  queue: 3,
  store: 3,
  translate: 4,
  api: 4,
  sandbox: 4,
  cluster: 4,
  'kubernetes-store': 5,
  patch: 5,
  write: 6,
  sync: 7,
  management: 7,
  daemon: 8,
  app: 9,
  cli: 10,
  main: 11,
};

/** The same inside `src/management`; the files at its top put the rooms together, but for the two that all of them know. */
const MANAGEMENT_RANKS: Record<string, number> = {
  types: 0,
  identity: 1,
  credentials: 1,
  serving: 2,
  bootstrap: 2,
  access: 3,
  keys: 4,
  tokens: 4,
};
const MANAGEMENT = 'management/';

/** What runs in the sandbox child imports nothing of the daemon but types. */
const GUEST = 'sandbox/guest/';

function roomOf(file: string): string {
  const first = relative(SRC, file).split('/')[0] ?? '';
  return first.replace(/\.ts$/, '');
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(SRC, name));

/** Relative imports; without `types`, those that are still there at run time. */
function importsOf(file: string, { types = true } = {}): string[] {
  const source = readFileSync(file, 'utf8');
  const text = types ? source : source.replaceAll(/import type [^;]+;/g, '');
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

  test('in the key and token API, too', () => {
    const inner = (file: string): string => relative(join(SRC, MANAGEMENT), file);
    const rankOf = (file: string): number => MANAGEMENT_RANKS[inner(file).split(/[/.]/)[0] ?? ''] ?? 5;
    const isInside = (file: string): boolean => relative(SRC, file).startsWith(MANAGEMENT);
    const wrong = files.filter(isInside).flatMap((file) =>
      importsOf(file)
        .filter((target) => isInside(target) && dirname(file) !== dirname(target))
        .filter((target) => rankOf(file) <= rankOf(target))
        .map((target) => `${inner(file)} -> ${inner(target)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('the guest imports only itself, and types', () => {
    const wrong = files
      .filter((file) => relative(SRC, file).startsWith(GUEST))
      .flatMap((file) => importsOf(file, { types: false }).map((target) => relative(SRC, target)))
      .filter((target) => !target.startsWith(GUEST));
    expect(wrong).toEqual([]);
  });
});
