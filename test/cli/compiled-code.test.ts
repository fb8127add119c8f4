/** The code of the built program, kept from one start for the next one. */

import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { testFolder } from '../support/test-folder.ts';

const MODULE = join(import.meta.dirname, '..', '..', 'src', 'cli', 'compiled-code.ts');
const run = promisify(execFile);
const { folder, write } = testFolder();

/** Runs a program of `text`, as a command or as the daemon does. */
async function start(name: string, text: string, isDaemon = true): Promise<{ said: string; kept: string[] }> {
  const program = write(`${name}.cjs`, text);
  const cache = join(folder, `${name}-cache`);
  mkdirSync(cache, { recursive: true });
  const main = `const { loadCompiled, keepCompiledCode } = await import(${JSON.stringify(MODULE)});
loadCompiled(${JSON.stringify(program)});
${isDaemon ? 'keepCompiledCode();' : ''}`;
  const env = { ...process.env, NODE_COMPILE_CACHE: cache };
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', main], { env });
  const files = readdirSync(cache, { recursive: true, encoding: 'utf8' });
  const kept = files.filter((path) => /\.cjs-/u.test(path)).map((path) => join(cache, path));
  return { said: stdout, kept };
}

const PROGRAM = `const { dirname } = require('node:path');
const said = () => dirname(module.filename) === __dirname && require.cache[__filename] === module;
exports.isWhole = said();
console.log(exports.isWhole);`;

const stateOf = (path = ''): number[] => [statSync(path).ino, statSync(path).size];

test.each([true, false])('the next start uses what is kept (of the daemon: %s)', async (isDaemon) => {
  const name = `whole-${isDaemon}`;
  const first = await start(name, PROGRAM, isDaemon);
  expect(first).toMatchObject({ said: 'true\n', kept: [expect.stringContaining(`${name}.cjs-`)] });
  const before = first.kept.map(stateOf);
  expect(await start(name, PROGRAM, false)).toEqual(first);
  expect(first.kept.map(stateOf)).toEqual(before);
});

test('the code of the daemon replaces that of a command, and is replaced by none', async () => {
  const command = (await start('daemon', PROGRAM, false)).kept.map(stateOf);
  const daemon = (await start('daemon', PROGRAM)).kept.map(stateOf);
  expect(daemon).not.toEqual(command);
  for (const isDaemon of [true, false])
    expect((await start('daemon', PROGRAM, isDaemon)).kept.map(stateOf)).toEqual(daemon);
});

test('what is cut off or damaged is compiled again', async () => {
  const { kept } = await start('damaged', PROGRAM);
  const path = kept[0] ?? '';
  const [, size = 0] = stateOf(path);
  truncateSync(path, size - 100);
  expect(await start('damaged', PROGRAM)).toEqual({ said: 'true\n', kept });
  expect(stateOf(path)[1]).toBe(size);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xff, size >> 1, (size >> 1) + 100));
  const before = stateOf(path);
  expect(await start('damaged', PROGRAM)).toEqual({ said: 'true\n', kept });
  expect(stateOf(path)).not.toEqual(before);
});

test('another text of the same length is compiled', async () => {
  await start('other', PROGRAM);
  const { said, kept } = await start(
    'other',
    PROGRAM.replace('log(exports.isWhole)', 'log(exports.isEmpty)'),
  );
  expect([said, kept.length]).toEqual(['undefined\n', 2]);
});

test('a module can be imported on demand', async () => {
  const text = `import('node:path').then(({ sep }) => console.log(sep));`;
  expect((await start('dynamic', text)).said).toBe('/\n');
});
