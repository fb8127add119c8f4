/** Embedded API servers in a process of their own, which stand for virtual clusters: `node virtual-clusters.ts COUNT` prints their kubeconfigs as JSON, and ends with its input. */

import { startEmbeddedCluster } from '../src/embedded-cluster/embedded-cluster.ts';

const count = Number(process.argv[2] ?? 1);
const kubeconfigs: string[] = [];
for (let at = 0; at < count; at++)
  kubeconfigs.push((await startEmbeddedCluster({ name: `virtual-${at}`, token: `token-${at}` })).kubeconfig);
process.stdout.write(`${JSON.stringify(kubeconfigs)}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
