/** The sync engine of one configuration: names, patches and their sandbox, informers, a controller per kind, references, readiness. A reload replaces
 * it. */

import { isDeepStrictEqual } from 'node:util';
import { createSemaphore } from '../base/semaphore.ts';
import type { CheckResult, Checks } from '../base/health.ts';
import { jsonEquals, type JsonObject } from '../base/json.ts';
import { prune } from '../expressions/program-entry.ts';
import type { createSandbox } from '../expressions/sandbox.ts';
import type { Sandbox } from '../expressions/types.ts';
import { informerCheck } from '../kube/informer/informer-check.ts';
import { CachingInformer, type InformerOptions, type ObservableInformer } from '../kube/informer/informer.ts';
import { ServerHistory } from '../kube/informer/list-watch.ts';
import { createOwnedFieldsStripper } from '../kube/informer/object-cache.ts';
import type { ClusterName, RecordedEvent } from '../kube/types.ts';
import { ENDPOINTS, keyOf, objectKey, SERVICES, type KubeObject, type Resource } from '../kube/object.ts';
import type { Clusters } from './clusters.ts';
import type { Config } from './config/config.ts';
import type { SyncedKind } from './kinds/kind.ts';
import { compileKinds, SHARED_KEYS, syncedKinds, type CompiledKind } from './kinds/synced-kinds.ts';
import type { Leadership } from './leadership.ts';
import { checkMirrors, type ServedCopy } from './mirror-check.ts';
import { createPatchPipeline, measuredPipeline, type PipelineOptions } from './patch/pipeline.ts';
import type { PatchPipeline } from './patch/types.ts';
import type { Controller } from './reconcile/controller.ts';
import { CopyOwner, type SyncEnvironment, type SyncParts } from './reconcile/environment.ts';
import { ExpectedDeletions } from './reconcile/expected-deletions.ts';
import { KeptEvaluations } from './reconcile/kept-evaluations.ts';
import {
  damagedServices,
  hostIndexes,
  KindSync,
  virtualIndexes,
  type KindEnvironment,
} from './reconcile/kind-sync.ts';
import { CLEANUP, deleteUnmapped, SWEEP_ATTEMPTS } from './reconcile/marked-copies.ts';
import { reconcile } from './reconcile/reconciler.ts';
import type { ReferenceEnvironment } from './references/environment.ts';
import type { ReferencedKind } from './references/referenced-kind.ts';
import { References } from './references/references.ts';
import { checkSlices } from './slice-check.ts';
import { createTranslators, ownerOf, pipelineOptions, sandboxSettings } from './translation.ts';
import { isBookkeepingAnnotation, ownershipOf } from './translate/bookkeeping.ts';
import { recordedKinds, type KindId } from './translate/last-synced.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import type { CopiesEvidence, VirtualIdentity } from './virtual-identity.ts';

/** What engines are made of, whatever their configuration. */
export interface EngineParts extends SyncParts, Pick<ReferenceEnvironment, 'giveUpMs' | 'referenceDecided'> {
  readonly clusters: Pick<Clusters, 'discoveries' | 'resolveOwner'>;
  readonly leadership: Leadership;
  readonly createSandbox: typeof createSandbox;
  readonly createPipeline?: (kind: SyncedKind, options: PipelineOptions) => PatchPipeline;
  /** Undefined: copies of objects that are gone are deleted. */
  readonly identity?: Pick<VirtualIdentity, 'objection'> | undefined;
  /** False: the host runs no controllers, so Endpoints are not mirrored to slices. Default true. */
  readonly hasHostControllers?: boolean;
}

interface EngineOptions extends EngineParts {
  readonly config: Config;
  readonly named: readonly ReferencedKind[];
  readonly owner: CopyOwner;
  readonly compiled: readonly CompiledKind[];
  /** Filled with the caches of virtual objects, by plural: all readers of a resource share one. Kinds look up objects of other kinds in them. */
  readonly virtualCaches: Map<string, ObservableInformer>;
  /** Undefined: no patch has an expression. */
  readonly sandbox: Sandbox | undefined;
}

interface EngineEnvironment extends EngineOptions, SyncEnvironment {}

