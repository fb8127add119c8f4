/** A new mode of a patch stands in its own file, where patches are compiled, and in the schema of an entry. */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const COPIED = ['src', 'scripts', 'config', 'charts', 'docs/reference.md', 'package.json', 'tsconfig.json'];

/** Files of `src` that a new mode may touch. */
const FILES_MAX = 4;

const MODE = `/** The mode \`prefix\`: a text gets it towards the host, and loses it on the way back. */

import { UntranslatableValue } from './reference-parts.ts';
import type { ValueMode } from './types.ts';

export function prefixMode(prefix: string): ValueMode {
  return {
    kind: 'value',
    mode: 'prefix',
    translate(value, { direction }) {
      if (typeof value !== 'string') throw new UntranslatableValue('must be a text');
      if (direction === 'toHost') return \`\${prefix}\${value}\`;
      return value.startsWith(prefix) ? value.slice(prefix.length) : value;
    },
  };
}
`;

/** File, a line of it, and what stands in its place. */
const BY_HAND = [
  [
    'src/syncer/patch/patch-schema.ts',
    '    labels: z\n',
    "    prefix: optionalText('Text before the value on the host.'),\n$&",
  ],
  ['src/syncer/patch/patch-schema.ts', "  [['labels'], 'object'],\n", "$&  [['prefix'], 'text'],\n"],
  [
    'src/syncer/patch/compile.ts',
    "import { labelsMode } from './selectors.ts';\n",
    "import { prefixMode } from './prefix.ts';\n$&",
  ],
  [
    'src/syncer/patch/compile.ts',
    '  if (config.labels !== undefined) return inBoth(labelsMode);\n',
    '$&  if (config.prefix !== undefined) return inBoth(prefixMode(config.prefix));\n',
  ],
] as const;

const USE = `
import { parsePatchFile } from './syncer/config/patch-file.ts';
import { compilePatches } from './syncer/patch/compile.ts';
import { tracePatches } from './syncer/patch/trace.ts';
import { createPatchPipeline } from './syncer/patch/pipeline.ts';

const parse = (text: string) => parsePatchFile({ text, file: 'f' });
const messages = (text: string) => parse(text).problems.map(({ message }) => message);
const { patches } = parse('[{path: metadata.labels.a, prefix: team-}]');
const versionOf = (text: string) => {
  const compiled = compilePatches(parse(text).patches);
  return createPatchPipeline({ ...options, compiled }).rulesOf(['metadata', 'labels', 'a']);
};
const options: any = {
  compiled: compilePatches(patches),
  evaluator: undefined,
  contentMembers: ['subsets'],
  references: {},
  labels: {},
  validate: () => undefined,
  vcluster: { name: 'a', namespace: 'h', config: {} },
  onError: 'object',
  monotonicMs: () => 0,
};
const context = { hostObject: null, virtualObject: null, objectNamespace: 'default' };
const traced = async (direction: 'toHost' | 'toVirtual', a: unknown) => {
  const { patches, object } = await tracePatches(options, direction, { metadata: { labels: { a } } } as any, context);
  return [patches[0]?.action, patches[0]?.error?.message ?? (object as any).metadata.labels.a];
};
process.stdout.write(
  JSON.stringify({
    toHost: await traced('toHost', 'b'),
    toVirtual: await traced('toVirtual', 'team-b'),
    failed: await traced('toHost', 7),
    none: messages('[{path: a}]'),
    two: messages('[{path: a, prefix: b, labels: {}}]'),
    areVersionsDifferent:
      versionOf('[{path: metadata.labels.a, prefix: b}]') !== versionOf('[{path: metadata.labels.a, prefix: c}]'),
  }),
);
`;

let copy = '';
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'endpoint-syncer-mode-'));
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  writeFileSync(join(copy, 'src/syncer/patch/prefix.ts'), MODE);
  for (const [file, line, other] of BY_HAND) {
    const text = readFileSync(join(copy, file), 'utf8');
    if (!text.includes(line)) throw new Error(`${file} has no such line: ${line}`);
    writeFileSync(join(copy, file), text.replace(line, other));
  }
  execFileSync('npm', ['run', '--silent', 'schema', '--', '--write'], { cwd: copy, stdio: 'inherit' });
});
afterAll(() => rmSync(copy, { recursive: true }));

test(`a mode touches ${FILES_MAX} files at most, and what is generated`, () => {
  const names = globSync(['{src,config,charts}/**/*.*', 'scripts/*.ts', 'docs/reference.md'], { cwd: copy });
  const changed = names.filter((name) => {
    const before = join(ROOT, name);
    return !existsSync(before) || readFileSync(join(copy, name), 'utf8') !== readFileSync(before, 'utf8');
  });
  expect(changed.filter((name) => name.startsWith('src/')).length).toBeLessThanOrEqual(FILES_MAX);
  expect(changed.toSorted()).toEqual([
    'charts/endpoint-syncer/values.schema.json',
    'config/schema.json',
    'docs/reference.md',
    'src/syncer/patch/compile.ts',
    'src/syncer/patch/patch-schema.ts',
    'src/syncer/patch/prefix.ts',
  ]);
});

test('no type of another file has to be changed', () => {
  writeFileSync(
    join(copy, 'tsconfig.src.json'),
    JSON.stringify({ extends: './tsconfig.json', include: ['src'] }),
  );
  const args = ['--noEmit', '-p', 'tsconfig.src.json'];
  const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), args, {
    cwd: copy,
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([0, '']);
});

test('it is checked, applied in both directions, traced, and part of the version of the rules', () => {
  writeFileSync(join(copy, 'src/use.ts'), USE);
  const printed = execFileSync(process.execPath, ['--no-warnings', '--no-node-snapshot', 'src/use.ts'], {
    cwd: copy,
    encoding: 'utf8',
  });
  const modes = 'expression, labels, prefix or reference';
  expect(JSON.parse(printed)).toEqual({
    toHost: ['prefix', 'team-b'],
    toVirtual: ['prefix', 'b'],
    failed: ['prefix', 'must be a text'],
    none: [`patches[0] need to use one of: ${modes}`],
    two: [`patches[0] can only use one of: ${modes}`],
    areVersionsDifferent: true,
  });
});
