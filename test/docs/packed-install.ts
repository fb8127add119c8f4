/** The package as users install it: `npm pack`, then `npm install --global` into an empty prefix, once for each content. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'endpoint-syncer-packed');
const run = promisify(execFile);

let installed: Promise<string> | undefined;

/** The prefix; its `bin` has the command. Takes about half a minute when a source has changed. */
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

async function install(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-pack-'));
  try {
    const { stdout } = await npm(['pack', '--silent', '--pack-destination', folder]);
    const tarball = join(folder, stdout.trim().split('\n').at(-1) ?? '');
    const prefix = join(CACHE, createHash('sha256').update(readFileSync(tarball)).digest('hex').slice(0, 16));
    if (existsSync(prefix)) return prefix;
    const fresh = join(folder, 'prefix');
    // No script of a dependency has to run: isolated-vm ships prebuilt binaries.
    await npm(['install', '--global', '--ignore-scripts', '--prefer-offline', '--prefix', fresh, tarball]);
    rmSync(CACHE, { recursive: true, force: true });
    mkdirSync(CACHE, { recursive: true });
    await run('cp', ['-r', fresh, `${prefix}.part`]); // another file system, perhaps
    renameSync(`${prefix}.part`, prefix);
    return prefix;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function npm(args: readonly string[]): Promise<{ stdout: string }> {
  return run('npm', [...args, '--no-audit', '--no-fund'], { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 });
}
