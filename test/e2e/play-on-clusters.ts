/** Plays pages, one after the other, on two real clusters of their own. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { packedEnvironment } from '../docs/packed-install.ts';
import { playPages, type PlayedCommand } from '../docs/session.ts';
import { freePorts } from '../support/free-ports.ts';
import { selfContainedKubeconfig, startRealClusters, type RealClusters } from './clusters.ts';
import { helmProgram } from './deploy/helm.ts';
import { PodRunner } from './deploy/pod-runner.ts';

export async function playOnClusters(pages: readonly string[]): Promise<PlayedCommand[]> {
  await using clusters = await startRealClusters({ hasWorkloads: true });
  await prepareHost(clusters);
  const { virtual, host, kubectl } = clusters;
  await using _pods = new PodRunner({
    cluster: host,
    namespace: 'team-a',
    entrypoint: ['endpoint-syncer'],
    env: await packedEnvironment(),
    addresses: { 'https://my-vcluster.team-a': virtual.url },
  });
  const files = {
    'virtual.kubeconfig': readFileSync(virtual.kubeconfigPath, 'utf8'),
    'host.kubeconfig': readFileSync(host.kubeconfigPath, 'utf8'),
  };
  return await playWithKubectl(pages, kubectl, files);
}

/** The host namespaces of the pages, and the Secret that vCluster writes into the first one. */
async function prepareHost({ kubectl, host, virtual }: RealClusters): Promise<void> {
  const run = (...args: readonly string[]) =>
    promisify(execFile)(kubectl, [`--kubeconfig=${host.kubeconfigPath}`, ...args]);
  for (const namespace of ['team-a', 'team-b']) await run('create', 'namespace', namespace);
  const secret = [
    'secret',
    'generic',
    'vc-my-vcluster',
    `--from-literal=config=${selfContainedKubeconfig(virtual)}`,
  ];
  await run('-n', 'team-a', 'create', ...secret);
}

/** In an empty folder with these files; the ports that pages name may be taken here. */
export async function playWithKubectl(
  pages: readonly string[],
  kubectl: string,
  files: Readonly<Record<string, string>> = {},
): Promise<PlayedCommand[]> {
  const [api, metrics] = await freePorts(2);
  const env = await packedEnvironment([dirname(kubectl), dirname(await helmProgram())]);
  const replace = { '127.0.0.1:8443': `127.0.0.1:${api}`, '127.0.0.1:8080': `127.0.0.1:${metrics}` };
  return playPages({ pages, env, replace, files });
}
