/** Both clusters of a daemon, embedded, and the kubeconfig files that its configuration names. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';

export interface ClusterPair extends AsyncDisposable {
  /** The section `endpointSyncer` of a configuration that connects to them. */
  readonly section: string;
}

/** `folder`: where the kubeconfigs are written. */
export async function startClusterPair(folder: string): Promise<ClusterPair> {
  await using stack = new AsyncDisposableStack();
  const virtual = stack.use(await startEmbeddedCluster({ name: 'virtual' }));
  const host = stack.use(await startEmbeddedCluster({ name: 'host' }));
  for (const { name, kubeconfig } of [virtual, host]) writeFileSync(join(folder, name), kubeconfig);
  const clusters = stack.move();
  return {
    section: `endpointSyncer:
  name: vc
  virtual: {kubeconfig: ${join(folder, 'virtual')}}
  host: {kubeconfig: ${join(folder, 'host')}, namespace: default}
  http: {bindAddress: "127.0.0.1:0"}
`,
    [Symbol.asyncDispose]: () => clusters.disposeAsync(),
  };
}
