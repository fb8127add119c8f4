/** The import table of ARCHITECTURE.md: which folder may import which, and no cycle anywhere, type-only imports included. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { entriesOf } from './support/entries.ts';
import { IMPORT_TABLE } from './support/import-table.ts';

const SRC = join(import.meta.dirname, '..', 'src');

/** Inside a product, a folder imports only folders of a lower rank. Files at the product's top level compose the folders. */
const RANKS: Record<string, Record<string, number>> = {
  syncer: {
    translate: 0,
    metrics: 0,
    patch: 1,
    kinds: 2,
    config: 3,
    reconcile: 4,
    references: 5,
    // Above what the product composes: commands read it, the daemon does not.
    rehearsal: 10,
  },
  'access-keys': {
    identity: 1,
    credentials: 2,
    serving: 2,
    authorization: 3,
    keys: 4,
    tokens: 4,
  },
  apiserver: {
    limits: 0,
    user: 0,
    storage: 0,
    status: 1,
    metadata: 2,
    schema: 2,
    patch: 3,
    objects: 4,
    request: 6,
    metrics: 7,
    watch: 7,
    http: 8,
  },
};
const TOP_RANK = 9;

/**
 * How many names other folders import from each product, and from each library with an inside: what a change in there may break. A change that
 * needs fewer lowers the number; one that needs more has to say why, as its folder should do the work.
 */
const NAMES: Record<string, number> = {
  syncer: 73,
  apiserver: 120,
  expressions: 36,
  'shared-config': 27,
  cli: 14,
  fleet: 8,
  showcase: 3,
  'access-keys': 14,
  'embedded-cluster': 3,
};
/** Of these, what the commands take, and from how many entry files: what a person who writes one has to know of the engine. */
const OF_COMMANDS: Record<string, { readonly names: number; readonly files: number }> = {
  syncer: { names: 24, files: 12 },
  fleet: { names: 8, files: 3 },
  expressions: { names: 4, files: 1 },
};
/** Libraries of small things, in which each name stands alone. */
const UNCOUNTED = ['base', 'kube', 'config-file', 'main'];

/** What runs in the sandbox child imports nothing of the daemon but types. */
const GUEST = 'expressions/guest/';

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

/** Relative imports, as paths below `src`; without `types`, only those that exist at run time. */
function importsOf(file: string, { types = true } = {}): string[] {
  const source = readFileSync(join(SRC, file), 'utf8');
  const text = types ? source : source.replaceAll(/import type [^;]+;/g, '');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)]
    .map((match) => relative(SRC, normalize(join(SRC, dirname(file), match[1] ?? ''))))
    .filter((target) => !target.startsWith('..'));
}

/** `FILE NAME` of each name that a file imports from a file of another folder. */
function foreignNames(file: string): string[] {
  const source = readFileSync(join(SRC, file), 'utf8');
  return [...source.matchAll(/import (?:type )?\{([^}]*)\} from '(\.[^']+)'/g)].flatMap(
    ([, list = '', path = '']) => {
      const target = relative(SRC, normalize(join(SRC, dirname(file), path)));
      if (firstPart(target) === firstPart(file)) return [];
      const names = list.split(',').map((name) => /^(?:type )?(\w+)/u.exec(name.trim())?.[1] ?? []);
      return names.flat().map((name) => `${target} ${name}`);
    },
  );
}

/** The first part of a path, without the extension of a file. */
function firstPart(path: string): string {
  return (path.split('/')[0] ?? '').replace(/\.ts$/, '');
}

function violations(isAllowed: (from: string, to: string) => boolean): string[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((target) => !isAllowed(file, target))
      .map((target) => `${file} -> ${target}`),
  );
}

