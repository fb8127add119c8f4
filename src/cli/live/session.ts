/** One command on both clusters: configuration, connection, snapshot, what a sync would do with it, and which object a name refers to. */

import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import {
  apiVersionOf,
  keyOf,
  objectKey,
  parseKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { ClusterName } from '../../kube/types.ts';
import {
  rehearse,
  type Collection,
  type ObjectPlan,
  type ReferencePlan,
  type Rehearsal,
  type RehearsalInput,
} from '../../syncer/rehearsal.ts';
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

// The object that a name on the command line refers to: one that is synced, one that is referenced, or neither.

export type Target =
  | { readonly kind: 'object'; readonly plan: ObjectPlan }
  | { readonly kind: 'import'; readonly plan: ReferencePlan }
  /** An existing object that is not synced: a host object of another client, or a virtual object that is not referenced. */
  | {
      readonly kind: 'other';
      readonly resource: Resource;
      /** Its name in the virtual cluster; undefined where it has none. */
      readonly virtual: NamespacedName | undefined;
      readonly object: KubeObject;
      readonly cluster: 'virtual' | 'host';
    };

export interface TargetName {
  readonly key: ObjectKey;
  /** The key is that of a host object. */
  readonly isHost: boolean;
  readonly kind: string | undefined;
}

/** Synced objects are preferred to referenced ones; undefined where no object has this name. */
export function findTarget(plan: WorldPlan, wanted: TargetName): Target | undefined {
  const isKind = (resource: Resource): boolean => wanted.kind === undefined || resource.kind === wanted.kind;
  const object = plan.objects.find((one) => isKind(one.kind.resource) && isObjectNamed(one, wanted));
  if (object !== undefined) return { kind: 'object', plan: object };
  const imported = plan.references.find((one) => isKind(one.seen.kind.virtual) && isImportNamed(one, wanted));
  if (imported !== undefined) return { kind: 'import', plan: imported };
  return otherTarget(plan, wanted, isKind);
}

function isObjectNamed({ key, seen }: ObjectPlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return key === wanted.key;
  const isOwn = seen.ownership?.kind === 'ours' && keyOf(seen.ownership.virtual) === key;
  return seen.target !== undefined && keyOf(seen.target) === wanted.key && (isOwn || seen.host === undefined);
}

function isImportNamed({ seen }: ReferencePlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return keyOf(seen.virtual) === wanted.key;
  return [...seen.ours, ...(seen.source === undefined ? [] : [seen.source])].some(
    (object) => objectKey(object) === wanted.key,
  );
}

function otherTarget(
  { snapshot, objects }: WorldPlan,
  { key, isHost }: TargetName,
  isKind: (resource: Resource) => boolean,
): Target | undefined {
  const cluster = isHost ? 'host' : 'virtual';
  const kinds = [
    ...snapshot.kinds,
    ...snapshot.referenced.map(({ kind, ...sides }) => ({ resource: kind[cluster], ...sides })),
  ];
  for (const { resource, ...sides } of kinds.filter((one) => isKind(one.resource))) {
    const object = sides[cluster].find((one) => objectKey(one) === key);
    if (object === undefined) continue;
    const waiting = objects.find(
      (one) =>
        isHost &&
        one.kind.resource.kind === resource.kind &&
        one.seen.target !== undefined &&
        keyOf(one.seen.target) === key,
    );
    const virtual = isHost ? waiting && parseKey(waiting.key) : parseKey(key);
    return { kind: 'other', resource, virtual, object, cluster };
  }
  return undefined;
}