/** Completes every step that can fail, so that the previous engine can run until this one is ready. `named`: the kinds that its patches reference. */
export async function createEngine(
  parts: EngineParts,
  config: Config,
  named: readonly ReferencedKind[],
): Promise<RunningEngine> {
  const virtualCaches = new Map<string, ObservableInformer>();
  const synced = syncedKinds(config, virtualCaches);
  if (synced.length === 0) {
    const settings = SHARED_KEYS.map((key) => `sync.toHost.${key}.enabled`).join(' and ');
    parts.logger.warn({}, `${settings} are false: nothing is synced`);
    return IDLE_ENGINE;
  }
  const resolveOwner = () => parts.clusters.resolveOwner(config);
  const owner = new CopyOwner(await resolveOwner(), resolveOwner);
  const compiled = compileKinds(synced, config.patches);
  const sandbox = await sandboxFor(compiled, config, parts);
  return new Engine({ ...parts, config, named, owner, compiled, virtualCaches, sandbox });
}

async function sandboxFor(
  compiled: readonly CompiledKind[],
  config: Config,
  { clock, logger, metrics, createSandbox: create }: EngineParts,
): Promise<Sandbox | undefined> {
  const programs = compiled.flatMap(({ patches }) => patches.programs);
  if (programs.length === 0) return undefined;
  return create({ ...sandboxSettings(config), programs, clock, logger, metrics: metrics.sync });
}

/** False where the engines of both configurations do the same: they differ at most in values of vCluster that no expression reads. */
export function needsNewEngine(before: Config, after: Config): boolean {
  const { vclusterValues } = after;
  if (!isDeepStrictEqual({ ...before, vclusterValues }, after)) return true;
  const paths = compileKinds(syncedKinds(after), after.patches).flatMap(({ patches }) =>
    patches.programs.flatMap(({ reads }) => reads.vcluster),
  );
  const read = (config: Config): JsonObject | null => prune({ ...sandboxSettings(config).vcluster }, paths);
  return !jsonEquals(read(before), read(after));
}

export type RunningEngine = Pick<
  Engine,
  | 'abandon'
  | 'checks'
  | 'importedKinds'
  | 'initialOutcomes'
  | 'isCached'
  | 'isIdle'
  | 'objects'
  | 'pathsNeverMatched'
  | 'start'
  | 'stop'
>;

const IDLE_ENGINE: RunningEngine = {
  checks: {},
  isCached: true,
  isIdle: true,
  objects: {},
  initialOutcomes: {},
  importedKinds: [],
  pathsNeverMatched: [],
  start: () => undefined,
  stop: async () => undefined,
  abandon: () => 0,
};

class Engine {
  readonly #environment: EngineEnvironment;
  readonly #kinds: readonly KindSync[];
  readonly #references: References;
  readonly #services: ObservableInformer;
  readonly #hostServices: ObservableInformer;
  readonly #stopping = new AbortController();
  /** Aborts what does not wait in a queue, as soon as the queues are drained. */
  readonly #draining = new AbortController();
  #isSwept = false;
  #running: Promise<unknown> | undefined;
  #isWorking = false;

