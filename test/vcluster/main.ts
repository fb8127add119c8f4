/**
 * `npm run test:vcluster`: the suite with whole vClusters, which are built from the clone of their repository that `VCLUSTER_SOURCE` names.
 * Without one it is skipped. Arguments are vitest's.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { kubeAssets } from '../e2e/assets.ts';
import { helmProgram } from '../e2e/deploy/helm.ts';
import { READERS, SliceReader } from '../e2e/slice-reader.ts';
import { VOLUMES } from './pod.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Of its own control plane. It names a controller (cloud-node-lifecycle) that the controller manager of 1.37 refuses to start with. */
const KUBE_OF_VCLUSTER = 'v1.36.3';
const MOUNT_POINTS = ['/run/netns', ...VOLUMES];

const source = process.env['VCLUSTER_SOURCE'] ?? '';
const commit = source === '' ? undefined : commitOf(source);
if (commit === undefined) {
  process.stdout.write(
    `skipped: VCLUSTER_SOURCE ${source === '' ? 'is not set' : `(${source}) is no git clone`}; it names a clone of github.com/loft-sh/vcluster\n`,
  );
} else if (process.getuid?.() !== 0) {
  process.stdout.write(
    'skipped: the volumes of vCluster’s Pod are mounted at their paths, which needs root\n',
  );
} else {
  process.exitCode = await run(source, commit);
}

function commitOf(folder: string): string | undefined {
  try {
    const args = ['-C', folder, 'rev-parse', '--short', 'HEAD'];
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** Programs are built first: the namespaces have no network but their own. */
async function run(clone: string, version: string): Promise<number> {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const assets = process.env['VCLUSTER_ASSETS'] ?? join(cache, 'endpoint-syncer', 'vcluster', version);
  if (!existsSync(join(assets, 'vcluster'))) {
    process.stderr.write(`building vCluster ${version} into ${assets}, once\n`);
    execFileSync(join(import.meta.dirname, 'build.sh'), [clone, assets], { stdio: 'inherit' });
  }
  // Go keeps what they are made of.
  for (const name of READERS) SliceReader.build(name);
  const env = {
    ...process.env,
    VCLUSTER_ASSETS: assets,
    KUBEBUILDER_ASSETS: await kubeAssets(),
    VIRTUAL_ASSETS: await kubeAssets({ ...process.env, KUBE_VERSION: KUBE_OF_VCLUSTER }),
    HELM: await helmProgram(),
  };
  const created = MOUNT_POINTS.filter((path) => mkdirSync(path, { recursive: true }) !== undefined);
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-vcluster-'));
  try {
    const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const vitest = ['npx', 'vitest', 'run', '--config', 'vitest.vcluster.config.ts'];
    const args = [
      ...namespaces,
      join(import.meta.dirname, 'node.sh'),
      folder,
      ...vitest,
      ...process.argv.slice(2),
    ];
    return spawnSync('unshare', args, { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    removeEmpty(created);
  }
}

function removeEmpty(folders: readonly string[]): void {
  for (let path of folders.toReversed()) {
    try {
      for (; path !== '/'; path = dirname(path)) rmdirSync(path);
    } catch {
      // it contains something else
    }
  }
}
