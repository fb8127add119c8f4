/** Referenced kinds on two clusters in memory. */

import { silentLogger } from '../../../src/base/logger.ts';
import { ClusterScopedError } from '../../../src/kube/discovery.ts';
import { ServerHistory } from '../../../src/kube/informer/list-watch.ts';
import { MemoryClient, MemoryCluster, qualifiedPlural } from '../../../src/kube/memory-cluster.ts';
import { SECRETS, type KubeObject, type Resource } from '../../../src/kube/object.ts';
import { TerminalError } from '../../../src/base/errors.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import { CopyOwner } from '../../../src/syncer/reconcile/environment.ts';
import { ExpectedDeletions } from '../../../src/syncer/reconcile/expected-deletions.ts';
import { createMetrics } from '../../../src/syncer/metrics/metrics.ts';
import type { ReferenceEnvironment } from '../../../src/syncer/references/environment.ts';
import { kindPolicy, resolveNamedKinds } from '../../../src/syncer/references/referenced-kind.ts';
import { createTranslators } from '../../../src/syncer/translation.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { WITH_REFERENCES } from '../memory-world.ts';

export function kindWorld() {
  const clock = new FakeClock();
  const clusterOf = (name: ClusterName) => new MemoryCluster({ name, now: () => clock.now() });
  const clusters = { virtual: clusterOf('virtual'), host: clusterOf('host') };
  const config = configOf(WITH_REFERENCES);
  const clientOf = (name: ClusterName) => new MemoryClient(clusters[name], { manager: 'endpoint-syncer' });
  const metrics = createMetrics({ monotonicMs: () => clock.monotonicMs(), version: '0' });
  const state = { isServed: true, isClusterScoped: false, missing: -1 };
  const resolve = async (apiVersion: string, kind: string): Promise<Resource> => {
    if (state.isClusterScoped) throw new ClusterScopedError(apiVersion, kind, 'host');
    if (apiVersion === 'v1' && kind === 'Secret' && state.isServed) return SECRETS;
    throw new TerminalError(`${apiVersion} ${kind} is not served`);
  };
  const discovery = { resolve, resolveNamespaced: resolve };
  const environment: ReferenceEnvironment = {
    config,
    ...createTranslators(config),
    clients: { virtual: clientOf('virtual'), host: clientOf('host') },
    servers: { virtual: new ServerHistory(), host: new ServerHistory() },
    owner: new CopyOwner(undefined, async () => undefined),
    expectedDeletions: new ExpectedDeletions(clock),
    recorder: { event: () => undefined, flush: async () => undefined },
    dryRun: undefined,
    clock,
    random: () => 0.5,
    logger: silentLogger,
    objection: async () => undefined,
    discoveries: { virtual: discovery, host: discovery },
    metrics: {
      ...metrics,
      sync: { ...metrics.sync, kindsMissing: (count) => void (state.missing = count) },
    },
  };
  const stopping = new AbortController();
  return {
    clock,
    environment,
    state,
    signal: stopping.signal,
    /** The kinds that the patches of the configuration name. */
    named: () => resolveNamedKinds(kindPolicy(config.sync), environment.discoveries, () => undefined, {}),
    store: (cluster: ClusterName, object: KubeObject) =>
      clusters[cluster].load(qualifiedPlural(SECRETS), object),
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await settle();
    },
  };
}
