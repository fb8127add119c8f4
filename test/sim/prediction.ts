/** A rehearsal against the daemon: what it says of a world is what the daemon then writes, and afterwards it says nothing. */

import { isDeepStrictEqual } from 'node:util';
import { TerminalError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { withoutBookkeeping } from '../../src/syncer/translate/bookkeeping.ts';
import type { Discovery } from '../../src/kube/discovery.ts';
import { qualifiedPlural, type MemoryCluster } from '../../src/kube/memory-cluster.ts';
import { objectKey, SECRETS, type KubeObject, type Resource } from '../../src/kube/object.ts';
import type { ClusterName } from '../../src/kube/types.ts';
import { SYNCABLE_RESOURCES } from '../../src/syncer/kinds/synced-kinds.ts';
import { rehearse, type Change, type Rehearsal } from '../../src/syncer/rehearsal/rehearsal.ts';
import { seededRandom } from '../support/random.ts';
import { TrustedEvaluator } from '../syncer/patch/trusted-evaluator.ts';
import { simConfig, type Settings } from './daemon/sim-config.ts';
import { SimDaemon } from './daemon/sim-daemon.ts';
import { drawHistory } from './history/draw.ts';
import type { Operation, UserOperation } from './history/operations.ts';
import { seededHistory } from './history/seeded-history.ts';
import { Faults } from './world/faults.ts';
import { ServiceStorage } from './world/service-storage.ts';
import type { VirtualClock } from '../../src/base/clock.ts';
import { simClock } from './world/process-clock.ts';
import { SimCluster, type ServerWays } from './world/sim-cluster.ts';
import { User } from './world/user.ts';

type SimClusters = Readonly<Record<ClusterName, SimCluster>>;

const CONFIG_MAPS: Resource = { ...SECRETS, kind: 'ConfigMap', plural: 'configmaps' };
const RESOURCES: readonly Resource[] = [...SYNCABLE_RESOURCES, SECRETS, CONFIG_MAPS];
/** Every back-off of a first failure has ended by then. */
const SETTLE_MS = 10 * 60_000;
/** As a rehearsal judges: the newest version, without controllers. An earlier one deletes Endpoints, and what the host set on them, with a Service
 * that is created again. */
const SERVER: ServerWays = { deletesEndpoints: false, controllerLagMs: undefined, seed: 0 };

/** Users edit both sides while a daemon runs, and then while none runs. What differs between the prediction and the next daemon; empty: nothing. */
export async function predictionProblems(seed: number, steps: number): Promise<string[]> {
  const settings: Settings = {
    ...seededHistory(seed, 0).settings,
    hasOwner: false,
    hasLeaderElection: false,
    // Only a daemon that saw the deletion of a copy deletes the virtual object.
    deletesVirtual: false,
  };
  const random = seededRandom(seed ^ 0x9e4ea);
  const operations = drawHistory(random, { steps, daemons: 1, settings, isCalm: true });
  const clock = simClock();
  const clusters = {
    virtual: new SimCluster('virtual', clock, SERVER),
    host: new SimCluster('host', clock, SERVER),
  };
  const user = new User(clusters, () => settings);
  const half = Math.floor(operations.length / 2);
  for (const part of [operations.slice(0, half), operations.slice(half)]) {
    const isRunning = part[0] === operations[0];
    const daemon = isRunning ? startDaemon(clusters, clock, settings, random) : undefined;
    const startMs = clock.nowMs - (part[0]?.atMs ?? 0);
    for (const operation of part) {
      await advance(clock, startMs + operation.atMs);
      if (isUserOperation(operation)) user.perform(operation);
    }
    await advance(clock, clock.nowMs + SETTLE_MS);
    daemon?.crash();
  }
  const predicted = await rehearseNow(clusters, settings);
  const daemon = startDaemon(clusters, clock, settings, random);
  await advance(clock, clock.nowMs + SETTLE_MS);
  daemon.crash();
  await advance(clock, clock.nowMs + SETTLE_MS);
  const afterwards = await rehearseNow(clusters, settings);
  return [
    ...differences(predicted.clusters, clusters),
    ...afterwards.changes.filter(isVisible).map((change) => `afterwards still: ${described(change)}`),
  ].map((problem) => `prediction: ${problem}`);
}

function isUserOperation(operation: Operation): operation is Operation & UserOperation {
  return operation.kind !== 'trouble';
}

function startDaemon(
  clusters: SimClusters,
  clock: VirtualClock,
  settings: Settings,
  random: () => number,
): SimDaemon {
  const daemon = new SimDaemon({
    clusters,
    clock,
    random,
    faults: new Faults(seededRandom(1)),
    isDryRun: false,
    config: () => simConfig(settings),
    wrote: () => undefined,
    trace: () => undefined,
  });
  daemon.start();
  return daemon;
}

async function advance(clock: VirtualClock, toMs: number): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (clock.step(toMs));
}

