/** Reads every object that a sync reads from both clusters, once, and plans what a sync would do with them. */

import { messageOf, TerminalError } from '../../base/errors.ts';
import { systemClock } from '../../base/clock.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import { ClusterScopedError, type Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import {
  apiVersionOf,
  isTerminating,
  NAMESPACES,
  SERVICES,
  type KubeObject,
  type Resource,
} from '../../kube/object.ts';
import { isNotFound } from '../../kube/status-error.ts';
import type { ClusterClient, ClusterName } from '../../kube/types.ts';
import type { Config } from '../config/config.ts';
import { SYNCABLE_RESOURCES, syncedKinds } from '../kinds/synced-kinds.ts';
import {
  kindPolicy,
  partsOfKind,
  resolveKind,
  resolveNamedKinds,
  type Discoveries,
  type ReferencedKind,
} from '../references/referenced-kind.ts';
import type { OwnerReference } from '../translate/forge.ts';
import { kindIdOf, recordedKinds, type KindId } from '../translate/last-synced.ts';
import { hostNamespaces } from '../translate/namespace-mappings.ts';
import type { NameTranslator } from '../translate/types.ts';
import { createTranslators } from '../translation.ts';
import { readIdentity, readIfAllowed, type Identity } from '../virtual-identity.ts';
import { type Connection, listAll, reaching } from './connection.ts';
import type { KeptSandbox } from './pipelines.ts';
import { rehearse, type Collection, type Rehearsal, type RehearsalInput } from './rehearsal.ts';

