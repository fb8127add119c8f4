/** The sync engine of one configuration: informers, one controller per kind, references, readiness. A reload replaces it. */

import type { Sandbox } from '../expressions/types.ts';
import { createSemaphore } from '../base/semaphore.ts';
import type { CheckResult, Checks } from '../base/health.ts';
import type { Random } from '../base/random.ts';
import { createInformer, type InformerOptions, type ObservableInformer } from '../kube/informer/informer.ts';
import { createOwnedFieldsStripper } from '../kube/informer/object-cache.ts';
import type { ClusterName, RecordedEvent } from '../kube/types.ts';
import { ENDPOINTS, keyOf, objectKey, SERVICES, type KubeObject, type Resource } from '../kube/object.ts';
import type { Controller } from './reconcile/controller.ts';
import type { SyncEnvironment } from './reconcile/environment.ts';
import {
  hostIndexes,
  KindSync,
  virtualIndexes,
  type KindEnvironment,
  type KindPlan,
} from './reconcile/kind-sync.ts';
import type { SyncedKind } from './kinds/kind.ts';
import { reconcile } from './reconcile/reconciler.ts';
import { serviceDeletions } from './reconcile/guards.ts';
import { CLEANUP, deleteUnmapped, SWEEP_ATTEMPTS } from './reconcile/marked-copies.ts';
import type { References } from './references/references.ts';
import { checkMirrors, type ServedCopy } from './mirror-check.ts';
import { checkSlices } from './slice-check.ts';
import type { Leadership } from './leadership.ts';
import type { CopiesEvidence, VirtualIdentity } from './virtual-identity.ts';
import { isBookkeepingAnnotation, ownershipOf } from './translate/bookkeeping.ts';
import { recordedKinds, type KindId } from './translate/last-synced.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import { ownerOf } from './translation.ts';

export interface Generation {
  readonly checks: Checks;
  readonly isCached: boolean;
  /** The workers have processed all objects of the first lists and all changes since. */
  readonly isIdle: boolean;
  readonly objects: Readonly<Record<string, number>>;
  readonly initialOutcomes: Readonly<Record<string, number>>;
  readonly importedKinds: readonly KindId[];
  /** `endpoints: patches[2], path metadata.labels.tier`. */
  readonly pathsNeverMatched: readonly string[];
  /** `inherited`: the imported kinds of the generation before it. */
  start(inherited?: readonly KindId[]): void;
  stop(): Promise<void>;
  /** Gives up what is queued or in progress; returns how many keys that are. */
  abandon(): number;
}

export interface EngineOptions extends SyncEnvironment {
  readonly kinds: readonly KindPlan[];
  /** Filled with the sync of each kind. */
  readonly syncs: KindSync[];
  /** Filled with the caches of virtual objects, by plural: all readers of a resource share one. Kinds look up objects of other kinds in them. */
  readonly virtualCaches: Map<string, ObservableInformer>;
  readonly references: References;
  readonly leadership: Leadership;
  /** Undefined: no patch has an expression. */
  readonly sandbox: Sandbox | undefined;
  readonly random: Random;
  /** Undefined: copies of objects that are gone are deleted. */
  readonly identity?: Pick<VirtualIdentity, 'objection'> | undefined;
  /** False: the host runs no controllers, so Endpoints are not mirrored to slices. Default true. */
  readonly hasHostControllers?: boolean;
}

export class Engine implements Generation {
  readonly kinds: readonly KindSync[];
  readonly #options: EngineOptions;
  readonly #services: ObservableInformer;
  readonly #hostServices: ObservableInformer;
  readonly #stopping = new AbortController();
  /** Aborts what does not wait in a queue, as soon as the queues are drained. */
  readonly #draining = new AbortController();
  #isSwept = false;
  #running: Promise<unknown> | undefined;
  #isWorking = false;