  constructor(options: EngineOptions) {
    const { clock, clusters, compiled, config, identity, named, virtualCaches } = options;
    const kinds: KindSync[] = [];
    const servers = { virtual: new ServerHistory(), host: new ServerHistory() };
    const environment = {
      ...options,
      ...createTranslators(config),
      servers,
      expectedDeletions: new ExpectedDeletions(clock),
      objection: async () => identity?.objection(() => evidenceOf(kinds), servers.virtual.listedAtMs),
    };
    this.#environment = environment;
    this.#kinds = kinds;
    this.#references = new References({ ...environment, discoveries: clusters.discoveries }, named, kinds);
    this.#services = this.#virtualInformer(SERVICES);
    this.#hostServices = this.#hostServiceInformer();
    const { ofServices } = environment.expectedDeletions;
    this.#hostServices.subscribe(({ type, key, object, previous }) => {
      const isReplaced = previous !== undefined && previous.metadata.uid !== object.metadata.uid;
      if (type === 'deleted' || isReplaced) ofServices.set(key, true);
    });
    const shared: KindEnvironment = {
      ...environment,
      services: this.#services,
      hostServices: this.#hostServices,
      damagedServices: damagedServices(this.#hostServices, environment.names),
      inFlight: createSemaphore(config.workers),
      kinds,
    };
    for (const one of compiled) kinds.push(this.#createKind(one, shared));
    for (const kind of kinds) kind.followRelated(virtualCaches);
    this.#followOwner();
  }

  #createKind({ kind, patches }: CompiledKind, environment: KindEnvironment): KindSync {
    const { clock, config, metrics, sandbox } = this.#environment;
    const { createPipeline = (_, options) => createPatchPipeline(options) } = this.#environment;
    const { changes, lookup, prepare } = this.#references;
    const { programs } = patches;
    const evaluations = sandbox && programs.length > 0 ? new KeptEvaluations(sandbox, programs) : undefined;
    const parts = { compiled: patches, evaluator: evaluations, lookup, prepare };
    const pipeline = createPipeline(kind, pipelineOptions(config, kind, parts));
    const { resource } = kind;
    const isService = resource.plural === SERVICES.plural;
    return new KindSync(
      { kind, pipeline: measuredPipeline(pipeline, clock, metrics.sync), evaluations },
      environment,
      {
        virtual: this.#virtualInformer(resource),
        host: isService ? this.#hostServices : this.#hostInformer(kind),
        references: changes.recordsOf(resource),
      },
      reconcile,
    );
  }

  /** An owner of another kind than Service exists at the start, and its uid is read again when it may have been created again. */
  #followOwner(): void {
    const { config, owner } = this.#environment;
    const wanted = ownerOf(config);
    if (wanted?.kind !== SERVICES.kind || config.sync.namespaces.kind !== 'single') return;
    const { apiVersion, kind, name } = wanted;
    const ownerKey = keyOf({ namespace: config.host.namespace, name });
    this.#hostServices.subscribe(({ type, key, object }) => {
      if (key !== ownerKey || type === 'deleted') return;
      if (!owner.replace({ apiVersion, kind, name, uid: object.metadata.uid ?? '' })) return;
      for (const sync of this.#kinds) sync.renewAll();
      this.#references.renewAll();
    });
  }

  get informers(): Readonly<Record<string, ObservableInformer>> {
    const caches = this.#kinds.flatMap(({ kind: { resource }, virtual, host }) => [
      [`virtual-${resource.plural}`, virtual] as const,
      [`host-${resource.plural}`, host] as const,
    ]);
    return {
      ...Object.fromEntries(caches),
      'virtual-services': this.#services,
      'host-services': this.#hostServices,
    };
  }

  get checks(): Checks {
    const caches = Object.entries(this.informers);
    const { sandbox } = this.#environment;
    return {
      ...Object.fromEntries(caches.map(([name, informer]) => [name, () => informerCheck(informer)])),
      workers: () => this.#workersCheck(),
      writes: () => this.#writesCheck(),
      references: () => ({ isOk: true, detail: this.#references.kinds.detail }),
      sandbox: () => ({
        isOk: true,
        detail: sandbox ? `${sandbox.pids.length} processes` : 'not needed, no patch has an expression',
      }),
    };
  }

  get isCached(): boolean {
    const areSynced = Object.values(this.informers).every(({ isSynced }) => isSynced);
    return areSynced && this.#references.kinds.isOpened;
  }

  get objects(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.informers).map(([name, { size }]) => [name, size]));
  }

  get importedKinds(): readonly KindId[] {
    return this.#references.importedKinds;
  }

  /** `endpoints: patches[2], path metadata.labels.tier`. */
  get pathsNeverMatched(): readonly string[] {
    return this.#kinds.flatMap(({ kind: { resource }, pipeline }) =>
      pipeline.neverMatched().map((patch) => `${resource.plural}: ${patch}`),
    );
  }

  /** The workers have processed all objects of the first lists and all changes since. */
  get isIdle(): boolean {
    return this.#isWorking && this.#isSwept && this.#controllers.every(({ isIdle }) => isIdle);
  }

  get initialOutcomes(): Readonly<Record<string, number>> {
    const sums: Record<string, number> = {};
    for (const { controller } of this.#kinds)
      for (const [outcome, count] of controller.initialOutcomes) sums[outcome] = (sums[outcome] ?? 0) + count;
    return sums;
  }

  get #controllers(): readonly Controller[] {
    return [...this.#kinds, this.#references].map(({ controller }) => controller);
  }

  #workersCheck(): CheckResult {
    if (this.#isWorking) return { isOk: true };
    return this.#environment.leadership.isLeading
      ? { isOk: false, detail: 'waiting for the caches' }
      : { isOk: true, detail: 'waiting for the lease' };
  }

  /** A right that is missing is no reason to restart, or to leave the Service. */
  #writesCheck(): CheckResult {
    const refused = this.#controllers.map(({ refusedWrites }) => refusedWrites).filter((text) => text !== '');
    return { isOk: true, ...(refused.length === 0 ? {} : { detail: refused.join('; ') }) };
  }

  /** `inherited`: the imported kinds of the engine before it. */
  start(inherited: readonly KindId[] = []): void {
    const { logger } = this.#environment;
    this.#references.former.inherit(inherited);
    this.#running ??= Promise.all([
      this.#work().catch((error: unknown) => logger.error({ err: error }, 'the sync engine failed')),
      this.#checkSlices(),
    ]);
  }

  /** Gives up what is queued or in progress; returns how many keys that are. Expressions that had to be stopped before wait for each other, and
   * objects in progress with them: the sandbox rejects them. */
  abandon(): number {
    void this.#environment.sandbox?.[Symbol.asyncDispose]();
    return this.#controllers.reduce((sum, { queue }) => sum + queue.abandon(), 0);
  }

  async stop(): Promise<void> {
    this.#draining.abort();
    for (const { controller } of this.#kinds) controller.queue.shutDown();
    if (!this.#isWorking) this.#stopping.abort();
    await this.#running;
    await this.#environment.sandbox?.[Symbol.asyncDispose]();
  }

  /** Checks the slices that the host mirrors from our Endpoints copies. Only the leader does this. */
  async #checkSlices(): Promise<void> {
    const { config, leadership } = this.#environment;
    const { signal } = this.#draining;
    if (!config.sync.endpoints.enabled) return;
    await leadership.whenLeading(signal);
    await Promise.all([checkSlices(this.#environment, signal), this.#checkMirrors(signal)]);
  }

  async #checkMirrors(signal: AbortSignal): Promise<void> {
    const { clients, dryRun, hasHostControllers = true } = this.#environment;
    if (!hasHostControllers) return;
    const sync = this.#kinds.find(({ kind }) => kind.resource.plural === ENDPOINTS.plural);
    if (sync === undefined || dryRun !== undefined) return;
    const check = {
      ...this.#environment,
      client: clients.host,
      hostServices: this.#hostServices,
      copies: () => copiesOf(sync),
      report: (virtual: KubeObject, notice: RecordedEvent) => sync.report(virtual, notice),
    };
    await checkMirrors(check, signal);
  }

  /** Starts the informers, waits for cache sync and leadership, then starts the workers. Resolves when {@link stop} has drained them. */
  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    const references = this.#references;
    references.kinds.start(signal);
    const informers = Object.values(this.informers);
    const watching = informers.map((informer) => informer.run(signal));
    try {
      await Promise.all([
        ...informers.map((informer) => informer.whenSynced(signal)),
        references.kinds.whenOpened(signal),
      ]);
      await this.#environment.leadership.whenLeading(signal);
      signal.throwIfAborted();
      await references.former.recover(this.#recordedKinds(), signal);
      // Before all imports of removed kinds are gone, a reconcile would drop these kinds from the records.
      signal.throwIfAborted();
      // Before this process writes a copy, which would count as one of a known object. A failure is that of the first deletion.
      await this.#environment.objection().catch(() => undefined);
      signal.throwIfAborted();
      this.#isWorking = true;
      await Promise.all([
        Promise.all(this.#kinds.map((kind) => kind.run())).finally(() =>
          references.controller.queue.shutDown(),
        ),
        references.run(),
        this.#sweepUnmapped(),
      ]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#isWorking = false;
      this.#stopping.abort();
      await Promise.all([...watching, references.closed()]);
    }
  }

  async #sweepUnmapped(): Promise<void> {
    const { clients, config, names, clock, random, logger } = this.#environment;
    const attempts = { ...SWEEP_ATTEMPTS, clock, random, signal: this.#draining.signal };
    const parts = { host: clients.host, names, retry: attempts, logger };
    const [areListed] = await Promise.all([
      Promise.all(
        this.#kinds.map(({ kind: { resource }, virtual, writers }) =>
          deleteUnmapped({ ...parts, resource, virtual, writer: writers.host }),
        ),
      ),
      this.#references.sweepUnmapped(attempts),
    ]);
    if (config.sync.namespaces.kind === 'mappings' && areListed.includes(false) && !attempts.signal.aborted)
      logger.info(
        { command: CLEANUP },
        'if a mapping is removed, its copies stay, because they cannot be listed in all host namespaces; the command removes them',
      );
    this.#isSwept = true;
  }

  #recordedKinds(): readonly string[] {
    const { name } = this.#environment.config;
    return this.#kinds.flatMap(({ host }) => [...host.list()].flatMap((copy) => recordedKinds(copy, name)));
  }

  #virtualInformer(resource: Resource): ObservableInformer {
    const { compiled, names, readsUnsynced = false, virtualCaches } = this.#environment;
    const known = virtualCaches.get(resource.plural);
    if (known !== undefined) return known;
    const synced = compiled.find(({ kind }) => kind.resource.plural === resource.plural)?.kind;
    const indexes = synced === undefined ? {} : virtualIndexes(names, synced);
    const labelSelector = readsUnsynced ? undefined : synced?.labelSelector;
    const informer = this.#createInformer('virtual', resource, { indexes, labelSelector });
    virtualCaches.set(resource.plural, informer);
    return informer;
  }

  #hostServiceInformer(): ObservableInformer {
    const synced = this.#environment.compiled.find(
      ({ kind }) => kind.resource.plural === SERVICES.plural,
    )?.kind;
    if (synced !== undefined) return this.#hostInformer(synced);
    return this.#createInformer('host', SERVICES, { isMetadataOnly: true, transform: bookkeepingOf });
  }

  #hostInformer(kind: SyncedKind): ObservableInformer {
    const { resource, labelSelector } = kind;
    const indexes = hostIndexes(this.#environment.names, kind);
    return this.#createInformer('host', resource, { indexes, labelSelector });
  }

  #createInformer(
    cluster: ClusterName,
    resource: Resource,
    scope: Pick<InformerOptions, 'indexes' | 'isMetadataOnly' | 'labelSelector' | 'transform'>,
  ): ObservableInformer {
    const { budget, clients, config, servers, clock, random, logger, metrics } = this.#environment;
    return new CachingInformer({
      budget,
      client: clients[cluster],
      resource,
      namespaces: cluster === 'host' ? hostNamespaces(config) : undefined,
      transform: createOwnedFieldsStripper(),
      server: servers[cluster],
      ...scope,
      clock,
      random,
      logger,
      metrics: metrics.informer(cluster, resource.plural),
    });
  }
}

