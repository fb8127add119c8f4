/** A new field of the configuration stands in the schema, in its use, and in the example. Everything else follows, or is generated. */

import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const COPIED = ['src', 'scripts', 'config', 'charts', 'docs/reference.md', 'package.json', 'tsconfig.json'];

/** File, a line of it, and what is added after that line. */
const BY_HAND = [
  [
    'src/syncer/config/schema-syncer.ts',
    "  workers: count('Number of objects that are synced concurrently.', { min: 1, max: 256 }, 10),\n",
    "  burst: count('Number of objects that are synced without a pause.', { min: 1, max: 9 }, 3),\n" +
      "  spool: path('Folder of what waits.'),\n",
  ],
  ['config/endpoint-syncer.yaml', '  workers: 10\n', '  burst: 3\n  spool: ""\n'],
] as const;

const USE = `
import { parseConfig } from './cli/config/parse.ts';
import { type Config, configurationHash, diffConfig, withLiveChanges } from './syncer/config/config.ts';

const parse = (burst: string | undefined, sets: readonly string[] = []) =>
  parseConfig(
    { text: 'endpointSyncer: {name: a, spool: waiting}', file: 'f', folder: '/in' },
    { env: {}, flags: burst === undefined ? {} : { burst }, sets },
  );
const valid = (...input: Parameters<typeof parse>): Config => {
  const { config } = parse(...input);
  if (config === undefined) throw new Error('invalid');
  return config;
};
const wait = (burst: number): number => burst;
const [before, after] = [valid(undefined), valid('4')];
process.stdout.write(
  JSON.stringify({
    byDefault: wait(before.burst),
    byFlag: wait(after.burst),
    path: before.spool,
    bySet: wait(valid(undefined, ['endpointSyncer.burst=5']).burst),
    rejected: parse('10').problems.map(({ file, path, message }) => [file, path, message]),
    misspelt: parse(undefined, ['endpointSyncer.brust=5']).problems.map(({ message }) => message),
    diff: diffConfig(before, after),
    afterReload: wait(withLiveChanges(before, after).burst),
    isOtherHash: configurationHash(before) !== configurationHash(after),
  }),
);
`;

let copy = '';
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'endpoint-syncer-field-'));
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const [file, line, added] of BY_HAND) {
    const text = readFileSync(join(copy, file), 'utf8');
    if (!text.includes(line)) throw new Error(`${file} has no such line: ${line}`);
    writeFileSync(join(copy, file), text.replace(line, `${line}${added}`));
  }
  execFileSync('npm', ['run', '--silent', 'schema', '--', '--write'], { cwd: copy, stdio: 'inherit' });
  writeFileSync(join(copy, 'src/use.ts'), USE);
});
afterAll(() => rmSync(copy, { recursive: true }));

test('two files change by hand, and what is generated', () => {
  const names = globSync(['{src,config,charts}/**/*.*', 'scripts/*.ts', 'docs/reference.md'], { cwd: copy });
  const changed = names.filter((name) => {
    const text = readFileSync(join(copy, name), 'utf8');
    return name !== 'src/use.ts' && text !== readFileSync(join(ROOT, name), 'utf8');
  });
  expect(changed.toSorted()).toEqual([
    'charts/endpoint-syncer/values.schema.json',
    'config/endpoint-syncer.yaml',
    'config/schema.json',
    'docs/reference.md',
    'src/cli/config/flag-fields.json',
    'src/syncer/config/schema-syncer.ts',
  ]);
});

test('its type, default, flag, messages and reload follow', () => {
  writeFileSync(
    join(copy, 'tsconfig.use.json'),
    JSON.stringify({ extends: './tsconfig.json', include: [], files: ['src/use.ts'] }),
  );
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['--noEmit', '-p', 'tsconfig.use.json'], {
    cwd: copy,
    stdio: 'inherit',
  });
  const printed = execFileSync(process.execPath, ['src/use.ts'], { cwd: copy, encoding: 'utf8' });
  expect(JSON.parse(printed)).toEqual({
    byDefault: 3,
    byFlag: 4,
    path: '/in/waiting',
    bySet: 5,
    rejected: [['--burst', 'endpointSyncer.burst', 'must be at most 9, found 10']],
    misspelt: ['unknown key "brust", did you mean "burst"?'],
    diff: { live: [], restart: ['endpointSyncer.burst'] },
    afterReload: 3,
    isOtherHash: true,
  });
});

test('an editor, the chart and the reference page know it', () => {
  const row = '| `endpointSyncer.burst` | `3` | Number of objects that are synced without a pause. |';
  expect(readFileSync(join(copy, 'docs/reference.md'), 'utf8').split('\n')).toContain(row);
  for (const file of ['config/schema.json', 'charts/endpoint-syncer/values.schema.json']) {
    const schema = readFileSync(join(copy, file), 'utf8');
    expect(JSON.parse(/"burst": (\{[^}]*\})/u.exec(schema)?.[1] ?? '{}')).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 9,
      default: 3,
      description: 'Number of objects that are synced without a pause.',
    });
  }
});