  constructor(options: EngineOptions) {
    const { config, references } = options;
    this.#options = options;
    this.kinds = options.syncs;
    this.#services = this.#virtualInformer(SERVICES);
    this.#hostServices = this.#hostServiceInformer();
    const deletions = serviceDeletions(options.clock);
    this.#hostServices.subscribe(({ type, key, object, previous }) => {
      const isReplaced = previous !== undefined && previous.metadata.uid !== object.metadata.uid;
      if (type === 'deleted' || isReplaced) deletions.set(key, true);
    });
    const environment: KindEnvironment = {
      ...options,
      services: this.#services,
      hostServices: this.#hostServices,
      inFlight: createSemaphore(config.workers),
      serviceDeletions: deletions,
      kinds: this.kinds,
      objection: () => this.objection(),
    };
    for (const plan of options.kinds) {
      const { resource } = plan.kind;
      const isService = resource.plural === SERVICES.plural;
      const parts = {
        virtual: this.#virtualInformer(resource),
        host: isService ? this.#hostServices : this.#hostInformer(plan.kind),
        references: references.changes.recordsOf(resource),
      };
      options.syncs.push(new KindSync(plan, environment, parts, reconcile));
    }
    for (const kind of this.kinds) kind.followRelated(options.virtualCaches);
    this.#followOwner();
  }

  /** An owner of another kind than Service exists at the start, and its uid is read again when it may have been created again. */
  #followOwner(): void {
    const { config, owner, references } = this.#options;
    const wanted = ownerOf(config);
    if (wanted?.kind !== SERVICES.kind || config.sync.namespaces.kind !== 'single') return;
    const { apiVersion, kind, name } = wanted;
    const ownerKey = keyOf({ namespace: config.host.namespace, name });
    this.#hostServices.subscribe(({ type, key, object }) => {
      if (key !== ownerKey || type === 'deleted') return;
      if (!owner.replace({ apiVersion, kind, name, uid: object.metadata.uid ?? '' })) return;
      for (const sync of this.kinds) sync.renewAll();
      references.renewAll();
    });
  }

  get informers(): Readonly<Record<string, ObservableInformer>> {
    const caches = this.kinds.flatMap(({ kind: { resource }, virtual, host }) => [
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
    const { references, sandbox } = this.#options;
    return {
      ...Object.fromEntries(caches.map(([name, informer]) => [name, () => informerCheck(informer)])),
      workers: () => this.#workersCheck(),
      writes: () => this.#writesCheck(),
      references: () => ({ isOk: true, detail: references.kinds.detail }),
      sandbox: () => ({
        isOk: true,
        detail: sandbox ? `${sandbox.pids.length} processes` : 'not needed, no patch has an expression',
      }),
    };
  }

  get isCached(): boolean {
    const areSynced = Object.values(this.informers).every(({ isSynced }) => isSynced);
    return areSynced && this.#options.references.kinds.isOpened;
  }

  get objects(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.informers).map(([name, { size }]) => [name, size]));
  }

  get importedKinds(): readonly KindId[] {
    return this.#options.references.importedKinds;
  }

  get pathsNeverMatched(): readonly string[] {
    return this.kinds.flatMap(({ kind: { resource }, pipeline }) =>
      pipeline.neverMatched().map((patch) => `${resource.plural}: ${patch}`),
    );
  }

  get isIdle(): boolean {
    return this.#isWorking && this.#isSwept && this.#controllers.every(({ isIdle }) => isIdle);
  }

  get initialOutcomes(): Readonly<Record<string, number>> {
    const sums: Record<string, number> = {};
    for (const { controller } of this.kinds)
      for (const [outcome, count] of controller.initialOutcomes) sums[outcome] = (sums[outcome] ?? 0) + count;
    return sums;
  }

  get #controllers(): readonly Controller[] {
    return [...this.kinds, this.#options.references].map(({ controller }) => controller);
  }

  #workersCheck(): CheckResult {
    if (this.#isWorking) return { isOk: true };
    return this.#options.leadership.isLeading
      ? { isOk: false, detail: 'waiting for the caches' }
      : { isOk: true, detail: 'waiting for the lease' };
  }

  /** A right that is missing is no reason to restart, or to leave the Service. */
  #writesCheck(): CheckResult {
    const refused = this.#controllers.map(({ refusedWrites }) => refusedWrites).filter((text) => text !== '');
    return { isOk: true, ...(refused.length === 0 ? {} : { detail: refused.join('; ') }) };
  }

  start(inherited: readonly KindId[] = []): void {
    const { references, logger } = this.#options;
    references.former.inherit(inherited);
    this.#running ??= Promise.all([
      this.#work().catch((error: unknown) => logger.error({ err: error }, 'the sync engine failed')),
      this.#checkSlices(),
    ]);
  }

  /** Expressions that had to be stopped before wait for each other, and objects in progress with them: the sandbox rejects them. */
  abandon(): number {
    void this.#options.sandbox?.[Symbol.asyncDispose]();
    return this.#controllers.reduce((sum, { queue }) => sum + queue.abandon(), 0);
  }

  async stop(): Promise<void> {
    this.#draining.abort();
    for (const { controller } of this.kinds) controller.queue.shutDown();
    if (!this.#isWorking) this.#stopping.abort();
    await this.#running;
    await this.#options.sandbox?.[Symbol.asyncDispose]();
  }

  /** Checks the slices that the host mirrors from our Endpoints copies. Only the leader does this. */
  async #checkSlices(): Promise<void> {
    const { config, leadership } = this.#options;
    const { signal } = this.#draining;
    if (!config.sync.endpoints.enabled) return;
    await leadership.whenLeading(signal);
    await Promise.all([checkSlices(this.#options, signal), this.#checkMirrors(signal)]);
  }

  async #checkMirrors(signal: AbortSignal): Promise<void> {
    const { clients, dryRun, hasHostControllers = true } = this.#options;
    if (!hasHostControllers) return;
    const sync = this.kinds.find(({ kind }) => kind.resource.plural === ENDPOINTS.plural);
    if (sync === undefined || dryRun !== undefined) return;
    const check = {
      ...this.#options,
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
    const { references } = this.#options;
    references.kinds.start(signal);
    const informers = Object.values(this.informers);
    const watching = informers.map((informer) => informer.run(signal));
    try {
      await Promise.all([
        ...informers.map((informer) => informer.whenSynced(signal)),
        references.kinds.whenOpened(signal),
      ]);
      await this.#options.leadership.whenLeading(signal);
      signal.throwIfAborted();
      await references.former.recover(this.#recordedKinds(), signal);
      // Before all imports of removed kinds are gone, a reconcile would drop these kinds from the records.
      signal.throwIfAborted();
      // Before this process writes a copy, which would count as one of a known object. A failure is that of the first deletion.
      await this.objection().catch(() => undefined);
      signal.throwIfAborted();
      this.#isWorking = true;
      await Promise.all([
        Promise.all(this.kinds.map((kind) => kind.run())).finally(() =>
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
    const { clients, config, names, clock, random, references, logger } = this.#options;
    const attempts = { ...SWEEP_ATTEMPTS, clock, random, signal: this.#draining.signal };
    const parts = { host: clients.host, names, retry: attempts, logger };
    const [areListed] = await Promise.all([
      Promise.all(
        this.kinds.map(({ kind: { resource }, virtual, writers }) =>
          deleteUnmapped({ ...parts, resource, virtual, writer: writers.host }),
        ),
      ),
      references.sweepUnmapped(attempts),
    ]);
    if (config.sync.namespaces.kind === 'mappings' && areListed.includes(false) && !attempts.signal.aborted)
      logger.info(
        { command: CLEANUP },
        'if a mapping is removed, its copies stay, because they cannot be listed in all host namespaces; the command removes them',
      );
    this.#isSwept = true;
  }

  async objection(): Promise<string | undefined> {
    return this.#options.identity?.objection(() => this.#evidence());
  }

  /** The copies of all kinds, and whether the virtual cluster has an original of them. */
  #evidence(): CopiesEvidence {
    const { names } = this.#options;
    const all = this.kinds.map(({ kind, virtual, host }) => {
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

  #recordedKinds(): readonly string[] {
    return this.kinds.flatMap(({ host }) => [...host.list()].flatMap(recordedKinds));
  }

  #virtualInformer(resource: Resource): ObservableInformer {
    const { kinds, names, readsUnsynced = false, virtualCaches } = this.#options;
    const known = virtualCaches.get(resource.plural);
    if (known !== undefined) return known;
    const synced = kinds.find(({ kind }) => kind.resource.plural === resource.plural)?.kind;
    const indexes = synced === undefined ? {} : virtualIndexes(names, synced);
    const labelSelector = readsUnsynced ? undefined : synced?.labelSelector;
    const informer = this.#createInformer('virtual', resource, { indexes, labelSelector });
    virtualCaches.set(resource.plural, informer);
    return informer;
  }

  #hostServiceInformer(): ObservableInformer {
    const synced = this.#options.kinds.find(({ kind }) => kind.resource.plural === SERVICES.plural)?.kind;
    if (synced !== undefined) return this.#hostInformer(synced);
    return this.#createInformer('host', SERVICES, { isMetadataOnly: true, transform: bookkeepingOf });
  }

  #hostInformer(kind: SyncedKind): ObservableInformer {
    const { resource, labelSelector } = kind;
    const indexes = hostIndexes(this.#options.names, kind);
    return this.#createInformer('host', resource, { indexes, labelSelector });
  }

  #createInformer(
    cluster: ClusterName,
    resource: Resource,
    scope: Pick<InformerOptions, 'indexes' | 'isMetadataOnly' | 'labelSelector' | 'transform'>,
  ): ObservableInformer {
    const { budget, clients, config, servers, clock, random, logger, metrics } = this.#options;
    return createInformer({
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

/** Watches get a bookmark every minute, so a cache without an event for this long is stale. */
const STALENESS_MAX_MS = 5 * 60_000;

export function informerCheck(informer: ObservableInformer): CheckResult {
  const { lastError, isRewound } = informer.condition;
  const why = lastError === undefined ? '' : `, last error: ${lastError}`;
  if (!informer.isSynced) return { isOk: false, detail: `not synced yet${why}` };
  if (isRewound)
    return { isOk: false, detail: `the server was restored, its objects are not listed yet${why}` };
  const staleness = `last event ${Math.round(informer.stalenessMs / 1000)} s ago`;
  return {
    isOk: informer.stalenessMs < STALENESS_MAX_MS,
    detail: `${informer.size} objects, ${staleness}${why}`,
  };
}