/** The copies of all kinds, and whether the virtual cluster has an original of them. */
function evidenceOf(kinds: readonly KindSync[]): CopiesEvidence {
  const all = kinds.map(({ kind, names, virtual, host }) => {
    const originals = new Set([...virtual.list()].map(({ metadata: { uid } }) => uid));
    const owners = [...host.list()].map((copy) => ownershipOf(copy, kind.resource, names));
    const ours = owners.flatMap((owner) => (owner.kind === 'ours' ? [owner.uid] : []));
    return { copies: ours.length, isAnyOriginalKnown: ours.some((uid) => originals.has(uid)) };
  });
  return {
    copies: all.reduce((sum, { copies }) => sum + copies, 0),
    isAnyOriginalKnown: all.some(({ isAnyOriginalKnown }) => isAnyOriginalKnown),
  };
}

function* copiesOf({ virtual: originals, host: copies, states }: KindSync): Generator<ServedCopy> {
  for (const virtual of originals.list()) {
    const host = states.find(objectKey(virtual))?.synced?.host;
    // In the cache as it was synced, so it is the copy, and is there.
    if (host !== undefined && copies.get(objectKey(host)) !== undefined) yield { virtual, host };
  }
}

/** What tells whose a host Service is. The rest can be large: kubectl's last-applied-configuration. */
function bookkeepingOf({ metadata }: KubeObject): KubeObject {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) =>
    isBookkeepingAnnotation(key),
  );
  const { managedFields: _managedFields, ...rest } = metadata;
  return { metadata: { ...rest, annotations: Object.fromEntries(annotations) } };
}
