/** The package as users install it: `npm pack`, then `npm install --global` into an empty prefix, once for each content of the sources. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'endpoint-syncer-packed');
/** Everything that the installed program depends on. */
const SOURCES = [
  'bin',
  'config',
  'src',
  'scripts/build.ts',
  'scripts/published-manifest.ts',
  'package.json',
  'package-lock.json',
];
const INSTALL_MAX_MS = 300_000;
const run = promisify(execFile);

let installed: Promise<string> | undefined;

/** The prefix; its `bin` has the command. Takes about half a minute if a source has changed. */
export function packedInstall(): Promise<string> {
  installed ??= install();
  return installed;
}

/** An environment in which `endpoint-syncer` is the installed package and runs on the Node.js of the tests. */
export async function packedEnvironment(folders: readonly string[] = []): Promise<NodeJS.ProcessEnv> {
  const bin = join(await packedInstall(), 'bin');
  const {
    ENDPOINT_SYNCER_TOKEN: _token,
    ENDPOINT_SYNCER_CONFIG: _config,
    KUBECONFIG: _kubeconfig,
    ...env
  } = process.env;
  const path = [bin, ...folders, dirname(process.execPath), env['PATH'] ?? ''].join(delimiter);
  return { ...env, PATH: path };
}

/** Test files run in several processes, and `npm pack` builds `dist/` in the checkout: one of them packs, the others wait. */
async function install(): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  using _lock = await lockOf(join(CACHE, 'lock'));
  // After the lock, because packing changes package.json for its time.
  const prefix = join(CACHE, contentKey());
  if (!existsSync(prefix)) await packInto(prefix);
  return prefix;
}

function contentKey(): string {
  const hash = createHash('sha256').update(process.version);
  for (const source of SOURCES) {
    for (const file of filesOf(join(ROOT, source)).toSorted()) hash.update(file).update(readFileSync(file));
  }
  return hash.digest('hex').slice(0, 16);
}

function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function lockOf(path: string): Promise<Disposable> {
  const isTaken = (): boolean => {
    try {
      mkdirSync(path);
      return false;
    } catch {
      // Its owner may have been killed.
      const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (ageMs > INSTALL_MAX_MS) rmSync(path, { recursive: true, force: true });
      return true;
    }
  };
  await eventually(isTaken, (taken) => !taken, { timeoutMs: 2 * INSTALL_MAX_MS });
  return { [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function packInto(prefix: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-pack-'));
  try {
    const { stdout } = await npm(['pack', '--silent', '--pack-destination', folder]);
    const tarball = join(folder, stdout.trim().split('\n').at(-1) ?? '');
    const part = `${prefix}.part`;
    rmSync(part, { recursive: true, force: true });
    // No script of a dependency has to run: isolated-vm ships prebuilt binaries.
    await npm(['install', '--global', '--ignore-scripts', '--prefer-offline', '--prefix', part, tarball]);
    removeOldInstalls();
    renameSync(part, prefix);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Another test run may still use an install of the last hour. */
function removeOldInstalls(): void {
  for (const name of readdirSync(CACHE).filter((entry) => entry !== 'lock')) {
    const path = join(CACHE, name);
    if (Date.now() - statSync(path).mtimeMs > 3_600_000) rmSync(path, { recursive: true, force: true });
  }
}

function npm(args: readonly string[]): Promise<{ stdout: string }> {
  return run('npm', [...args, '--no-audit', '--no-fund'], { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 });
}