/** Strongly connected files (Tarjan), each as its members; a file alone is no cycle. */
function cycles(): string[] {
  const state = new Map<string, { index: number; low: number; isOnStack: boolean }>();
  const stack: string[] = [];
  const found: string[] = [];
  const visit = (file: string): { index: number; low: number; isOnStack: boolean } => {
    const node = { index: state.size, low: state.size, isOnStack: true };
    state.set(file, node);
    stack.push(file);
    for (const target of importsOf(file)) {
      const seen = state.get(target);
      if (seen === undefined) node.low = Math.min(node.low, visit(target).low);
      else if (seen.isOnStack) node.low = Math.min(node.low, seen.index);
    }
    if (node.low === node.index) {
      const members = stack.splice(stack.indexOf(file));
      for (const member of members) Object.assign(state.get(member) ?? {}, { isOnStack: false });
      if (members.length > 1) found.push(members.toSorted().join(' <-> '));
    }
    return node;
  };
  for (const file of files) if (!state.has(file)) visit(file);
  return found;
}

describe('imports', () => {
  test('every folder below src is in the table', () => {
    expect(files.map(firstPart).filter((folder) => IMPORT_TABLE[folder] === undefined)).toEqual([]);
  });

  test('a folder imports only what the table allows', () => {
    expect(
      violations((file, target) => {
        const [from, to] = [firstPart(file), firstPart(target)];
        return from === to || (IMPORT_TABLE[from] ?? []).includes(to);
      }),
    ).toEqual([]);
  });

  const folders = Object.keys(IMPORT_TABLE).filter((folder) => folder !== 'main');

  test('a folder imports only entry files of others, and each entry is for another folder', () => {
    const entries = new Set(folders.flatMap(entriesOf));
    const isForeign = (from: string, to: string): boolean => firstPart(from) !== firstPart(to);
    expect(violations((file, target) => !isForeign(file, target) || entries.has(target))).toEqual([]);
    const used = new Set(
      files.flatMap((file) => importsOf(file).filter((target) => isForeign(file, target))),
    );
    const counted = [...entries].filter((file) => !UNCOUNTED.includes(firstPart(file)));
    expect(counted.filter((file) => !used.has(file))).toEqual([]);
  });

  const countsIn = (names: readonly string[], folders: Record<string, number>): Record<string, number> =>
    Object.fromEntries(
      Object.keys(folders).map((folder) => [folder, names.filter((one) => one === folder).length]),
    );

  test('the names that the commands import of the engine, and their files, do not become more', () => {
    const ofCommands = files.filter((file) => firstPart(file) === 'cli').flatMap(foreignNames);
    const entries = ofCommands.map((name) => name.split(' ')[0] ?? '');
    const count = (of: readonly string[], folder: string): number =>
      [...new Set(of)].filter((one) => firstPart(one) === folder).length;
    const counted = Object.keys(OF_COMMANDS).map((folder) => [
      folder,
      { names: count(ofCommands, folder), files: count(entries, folder) },
    ]);
    expect(Object.fromEntries(counted)).toEqual(OF_COMMANDS);
  });

  test('the names that other folders import do not become more', () => {
    const names = [...new Set(files.flatMap(foreignNames))].map(firstPart);
    expect(countsIn(names, NAMES)).toEqual(NAMES);
    expect(new Set(names).difference(new Set([...Object.keys(NAMES), ...UNCOUNTED]))).toEqual(new Set());
  });

  test.each(Object.entries(RANKS))('inside %s, imports only go down', (product, ranks) => {
    const inner = (file: string): string => relative(product, file);
    const rankOf = (file: string): number => ranks[firstPart(inner(file))] ?? TOP_RANK;
    expect(
      violations(
        (file, target) =>
          firstPart(file) !== product ||
          firstPart(target) !== product ||
          firstPart(inner(file)) === firstPart(inner(target)) ||
          rankOf(file) > rankOf(target) ||
          (rankOf(file) === TOP_RANK && rankOf(target) === TOP_RANK),
      ),
    ).toEqual([]);
  });

  test('there are no import cycles, type-only imports included', () => {
    expect(cycles()).toEqual([]);
  });

  test('the guest imports only itself, and types', () => {
    const wrong = files
      .filter((file) => file.startsWith(GUEST))
      .flatMap((file) => importsOf(file, { types: false }))
      .filter((target) => !target.startsWith(GUEST));
    expect(wrong).toEqual([]);
  });
});
