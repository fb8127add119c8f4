/** The folder of the Kubernetes programs: `KUBEBUILDER_ASSETS`, or one into which they are built once from Go modules, outside the checkout. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../src/base/errors.ts';

const KUBE = join(import.meta.dirname, 'kube');
const SERVERS = ['kube-apiserver', 'kube-controller-manager'];
const PROGRAMS = ['etcd', ...SERVERS, 'kubectl'];

/**
 * The folder with the programs. The first build takes about five minutes on two cores. With `KUBE_VERSION`, such as v1.32.13, kube-apiserver and
 * kube-controller-manager have that version, for the compatibility tests.
 */
export async function kubeAssets(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const given = env['KUBEBUILDER_ASSETS'];
  const pinned = given === undefined || given === '' ? await pinnedAssets(env) : checked(given);
  const version = env['KUBE_VERSION'];
  return version === undefined ? pinned : assetsOfVersion(version, pinned, env);
}

function checked(folder: string): string {
  const missing = PROGRAMS.filter((program) => !existsSync(join(folder, program)));
  if (missing.length === 0) return folder;
  throw new Error(
    `KUBEBUILDER_ASSETS=${folder} lacks ${missing.join(', ')}: add them, or unset it to have everything built with Go`,
  );
}

async function pinnedAssets(env: NodeJS.ProcessEnv): Promise<string> {
  const version = pinnedVersion();
  const folder = join(cacheRoot(env), version);
  if (PROGRAMS.some((program) => !isBuilt(folder, program))) {
    process.stderr.write(`building ${PROGRAMS.join(', ')} ${version} into ${folder}, once\n`);
    await build('build.sh', [folder]);
  }
  return folder;
}

async function assetsOfVersion(version: string, pinned: string, env: NodeJS.ProcessEnv): Promise<string> {
  const folder = join(cacheRoot(env), version);
  if (!SERVERS.every((program) => isBuilt(folder, program))) {
    process.stderr.write(`building ${SERVERS.join(', ')} ${version} into ${folder}, once\n`);
    await build('build-version.sh', [version, folder]);
  }
  for (const program of PROGRAMS) {
    if (!existsSync(join(folder, program))) symlinkSync(join(pinned, program), join(folder, program));
  }
  return folder;
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'endpoint-syncer', 'kube');
}

/** The version of k8s.io/kubernetes that go.mod pins. */
export function pinnedVersion(): string {
  const version = /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(KUBE, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${KUBE}/go.mod does not pin k8s.io/kubernetes`);
  return version;
}

/** The scripts write NAME.version after NAME is complete. */
function isBuilt(folder: string, program: string): boolean {
  return existsSync(join(folder, `${program}.version`));
}

async function build(script: string, args: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)(join(KUBE, script), args, { maxBuffer: 64 * 1024 * 1024 });
  } catch (cause) {
    throw new Error(
      'the Kubernetes programs could not be built: install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a folder with ' +
        `${PROGRAMS.join(', ')}\n${messageOf(cause)}`,
      { cause },
    );
  }
}
