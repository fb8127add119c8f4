/** Builds `dist/` for the package and the image: the program and its dependencies in a few files, and the licenses of what they contain. */

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { type BuildOptions, type OutputOptions, type Plugin, type RolldownOutput, build } from 'rolldown';

const ROOT = join(import.meta.dirname, '..');
const [SOURCE, TARGET] = [join(ROOT, 'src'), join(ROOT, 'dist')];
const GUEST = join(SOURCE, 'expressions/guest');

/** Bundled by `require` on first use: the bundler knows the name, but not what `createRequire` returns. */
const lazyModules: Plugin = {
  name: 'lazy-modules',
  transform: {
    filter: { code: 'const require = createRequire(import.meta.url);' },
    handler: (code) => code.replaceAll('const require = createRequire(import.meta.url);', ''),
  },
};

/** undici runs without it, and the connections of this program use HTTP/1.1. Loading it takes 5 MiB. */
const withoutHttp2: Plugin = {
  name: 'without-http2',
  resolveId: { filter: { id: /^node:http2$/ }, handler: (id) => `\0${id}` },
  load: { filter: { id: /^\0node:http2$/ }, handler: () => 'export const constants = {};' },
};

const OPTIONS = {
  cwd: ROOT,
  // Of sources alone.
  transform: { define: { 'import.meta.resolve': 'undefined' } },
  plugins: [lazyModules, withoutHttp2],
  onLog(_level, log) {
    throw new Error(`${log.code}: ${log.message}`);
  },
} satisfies BuildOptions;

const OUTPUT: OutputOptions = {
  dir: TARGET,
  // All in one folder, so that the paths of other files are relative to it.
  // Loading the modules of an ES program takes 30 ms of processor time more, and V8 cannot keep what one has compiled.
  format: 'cjs',
  entryFileNames: '[name].cjs',
  chunkFileNames: '[name].cjs',
  // V8 keeps a text with a single character beyond Latin-1 in two bytes per character.
  charset: 'ascii',
  // Stack traces have the names of functions, and each module begins with its path.
  minify: false,
  comments: { legal: false, annotation: false, jsdoc: false },
};

/** `run.cjs` has nearly all that a command loads. */
const MAIN = `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
require('./compiled-code.cjs').loadCompiled(require.resolve('./run.cjs'));
require('./main.cjs');
`;

rmSync(TARGET, { recursive: true, force: true });
const outputs = await build([
  {
    ...OPTIONS,
    platform: 'node',
    // A native addon, whose files the sandbox looks for.
    external: ['isolated-vm'],
    input: { main: join(SOURCE, 'main.ts'), 'compiled-code': join(SOURCE, 'cli/compiled-code.ts') },
    output: {
      ...OUTPUT,
      // One file for `run`, which costs less than many: what a command needs beyond it is in files of its own.
      codeSplitting: {
        groups: [
          { name: 'program', test: /src\/cli\/(?:compiled-code|heap-growth|program)\.ts$/, priority: 1 },
          { name: 'run', test: /src\/cli\/run\.ts$/ },
        ],
      },
    },
  },
  ...['apiserver/storage/sqlite/writer-thread', 'fleet/values-thread'].map((entry): BuildOptions => ({
    ...OPTIONS,
    platform: 'node',
    input: join(SOURCE, `${entry}.ts`),
    output: { ...OUTPUT, codeSplitting: false },
  })),
  ...(
    [
      ['node', 'cli/image-probe.ts', TARGET],
      ['browser', 'showcase/assets/main.js', join(TARGET, 'assets')],
    ] as const
  ).map(([platform, entry, dir]): BuildOptions => ({
    ...OPTIONS,
    platform,
    input: join(SOURCE, entry),
    output: { ...OUTPUT, dir, format: 'esm', entryFileNames: '[name].js', codeSplitting: false },
  })),
]);
writeFileSync(join(TARGET, 'main.js'), MAIN);
for (const name of ['page.html', 'page.css', 'examples.yaml'])
  cpSync(join(SOURCE, 'showcase/assets', name), join(TARGET, 'assets', name));
cpSync(join(SOURCE, 'shared-config/vcluster-defaults.json'), join(TARGET, 'vcluster-defaults.json'));
mkdirSync(join(TARGET, 'guest'));
for (const name of readdirSync(GUEST)) {
  const text = stripTypeScriptTypes(readFileSync(join(GUEST, name), 'utf8'));
  writeFileSync(join(TARGET, 'guest', name.replace(/\.ts$/, '.js')), text);
}
writeFileSync(join(TARGET, 'third-party-licenses.txt'), licensesOf(outputs));

/** For each bundled package a heading `name@version (license)`, and the license files beside and above its bundled modules. */
function licensesOf(bundles: readonly RolldownOutput[]): string {
  const packages = new Map<string, Set<string>>();
  const modules = bundles.flatMap(({ output }) =>
    output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : [])),
  );
  for (const id of modules.filter((module) => module.includes('/node_modules/'))) {
    const folders = foldersUpToPackage(id);
    const root = folders.at(-1) ?? '';
    packages.set(root, new Set([...(packages.get(root) ?? []), ...folders]));
  }
  return [...packages]
    .map(([root, folders]) => licenseOf(root, folders))
    .toSorted()
    .join('\n');
}

/** Ends with the nearest folder that has the manifest of a package; some packages have others for their ES modules. */
function foldersUpToPackage(file: string): string[] {
  const folders = [dirname(file)];
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder), folders.push(folder))
    if (existsSync(join(folder, 'package.json')) && manifestOf(folder).version !== undefined) return folders;
  throw new Error(`${file} is in no package`);
}

function licenseOf(root: string, folders: ReadonlySet<string>): string {
  const { name, version, license } = manifestOf(root);
  const files = [...folders].toSorted().flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => /^(?:licen[cs]e|copying|notice)(?!.*\.js$)/i.test(file))
      .toSorted()
      .map((file) => readFileSync(join(folder, file), 'utf8').trim()),
  );
  if (files.length === 0) throw new Error(`${name} has no license file`);
  return [`## ${name}@${version} (${license})`, ...files, ''].join('\n\n');
}

function manifestOf(folder: string): { name: string; version?: string; license?: string } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as ReturnType<typeof manifestOf>; // npm has read it
}
