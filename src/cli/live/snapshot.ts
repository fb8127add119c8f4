/** Connects to both clusters, reads every object that a sync reads, once, and plans what a sync would do with them. */

import { messageOf, TerminalError, type ConfigProblem } from '../../base/errors.ts';
import type { Config } from '../../syncer/config/config.ts';
import { ClusterScopedError, type Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import {
  apiVersionOf,
  keyOf,
  NAMESPACES,
  objectKey,
  parseKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
  isTerminating,
} from '../../kube/object.ts';
import {
  rehearse,
  type Collection,
  type ObjectPlan,
  type ReferencePlan,
  type Rehearsal,
  type RehearsalInput,
} from '../../syncer/rehearsal/rehearsal.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import { apiDefaults, type KeptSandbox } from '../../syncer/rehearsal/pipelines.ts';
import { formatKind, isOfKnownKind, type KnownKind } from '../kind-scope.ts';
import { showProgress } from '../output/terminal.ts';
import { listPages } from '../../kube/list-pages.ts';
import { isAnonymous, isNotFound, StatusError } from '../../kube/status-error.ts';
import { TransportError, type ClusterClient, type ClusterName } from '../../kube/types.ts';
import { SYNCABLE_RESOURCES, syncedKinds } from '../../syncer/kinds/synced-kinds.ts';
import {
  kindPolicy,
  partsOfKind,
  resolveKind,
  resolveNamedKinds,
  type Discoveries,
  type ReferencedKind,
} from '../../syncer/references/referenced-kind.ts';
import type { OwnerReference } from '../../syncer/translate/forge.ts';
import { kindIdOf, recordedKinds, type KindId } from '../../syncer/translate/last-synced.ts';
import type { NameTranslator } from '../../syncer/translate/types.ts';
import { createTranslators } from '../../syncer/translation.ts';
import { hostNamespaces } from '../../syncer/translate/namespace-mappings.ts';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/logger.ts';
import {
  COMMAND_GIVES_UP_MS,
  COMMAND_LIMITS,
  connectClusters,
  withPlace,
  type Clusters,
} from '../../syncer/clusters.ts';
import { createMetrics } from '../../syncer/metrics/metrics.ts';
import { readIdentity, readIfAllowed, type Identity } from '../../syncer/virtual-identity.ts';
import { programParts } from '../installation.ts';

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

interface SnapshotOptions {
  readonly isOwnerNeeded?: boolean;
  /** Reads kinds that are not synced, too, as far as they may be listed: an earlier configuration may have synced them. */
  readonly everyKind?: boolean;
}

/** Rejects with `TerminalError` where a list is not allowed, a cluster does not respond, or the configured owner does not exist. */
export async function readSnapshot(
  { config, clusters, isHosted = false }: Connection,
  { isOwnerNeeded = true, everyKind = false }: SnapshotOptions = {},
): Promise<Snapshot> {
  const namespaces = hostNamespaces(config) ?? [''];
  using progress = showProgress('reading');
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
  { sync }: Config,
  discoveries: Connection['clusters']['discoveries'],
  copies: readonly KubeObject[],
  skip: (kind: string, error: unknown) => [],
): Promise<readonly ReferencedKind[]> {
  const policy = kindPolicy(sync);
  const missing = (): void => undefined; // there can be no object of it
  const named = await reaching('virtual', () => resolveNamedKinds(policy, discoveries, missing, {}));
  const kinds = new Map(named.map((kind) => [kind.id, kind]));
  const reachable = policy.isOpen ? policy.reachable : [];
  for (const id of new Set([...reachable, ...copies.flatMap(recordedKinds)])) {
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

/** Every object of one kind in these namespaces ('' means all), with its type, which items of a list lack. */
export async function listAll(
  client: ClusterClient,
  resource: Resource,
  namespaces: readonly string[],
  labelSelector?: string,
): Promise<KubeObject[]> {
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  const typed = (object: KubeObject): KubeObject => ({ ...object, ...type });
  const found: KubeObject[] = [];
  for (const namespace of namespaces) {
    const options = {
      ...(namespace === '' ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
    const listed = await reaching(client.cluster, () => listPages(client, resource, options, typed));
    for (const object of listed) found.push(object); // more than a call takes as arguments
  }
  return found;
}

/** A cluster does not respond. */
export class UnreachableError extends TerminalError {
  readonly cluster: ClusterName;

  constructor(cluster: ClusterName, cause: TransportError) {
    super(`cannot connect to the ${cluster} cluster: ${cause.message}`, { cause });
    this.cluster = cluster;
  }
}

/** The failure of a request as an error that the user can act on. */
export async function reaching<T>(cluster: ClusterName, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof StatusError)
      throw new TerminalError(`the ${cluster} cluster: ${error.message}${adviceFor(error)}`, {
        cause: error,
      });
    if (error instanceof TransportError) throw new UnreachableError(cluster, error);
    throw error;
  }
}

function adviceFor(error: StatusError): string {
  const { code } = error;
  if (isAnonymous(error))
    return '; no credential reached it: check the user of the context in the kubeconfig, and proxies before the API server';
  if (code === 401) return '; renew the token or certificate there';
  if (code === 403) return '; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig';
  return '';
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

// Both clusters of a configuration, for one command: connected, with the host namespace filled in.

/** What a command on both clusters runs with. */
export interface LiveConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
  /** The URL to use instead of the one in the Secret of the virtual cluster. */
  readonly serverOf?: (ofSecret: string) => string;
  /** The configuration was read from the host: nothing outside of the namespaces that it maps is written or deleted. */
  readonly isHosted?: boolean;
  /** Which objects of the host it was read from. */
  readonly source?: string;
}

export interface Connection extends AsyncDisposable {
  /** With the host namespace, where it is the context's own. */
  readonly config: Config;
  readonly clusters: Clusters;
  readonly isHosted?: boolean;
}

/** Of the clients of a command. */
export function clientParts() {
  const parts = programParts();
  const metrics = createMetrics({ monotonicMs: () => systemClock.monotonicMs(), version: parts.version });
  return { ...parts, metrics, limits: COMMAND_LIMITS };
}

/** Rejects with `TerminalError` where a kubeconfig or Secret is missing or a cluster cannot be reached. `giveUpMs`: see `ClustersOptions`. */
export async function connect(
  { config, serverOf, isHosted = false }: Omit<LiveConfig, 'warnings'>,
  giveUpMs = COMMAND_GIVES_UP_MS,
): Promise<Connection> {
  // Afterwards, the connection closes its clients itself, however long the command takes.
  const connecting = new AbortController();
  try {
    const clusters = await connectClusters({
      ...clientParts(),
      config,
      serverOf,
      isDryRun: true,
      logger: silentLogger,
      signal: connecting.signal,
      giveUpMs,
    });
    return {
      config: withPlace(config, clusters.place),
      clusters,
      isHosted,
      [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose](),
    };
  } catch (error) {
    connecting.abort();
    throw error;
  }
}

export interface WorldPlan extends Rehearsal {
  readonly snapshot: Snapshot;
}

export interface PlanOptions {
  /** For several plans; default: each plan has its own. */
  readonly sandbox?: KeptSandbox;
  readonly createPipeline?: RehearsalInput['createPipeline'];
}

export async function planSnapshot(snapshot: Snapshot, options: PlanOptions = {}): Promise<WorldPlan> {
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
  const total = kinds.reduce((sum, { virtual }) => sum + virtual.length, 0);
  using progress = showProgress('comparing');
  const run = (discoveries: Discoveries, parts: PlanOptions = {}): Promise<Rehearsal> =>
    rehearse({
      config,
      clusters: { virtual: collections('virtual'), host: collections('host') },
      closedNamespaces,
      discoveries,
      owner,
      identity,
      admit: apiDefaults(),
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

type OtherTarget = Extract<Target, { kind: 'other' }>;

export interface TargetName {
  readonly key: ObjectKey;
  readonly isHost: boolean;
  /** Of several groups, the group is needed. */
  readonly kind: KnownKind | undefined;
}

/** Synced objects are preferred to referenced ones; undefined where no object has this name. Throws `TerminalError` where objects of several groups
 * have this kind and name. */
export function findTarget(plan: WorldPlan, wanted: TargetName): Target | undefined {
  const [first, ...others] = targetsNamed(plan, wanted);
  if (first === undefined || wanted.kind === undefined) return first;
  const groups = new Set([first, ...others].map(groupOfTarget));
  if (groups.size < 2) return first;
  const { kind } = wanted.kind;
  const kinds = [...groups].map((group) => `--kind ${formatKind({ kind, group })}`);
  throw new TerminalError(
    `${kind} "${wanted.key}" exists in ${groups.size} groups: use ${kinds.join(' or ')}`,
  );
}

function targetsNamed(plan: WorldPlan, wanted: TargetName): Target[] {
  const isKind = (resource: Resource): boolean => isOfKnownKind(resource, wanted.kind);
  const objects = plan.objects.filter((one) => isKind(one.kind.resource) && isObjectNamed(one, wanted));
  const imports = plan.references.filter(
    (one) => isKind(one.seen.kind.virtual) && isImportNamed(one, wanted),
  );
  const known: Target[] = [
    ...objects.map((one): Target => ({ kind: 'object', plan: one })),
    ...imports.map((one): Target => ({ kind: 'import', plan: one })),
  ];
  const groups = known.map(groupOfTarget);
  const others = otherTargets(plan, wanted, isKind);
  return [...known, ...others.filter(({ resource }) => !groups.includes(resource.group))];
}

function groupOfTarget(target: Target): string {
  if (target.kind === 'other') return target.resource.group;
  return target.kind === 'object' ? target.plan.kind.resource.group : target.plan.seen.kind.virtual.group;
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

function otherTargets(
  { snapshot, objects }: WorldPlan,
  { key, isHost }: TargetName,
  isKind: (resource: Resource) => boolean,
): OtherTarget[] {
  const cluster = isHost ? 'host' : 'virtual';
  const kinds = [
    ...snapshot.kinds,
    ...snapshot.referenced.map(({ kind, ...sides }) => ({ resource: kind[cluster], ...sides })),
  ];
  return kinds.flatMap(({ resource, ...sides }): OtherTarget[] => {
    const object = isKind(resource) ? sides[cluster].find((one) => objectKey(one) === key) : undefined;
    if (object === undefined) return [];
    const waiting = objects.find(
      (one) =>
        isHost &&
        qualifiedPlural(one.kind.resource) === qualifiedPlural(resource) &&
        one.seen.target !== undefined &&
        keyOf(one.seen.target) === key,
    );
    const virtual = isHost ? waiting && parseKey(waiting.key) : parseKey(key);
    return [{ kind: 'other', resource, virtual, object, cluster }];
  });
}
