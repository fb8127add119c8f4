/** A new field of the configuration stands in the schema, in its use, and in the example. Everything else follows, or is generated. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { CopiedTree } from '../../support/copied-tree.ts';

/** File, a line of it, and the same line with what is added. */
const BY_HAND = [
  [
    'src/syncer/config/schema-syncer.ts',
    "  workers: count('Number of objects that are synced concurrently.', { min: 1, max: 256 }, 10),\n",
    "$&  burst: count('Number of objects that are synced without a pause.', { min: 1, max: 9 }, 3),\n" +
      "  spool: path('Folder of what waits.'),\n",
  ],
  ['config/endpoint-syncer.yaml', '  workers: 10\n', '$&  burst: 3\n  spool: ""\n'],
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

let copy: CopiedTree;
beforeAll(() => {
  copy = new CopiedTree(BY_HAND);
});
afterAll(() => copy[Symbol.dispose]());

test('two files change by hand, and what is generated', () => {
  expect(copy.changed()).toEqual([
    'charts/endpoint-syncer/values.schema.json',
    'config/endpoint-syncer.yaml',
    'config/schema.json',
    'docs/reference.md',
    'src/cli/config/flag-fields.json',
    'src/syncer/config/schema-syncer.ts',
  ]);
});

test('its type, default, flag, messages and reload follow', () => {
  copy.write('src/use.ts', USE);
  expect(copy.typeErrors({ include: [], files: ['src/use.ts'] })).toBe('');
  expect(copy.run('src/use.ts')).toEqual({
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
  expect(copy.read('docs/reference.md').split('\n')).toContain(row);
  for (const file of ['config/schema.json', 'charts/endpoint-syncer/values.schema.json']) {
    const schema = copy.read(file);
    expect(JSON.parse(/"burst": (\{[^}]*\})/u.exec(schema)?.[1] ?? '{}')).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 9,
      default: 3,
      description: 'Number of objects that are synced without a pause.',
    });
  }
});
