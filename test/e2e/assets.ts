/** The folder of the Kubernetes programs: `KUBEBUILDER_ASSETS`, or one into which they are built once from Go modules, outside the checkout. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const KUBE = join(import.meta.dirname, 'kube');
const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'];

/** The folder with the programs. The first build takes about five minutes on two cores. */
export async function kubeAssets(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const given = env['KUBEBUILDER_ASSETS'];
  if (given) {
    const missing = PROGRAMS.filter((program) => !existsSync(join(given, program)));
    if (missing.length === 0) return given;
    throw new Error(
      `KUBEBUILDER_ASSETS=${given} lacks ${missing.join(', ')}: add them, or unset it to have everything built with Go`,
    );
  }
  const folder = join(cacheRoot(env), pinnedVersion());
  if (isBuilt(folder)) return folder;
  process.stderr.write(`building ${PROGRAMS.join(', ')} ${pinnedVersion()} into ${folder}, once\n`);
  await build(folder);
  return folder;
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'endpoint-syncer', 'kube');
}

/** The version of k8s.io/kubernetes that go.mod pins. */
function pinnedVersion(): string {
  const version = /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(KUBE, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${KUBE}/go.mod does not pin k8s.io/kubernetes`);
  return version;
}

/** build.sh writes NAME.version after NAME is complete. */
function isBuilt(folder: string): boolean {
  return PROGRAMS.every((program) => existsSync(join(folder, `${program}.version`)));
}

async function build(folder: string): Promise<void> {
  try {
    await promisify(execFile)(join(KUBE, 'build.sh'), [folder], { maxBuffer: 64 * 1024 * 1024 });
  } catch (cause) {
    throw new Error(
      'the Kubernetes programs could not be built: install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a folder with ' +
        `${PROGRAMS.join(', ')}\n${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
