/** One command on both clusters: configuration, connection, snapshot, and what a sync would do with it. */

import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import { apiVersionOf, SERVICES, type Resource } from '../../kube/object.ts';
import type { ClusterName } from '../../kube/types.ts';
import { rehearse, type Collection, type Rehearsal, type RehearsalInput } from '../../syncer/rehearsal.ts';
import type { Discoveries } from '../../syncer/references/referenced-kind.ts';
import { createSandbox } from '../../syncer/sandbox/sandbox.ts';
import { apiDefaults, type KeptSandbox } from '../offline/rehearsal-parts.ts';
import { reportProblems, showProgress } from '../output/terminal.ts';
import { commandConfig } from './hosted.ts';
import { connect, UnreachableError, type Connection, type Snapshot } from './snapshot.ts';

/** What a sync would do with a snapshot. */
export interface WorldPlan extends Rehearsal {
  readonly snapshot: Snapshot;
}

/** Connects for the time of `work`, and reports the warnings of the configuration. Rejects with a `ConfigError` for an invalid one. */
export async function withConnection<T>(
  command: Command,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const live = await commandConfig(command);
  reportProblems(live.warnings);
  await using connection = await connect(live);
  try {
    return await work(connection);
  } catch (error) {
    throw withPortForward(error, connection);
  }
}

/** The URL in vCluster's Secret is that of its Pod or Service, which a laptop does not reach. */
function withPortForward(error: unknown, { config, clusters }: Connection): unknown {
  const { name, virtual, host } = config;
  if (!(error instanceof UnreachableError) || error.cluster !== 'virtual' || virtual.secret === '')
    return error;
  const access = [
    ...(host.kubeconfig === '' ? [] : [`--kubeconfig ${host.kubeconfig}`]),
    ...(host.context === '' ? [] : [`--context ${host.context}`]),
  ];
  const forward = ['kubectl', ...access, `-n ${host.namespace} port-forward service/${name} 8443:443`].join(
    ' ',
  );
  return new TerminalError(
    `${error.message}; the URL is ${clusters.servers.virtual}: where it is not reachable, run "${forward}" and pass --virtual-server https://localhost:8443`,
    { cause: error.cause },
  );
}

export interface PlanOptions {
  /** For several plans; default: each plan has its own. */
  readonly sandbox?: KeptSandbox;
  readonly createPipeline?: RehearsalInput['createPipeline'];
}

export async function planSnapshot(snapshot: Snapshot, options: PlanOptions = {}): Promise<WorldPlan> {
  const { config, kinds, services, referenced, missingNamespaces, owner, identity } = snapshot;
  const others = [
    { virtual: SERVICES, host: SERVICES, sides: services },
    ...referenced.map(({ kind, ...sides }) => ({ virtual: kind.virtual, host: kind.host, sides })),
  ];
  const collections = (cluster: ClusterName): Collection[] => {
    const all = [
      ...kinds.map(({ resource, ...sides }) => ({ resource, objects: sides[cluster] })),
      ...others.map(({ sides, ...resources }) => ({ resource: resources[cluster], objects: sides[cluster] })),
    ];
    return [...new Map(all.toReversed().map((one) => [qualifiedPlural(one.resource), one])).values()];
  };
  const total = kinds.reduce((sum, { virtual }) => sum + virtual.length, 0);
  using progress = showProgress('comparing');
  const rehearsal = await rehearse({
    config,
    clusters: { virtual: collections('virtual'), host: collections('host') },
    missingNamespaces,
    discoveries: discoveriesOf(referenced),
    owner,
    identity,
    admit: apiDefaults(),
    createSandbox: (given) => options.sandbox?.open(given) ?? createSandbox(given),
    ...(options.createPipeline && { createPipeline: options.createPipeline }),
    nowMs: systemClock.now(),
    progress: (decided) => progress.update(decided, total),
  });
  return { ...rehearsal, snapshot };
}

/** A cluster serves the kinds of which the snapshot has the objects. */
function discoveriesOf(referenced: Snapshot['referenced']): Discoveries {
  const discovery = (cluster: ClusterName): Discovery => {
    const resolve = async (apiVersion: string, kind: string): Promise<Resource> => {
      const found = referenced.find(
        ({ kind: { virtual } }) => apiVersionOf(virtual) === apiVersion && virtual.kind === kind,
      );
      if (found !== undefined) return found.kind[cluster];
      throw new TerminalError(`the ${cluster} cluster serves no kind ${kind} in ${apiVersion}`);
    };
    return { resolve, resolveNamespaced: resolve };
  };
  return { virtual: discovery('virtual'), host: discovery('host') };
}