function rehearseNow(clusters: SimClusters, settings: Settings): Promise<Rehearsal> {
  const collections = (cluster: ClusterName) =>
    RESOURCES.map((resource) => ({ resource, objects: clusters[cluster].list(resource.plural) }));
  const services = { virtual: new ServiceStorage('virtual'), host: new ServiceStorage('host') };
  return rehearse({
    config: simConfig(settings),
    clusters: { virtual: collections('virtual'), host: collections('host') },
    discoveries: { virtual: DISCOVERY, host: DISCOVERY },
    owner: undefined,
    admit: (plural, object, previous) =>
      plural === 'services' ? services.host.stored(object, previous) : object,
    createSandbox: async ({ programs, vcluster }) => {
      const evaluator = new TrustedEvaluator(programs, vcluster, 'immediately');
      return Object.assign(evaluator, {
        pids: [],
        define: () => undefined,
        forget: () => undefined,
        [Symbol.asyncDispose]: async () => undefined,
      });
    },
    nowMs: Date.UTC(2026, 0, 1),
  });
}

const resolve = async (_: string, kind: string): Promise<Resource> => {
  const found = RESOURCES.find((resource) => resource.kind === kind);
  if (found === undefined) throw new TerminalError(`no kind ${kind}`);
  return found;
};
const DISCOVERY: Discovery = { resolve, resolveNamespaced: resolve };

function differences(predicted: Readonly<Record<ClusterName, MemoryCluster>>, actual: SimClusters): string[] {
  return (['virtual', 'host'] as const).flatMap((cluster) =>
    RESOURCES.flatMap((resource) => {
      const [said, is] = [
        statesOf(predicted[cluster].list(qualifiedPlural(resource))),
        statesOf(actual[cluster].list(resource.plural)),
      ];
      return [...new Set([...said.keys(), ...is.keys()])].flatMap((key) =>
        isDeepStrictEqual(said.get(key), is.get(key))
          ? []
          : [
              `${cluster} ${resource.plural} ${key}: said ${JSON.stringify(said.get(key))}, is ${JSON.stringify(is.get(key))}`,
            ],
      );
    }),
  );
}

function statesOf(objects: readonly KubeObject[]): ReadonlyMap<string, JsonObject> {
  return new Map(objects.map((object) => [objectKey(object), visible(object)]));
}

/** Without bookkeeping and what an API server sets or allocates. */
function visible(object: KubeObject): JsonObject {
  const { metadata, ...content } = withoutBookkeeping(object);
  const {
    uid: _uid,
    resourceVersion: _version,
    creationTimestamp: _created,
    managedFields: _managed,
    ...rest
  } = metadata;
  const json = JSON.stringify({ ...content, metadata: rest }, (key, value: unknown) =>
    ['clusterIP', 'nodePort', 'apiVersion', 'kind', 'status'].includes(key) ? undefined : value,
  );
  return JSON.parse(json) as JsonObject;
}

function isVisible({ before, after }: Change): boolean {
  return !isDeepStrictEqual(before && visible(before), after && visible(after));
}

function described({ cluster, resource, before, after, reason }: Change): string {
  const object = after ?? before;
  return `${cluster} ${resource.plural} ${object && objectKey(object)}: ${reason}`;
}
