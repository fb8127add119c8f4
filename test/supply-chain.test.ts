/** What a release is built from is pinned, and what it is built with may do no more than it has to. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..');
const WORKFLOWS = join(ROOT, '.github', 'workflows');

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly uses?: string; readonly run?: string; readonly with?: object }[];
}

function read(...path: readonly string[]): string {
  return readFileSync(join(ROOT, ...path), 'utf8');
}

/** Paths of the repository, without those of the folder `.git`. */
function tracked(name: string): string[] {
  const listed = execFileSync('git', ['ls-files', '--', name, `**/${name}`], { cwd: ROOT, encoding: 'utf8' });
  return listed.trim().split('\n');
}

describe.each(readdirSync(WORKFLOWS))('%s', (name) => {
  const text = read('.github', 'workflows', name);
  const { permissions, jobs } = parse(text) as Workflow; // our own file

  test('names each action by its commit, with the version beside it', () => {
    const uses = text.match(/uses: .*/gu) ?? [];
    expect(uses.filter((line) => !/^uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+$/u.test(line))).toEqual([]);
  });

  test('leaves no credential in a checkout, and writes only in jobs that do not run the code', () => {
    expect(Object.values(permissions).filter((right) => right !== 'read')).toEqual([]);
    for (const { steps, permissions: granted = {} } of Object.values(jobs)) {
      const checkout = steps.find(({ uses }) => uses?.startsWith('actions/checkout@'));
      expect(checkout?.with).toEqual({ 'persist-credentials': false });
      const writesContent = [granted['contents'], granted['packages']].includes('write');
      const isRun = steps.some(({ run = '' }) => /\.ci\/run|\bnpm\b|\bnode\b/u.test(run));
      expect(writesContent && isRun).toBe(false);
    }
  });
});

test('each base image has a digest', () => {
  const images = [...read('Dockerfile').matchAll(/^FROM (\S+)/gmu)].map(([, image = '']) => image);
  expect(images).toHaveLength(2);
  expect(images.filter((image) => !/:[\w.-]+@sha256:[0-9a-f]{64}$/u.test(image))).toEqual([]);
});

test('Dependabot sees every place with pinned versions', () => {
  const { updates } = parse(read('.github', 'dependabot.yml')) as {
    updates: { 'package-ecosystem': string; directory?: string; directories?: string[] }[];
  }; // our own file
  const folders = (ecosystem: string): string[] =>
    updates
      .filter((update) => update['package-ecosystem'] === ecosystem)
      .flatMap(({ directory, directories = [] }) => [...(directory ? [directory] : []), ...directories])
      .toSorted();
  const foldersOf = (file: string): string[] =>
    tracked(file)
      .map((path) => join('/', dirname(path)))
      .toSorted();
  expect(folders('npm')).toEqual(foldersOf('package-lock.json'));
  expect(folders('gomod')).toEqual(foldersOf('go.mod'));
  expect(folders('docker')).toEqual(foldersOf('Dockerfile'));
  expect(folders('github-actions')).toEqual(['/']);
});

/** As Docker reads it: the last line that matches a path or a folder above it decides. */
function isInContext(path: string): boolean {
  const lines = read('.dockerignore').split('\n');
  let isIncluded = true;
  for (const line of lines.filter((one) => one !== '' && !one.startsWith('#'))) {
    const isException = line.startsWith('!');
    const pattern = isException ? line.slice(1) : line;
    const parts = path.split('/');
    const above = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
    // Docker's `*` matches hidden files too.
    if (pattern === '*' || above.some((one) => matchesGlob(one, pattern))) isIncluded = isException;
  }
  return isIncluded;
}

test.each([
  'admin.kubeconfig',
  'ci.key',
  'ci.token',
  'src/ci.key',
  'keys-data/master.key',
  'keys-data/keys.db',
  'data/keys.db',
  '.endpoint-syncer/demo/host.kubeconfig',
  '.git/config',
  'npm-debug.log',
  'endpoint-syncer-0.1.0.tgz',
  'node_modules/yaml/package.json',
  'scripts/site/node_modules/vitepress/package.json',
])('%s, which git ignores or holds, is not sent to the build of the image', (path) => {
  expect(isInContext(path)).toBe(false);
});

test.each(['package.json', 'src/main.ts', 'scripts/image/app.sh', 'config/schema.json', 'LICENSE'])(
  '%s is',
  (path) => expect(isInContext(path)).toBe(true),
);