/** One kind in both clusters. */
export interface KindSnapshot {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

type ResourceSnapshot = KindSnapshot & { readonly resource: Resource };

export interface Snapshot {
  readonly config: Config;
  /** The kinds that are synced, in the order of their decisions; with `everyKind` those that are not synced, too. */
  readonly kinds: readonly ResourceSnapshot[];
  /** Services decide about objects of other kinds. Those of the host: in single-namespace mode, empty if they may not be listed. */
  readonly services: KindSnapshot;
  /** Of every kind that references may lead to. */
  readonly referenced: readonly (KindSnapshot & { readonly kind: ReferencedKind })[];
  /** Host namespaces that copies belong to and that take none: the one that is being deleted; undefined: there is none of this name. */
  readonly closedNamespaces: ReadonlyMap<string, KubeObject | undefined>;
  /** Host namespaces that this user may not read, which count as existing. */
  readonly unreadNamespaces: ReadonlySet<string>;
  /** For the kinds that objects name and that no copy has recorded yet. */
  readonly discoveries?: Discoveries;
  readonly owner: OwnerReference | undefined;
  readonly identity: Identity;
  /** Kinds that are not synced and may not be listed, with the reason. */
  readonly unreadable: readonly string[];
}

/** Shown while a step of a command takes long; ends with the step. */
interface StepProgress extends Disposable {
  update(done: number, total: number): void;
}

/** What a command adds to the engine. */
export interface CommandParts {
  /** What an API server makes of an object that is written. */
  readonly admit: NonNullable<RehearsalInput['admit']>;
  readonly showProgress: (step: string) => StepProgress;
}

export interface SnapshotOptions {
  readonly isOwnerNeeded?: boolean;
  /** Reads kinds that are not synced, too, as far as they may be listed: an earlier configuration may have synced them. */
  readonly everyKind?: boolean;
}

/** Rejects with `TerminalError` where a list is not allowed, a cluster does not respond, or the configured owner does not exist. */
export async function takeSnapshot(
  { config, clusters, isHosted = false }: Connection,
  {
    isOwnerNeeded = true,
    everyKind = false,
    showProgress,
  }: SnapshotOptions & Pick<CommandParts, 'showProgress'>,
): Promise<Snapshot> {
  using progress = showProgress('reading');
  const namespaces = hostNamespaces(config) ?? [''];
  const count = { done: 0, total: 0 };
  const list = async (cluster: ClusterName, resource: Resource, from: readonly string[]) => {
    count.total += 1;
    const objects = await listAll(clusters[cluster], resource, from);
    progress.update(++count.done, count.total);
    return objects;
  };
  // An earlier configuration may have mapped other namespaces, which the rights need not cover.
  const listHost = (resource: Resource): Promise<KubeObject[]> =>
    everyKind && !isHosted
      ? list('host', resource, ['']).catch(() => list('host', resource, namespaces))
      : list('host', resource, namespaces);
  const both = async (virtual: Resource, host: Resource): Promise<KindSnapshot> => {
    const [virtualObjects, hostObjects] = await Promise.all([list('virtual', virtual, ['']), listHost(host)]);
    return { virtual: virtualObjects, host: hostObjects };
  };
  const synced = new Set(syncedKinds(config).map(({ kind }) => kind.resource.plural));
  const resources = SYNCABLE_RESOURCES.filter(({ plural }) => everyKind || synced.has(plural));
  const unreadable: string[] = [];
  const read = async (resource: Resource): Promise<ResourceSnapshot> => {
    try {
      return { resource, ...(await both(resource, resource)) };
    } catch (error) {
      if (synced.has(resource.plural) || !(error instanceof TerminalError)) throw error;
      unreadable.push(`${resource.kind}: ${error.message}`);
      return { resource, virtual: [], host: [] };
    }
  };
  const [kinds, identity, owner] = await Promise.all([
    Promise.all(resources.map(read)),
    readIdentity(config, (cluster, ...object) =>
      reaching(cluster, () => readIfAllowed(clusters[cluster], ...object)),
    ),
    isOwnerNeeded ? reaching('host', () => clusters.resolveOwner(config)) : undefined,
  ]);
  const services = kinds.find(({ resource }) => resource.plural === SERVICES.plural) ?? {
    virtual: await list('virtual', SERVICES, ['']),
    host: await listHost(SERVICES),
  };
  const copies = kinds.flatMap(({ host }) => host);
  // A tenant may have broken a kind of its own, which must not keep an administrator from removing everything else.
  const skip = (kind: string, error: unknown): [] => {
    if (!everyKind) throw error;
    unreadable.push(`${kind}: ${messageOf(error)}`);
    return [];
  };
  const found = await referencedKinds(config, clusters.discoveries, copies, skip);
  const reads = found.map(async (kind) => {
    try {
      return { kind, ...(await both(kind.virtual, kind.host)) };
    } catch (error) {
      return skip(kind.virtual.kind, error);
    }
  });
  const referenced = (await Promise.all(reads)).flat();
  const { names } = createTranslators(config);
  const virtual = kinds.flatMap((one) => (synced.has(one.resource.plural) ? one.virtual : []));
  const targets = await readNamespaces(clusters.host, targetNamespaces(virtual, names));
  const { discoveries } = clusters;
  return { config, kinds, services, referenced, ...targets, discoveries, owner, identity, unreadable };
}

/**
 * Kinds that a patch names; where data may choose the kind, those whose syncing is configured; and those that host copies name from an
 * earlier configuration, of which imports may be left. Both clusters have to serve what no patch names.
 */
async function referencedKinds(
  { name, sync }: Config,
  discoveries: Connection['clusters']['discoveries'],
  copies: readonly KubeObject[],
  skip: (kind: string, error: unknown) => [],
): Promise<readonly ReferencedKind[]> {
  const policy = kindPolicy(sync);
  const missing = (): void => undefined; // there can be no object of it
  const named = await reaching('virtual', () => resolveNamedKinds(policy, discoveries, missing, {}));
  const kinds = new Map(named.map((kind) => [kind.id, kind]));
  const reachable = policy.isOpen ? policy.reachable : [];
  for (const id of new Set([...reachable, ...copies.flatMap((copy) => recordedKinds(copy, name))])) {
    if (kinds.has(id)) continue;
    try {
      kinds.set(id, await resolveKind(partsOfKind(id), discoveries, policy));
    } catch (error) {
      // A TerminalError: it is not served, so there can be no object of it.
      if (!(error instanceof TerminalError)) skip(partsOfKind(id).kind, error);
    }
  }
  return [...kinds.values()];
}

/** The objects of one of the kinds in the snapshot. */
export function objectsOf({ kinds }: Pick<Snapshot, 'kinds'>, { plural }: Resource): KindSnapshot {
  return kinds.find(({ resource }) => resource.plural === plural) ?? { virtual: [], host: [] };
}

function targetNamespaces(virtual: readonly KubeObject[], names: NameTranslator): ReadonlySet<string> {
  const all = virtual.flatMap(({ metadata: { namespace = '' } }) => names.namespaceToHost(namespace) ?? []);
  return new Set([names.hostNamespace, ...all]);
}

async function readNamespaces(
  host: ClusterClient,
  namespaces: ReadonlySet<string>,
): Promise<Pick<Snapshot, 'closedNamespaces' | 'unreadNamespaces'>> {
  const closedNamespaces = new Map<string, KubeObject | undefined>();
  const unreadNamespaces = new Set<string>();
  for (const name of namespaces) {
    try {
      const namespace = await host.get(NAMESPACES, { namespace: '', name });
      if (isTerminating(namespace)) closedNamespaces.set(name, namespace);
    } catch (error) {
      if (isNotFound(error)) closedNamespaces.set(name, undefined);
      else unreadNamespaces.add(name);
    }
  }
  return { closedNamespaces, unreadNamespaces };
}

export interface WorldPlan extends Rehearsal {
  readonly snapshot: Snapshot;
}

interface PlanOptions extends CommandParts {
  /** For several plans; default: each plan has its own. */
  readonly sandbox?: KeptSandbox;
  readonly createPipeline?: RehearsalInput['createPipeline'];
}

/** Reads both clusters, and plans what a sync would do with them. */
export async function planWorld(
  connection: Connection,
  options: SnapshotOptions & CommandParts,
): Promise<WorldPlan> {
  return rehearseSnapshot(await takeSnapshot(connection, options), options);
}

export async function rehearseSnapshot(snapshot: Snapshot, options: PlanOptions): Promise<WorldPlan> {
  const { config, kinds, services, referenced, closedNamespaces, owner, identity } = snapshot;
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
  using progress = options.showProgress('comparing');
  const total = kinds.reduce((sum, { virtual }) => sum + virtual.length, 0);
  const run = (
    discoveries: Discoveries,
    parts: Pick<PlanOptions, 'createPipeline'> = {},
  ): Promise<Rehearsal> =>
    rehearse({
      config,
      clusters: { virtual: collections('virtual'), host: collections('host') },
      closedNamespaces,
      discoveries,
      owner,
      identity,
      admit: options.admit,
      createSandbox: (given) => options.sandbox?.open(given) ?? createSandbox(given),
      ...(parts.createPipeline && { createPipeline: parts.createPipeline }),
      nowMs: systemClock.now(),
      progress: (decided) => progress.update(decided, total),
    });
  const scoped = await clusterScopedKinds(snapshot, run);
  const rehearsal = await run(
    discoveriesOf(referenced, (id) => scoped.get(id)),
    options,
  );
  return { ...rehearsal, snapshot };
}

/** Tenants choose them. */
const ASKED_MAX = 100;

/** The kinds that objects name, that no copy has recorded yet, and that the host has without namespaces: a rehearsal that nothing is taken from asks for them. */
async function clusterScopedKinds(
  { config, referenced, discoveries }: Snapshot,
  run: (discoveries: Discoveries) => Promise<unknown>,
): Promise<ReadonlyMap<KindId, ClusterScopedError>> {
  const found = new Map<KindId, ClusterScopedError>();
  if (discoveries === undefined || !kindPolicy(config.sync).isOpen) return found;
  const asked = new Set<KindId>();
  const note = (id: KindId): undefined => void asked.add(id);
  await run(discoveriesOf(referenced, note));
  for (const id of [...asked].slice(0, ASKED_MAX)) {
    const { apiVersion, kind } = partsOfKind(id);
    try {
      await discoveries.host.resolveNamespaced(apiVersion, kind);
    } catch (error) {
      if (error instanceof ClusterScopedError) found.set(id, error);
    }
  }
  return found;
}

/** A cluster serves the kinds of which the snapshot has the objects. `whyOther`: of another one, why it is none that can be referenced. */
function discoveriesOf(
  referenced: Snapshot['referenced'],
  whyOther: (id: KindId) => ClusterScopedError | undefined,
): Discoveries {
  const discovery = (cluster: ClusterName): Discovery => {
    const resolve = async (apiVersion: string, kind: string): Promise<Resource> => {
      const found = referenced.find(
        ({ kind: { virtual } }) => apiVersionOf(virtual) === apiVersion && virtual.kind === kind,
      );
      if (found !== undefined) return found.kind[cluster];
      const missing = new TerminalError(`the ${cluster} cluster serves no kind ${kind} in ${apiVersion}`);
      throw whyOther(kindIdOf({ apiVersion, kind })) ?? missing;
    };
    return { resolve, resolveNamespaced: resolve };
  };
  return { virtual: discovery('virtual'), host: discovery('host') };
}
