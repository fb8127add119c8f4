/** A new mode of a patch stands in its own file, where patches are compiled, and in the schema of an entry. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { CopiedTree } from '../../support/copied-tree.ts';

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
    "    prefix: z.strictObject({ text: z.string() }).optional().meta({ description: 'A text before the value.' }),\n$&",
  ],
  ['src/syncer/patch/patch-schema.ts', "  [['labels'], 'object'],\n", "$&  [['prefix'], 'object'],\n"],
  [
    'src/syncer/patch/compile.ts',
    "import { labelsMode } from './labels-mode.ts';\n",
    "import { prefixMode } from './prefix.ts';\n$&",
  ],
  [
    'src/syncer/patch/compile.ts',
    '  if (config.labels !== undefined) return inBoth(labelsMode);\n',
    '$&  if (config.prefix !== undefined) return inBoth(prefixMode(config.prefix.text));\n',
  ],
] as const;

const USE = `
import { parsePatchFile } from './syncer/rehearsal/patches-alone.ts';
import { compilePatches } from './syncer/patch/compile.ts';
import { tracePatches } from './syncer/patch/trace.ts';
import { createPatchPipeline } from './syncer/patch/pipeline.ts';

const parse = (text: string) => parsePatchFile({ text, file: 'f' });
const messages = (text: string) => parse(text).problems.map(({ message }) => message);
const { patches } = parse('[{path: metadata.labels.a, prefix: {text: team-}}]');
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
    two: messages('[{path: a, prefix: {text: b}, labels: {}}]'),
    areVersionsDifferent:
      versionOf('[{path: metadata.labels.a, prefix: {text: b}}]') !== versionOf('[{path: metadata.labels.a, prefix: {text: c}}]'),
  }),
);
`;

let copy: CopiedTree;
beforeAll(() => {
  copy = new CopiedTree(BY_HAND, { 'src/syncer/patch/prefix.ts': MODE });
});
afterAll(() => copy[Symbol.dispose]());

test(`a mode touches ${FILES_MAX} files at most, and what is generated`, () => {
  const changed = copy.changed();
  expect(changed.filter((name) => name.startsWith('src/')).length).toBeLessThanOrEqual(FILES_MAX);
  expect(changed).toEqual([
    'charts/endpoint-syncer/values.schema.json',
    'config/schema.json',
    'docs/reference.md',
    'src/syncer/patch/compile.ts',
    'src/syncer/patch/patch-schema.ts',
    'src/syncer/patch/prefix.ts',
  ]);
});

test('no type of another file has to be changed', () => {
  expect(copy.typeErrors({ include: ['src'] })).toBe('');
});

test('it is checked, applied in both directions, traced, and part of the version of the rules', () => {
  copy.write('src/use.ts', USE);
  const modes = 'expression, labels, prefix or reference';
  expect(copy.run('src/use.ts')).toEqual({
    toHost: ['prefix', 'team-b'],
    toVirtual: ['prefix', 'b'],
    failed: ['prefix', 'must be a text'],
    none: [`patches[0] need to use one of: ${modes}`],
    two: [`patches[0] can only use one of: ${modes}`],
    areVersionsDifferent: true,
  });
});
