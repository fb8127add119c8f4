/** A world of a fleet whose clusters are kube-apiservers: one host, and one for each member. */

import { FleetWorld, type FleetCluster } from '../scenarios/fleet-world.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import {
  selfContainedKubeconfig,
  startRealClusters,
  type RealCluster,
  type RealClusters,
  type StartOptions,
} from './clusters.ts';

export interface RealFleet {
  readonly world: FleetWorld;
  readonly host: RealClusters;
  /** The API server of a member, by index. */
  readonly server: (index: number) => RealClusters;
}

/** `stack` ends what is started. */
export async function startRealFleet(
  stack: AsyncDisposableStack,
  count: number,
  hostOptions: StartOptions = {},
): Promise<RealFleet> {
  const host = stack.use(await startRealClusters({ ...hostOptions, virtual: false }));
  const servers: RealClusters[] = [];
  const started = async (): Promise<RealClusters> => stack.use(await startRealClusters({ host: false }));
  // Two at a time: each start takes seconds of processor time.
  while (servers.length < count) servers.push(...(await Promise.all([started(), started()])));
  const server = (index: number): RealClusters => {
    const found = servers[index];
    if (found === undefined) throw new Error(`there is no server ${index}`);
    return found;
  };
  const opened = (cluster: RealCluster): FleetCluster => ({
    kubeconfig: selfContainedKubeconfig(cluster),
    client: stack.use(new TestCluster(cluster.kubeconfigPath)),
  });
  const world = stack.use(
    new FleetWorld({
      host: opened(host.host),
      virtual: (index) => Promise.resolve(opened(server(index).virtual)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
  );
  return { world, host, server };
}
