/**
 * The compiled code of the built program, kept for the next start. The cache of Node.js has what V8 compiles when it loads a file; here are also the
 * functions that a start has called: compiling them takes a fifth of its processor time until the first copy.
 */

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, flushCompileCache, getCompileCacheDir, Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { constants, Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { resetHeapGrowth } from './heap-growth.ts';

interface Loaded {
  readonly script: Script;
  /** Where its code is to be kept. */
  readonly file: string;
}

/** Undefined: what is kept has the functions of a start of the daemon. */
let loaded: Loaded | undefined;

/** Loads a CommonJS module of Latin-1 text, which may not be loaded yet. The folder is Node's, of one version and its flags; without it, nothing is kept. */
export function loadCompiled(path: string): void {
  const source = readFileSync(path);
  const folder = getCompileCacheDir();
  const file = folder && join(folder, `${basename(path)}-${crc32(source)}`);
  const kept = file === undefined ? undefined : readCompiled(file);
  const script = new Script(Module.wrap(source.toString('latin1')), {
    filename: path,
    cachedData: kept?.code,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const isUsed = script.cachedDataRejected === false;
  if (file !== undefined && !(isUsed && kept?.isOfDaemon === true)) loaded = { script, file };
  if (!isUsed) process.once('exit', () => keep(false));
  const module = new Module(path);
  module.filename = path;
  const require = createRequire(path);
  require.cache[path] = module;
  const run = script.runInThisContext() as (...scope: readonly unknown[]) => void; // as Node wraps it
  run(module.exports, require, module, path, dirname(path));
  module.loaded = true;
}

/** Called once the daemon has run what every start runs. Resets the growth of the heap. */
export function keepCompiledCode(): void {
  flushCompileCache();
  keep(true);
}

function keep(isOfDaemon: boolean): void {
  if (loaded === undefined) return;
  const { script, file } = loaded;
  loaded = undefined;
  const written = `${file}.${process.pid}`;
  try {
    writeFileSync(written, '', { flag: 'wx' });
    // V8 rejects code that was compiled with other flags.
    resetHeapGrowth();
    const code = script.createCachedData();
    writeFileSync(written, Buffer.concat([headOf(code, isOfDaemon), code]));
    renameSync(written, file);
  } catch {
    // The folder cannot be written, as in an image, or has no space: the next start compiles again.
    rmSync(written, { force: true });
  }
}

/** A multiple of eight, to which V8 aligns code. */
const HEAD_BYTES = 8;

/** Undefined for a file that is missing, or that was cut off: V8 would run what it has. */
function readCompiled(file: string): { readonly code: Buffer; readonly isOfDaemon: boolean } | undefined {
  try {
    const bytes = readFileSync(file);
    const code = bytes.subarray(HEAD_BYTES);
    const isOfDaemon = bytes.readUInt32LE(4) === 1;
    const isWhole = headOf(code, isOfDaemon).equals(bytes.subarray(0, HEAD_BYTES));
    return isWhole ? { code, isOfDaemon } : undefined;
  } catch {
    return undefined;
  }
}

function headOf(code: Buffer, isOfDaemon: boolean): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES);
  bytes.writeUInt32LE(crc32(code));
  bytes.writeUInt32LE(isOfDaemon ? 1 : 0, 4);
  return bytes;
}
