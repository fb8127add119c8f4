/** The sync engine of one configuration: informers, one controller per kind, references. A reload replaces it. */

import { createSemaphore } from '../base/semaphore.ts';
import type { Random } from '../base/random.ts';
import { createInformer, type InformerOptions, type ObservableInformer } from '../kube/informer/informer.ts';
import { createOwnedFieldsStripper } from '../kube/informer/owned-fields.ts';
import type { ClusterName } from '../kube/types.ts';
import { SERVICES, type KubeObject, type Resource } from '../kube/object.ts';
import type { Controller } from './reconcile/controller.ts';
import type { SyncEnvironment } from './reconcile/environment.ts';
import {
  hostIndexes,
  KindSync,
  virtualIndexes,
  type KindEnvironment,
  type KindPlan,
} from './reconcile/kind-sync.ts';
import { reconcile } from './reconcile/reconciler.ts';
import { serviceDeletions } from './reconcile/guards.ts';
import { CLEANUP, deleteUnmapped, SWEEP_ATTEMPTS } from './reconcile/marked-copies.ts';
import type { References } from './references/references.ts';
import type { SyncedReferrers } from './synced-referrers.ts';
import type { CopiesEvidence, VirtualIdentity } from './virtual-identity.ts';
import { isBookkeepingAnnotation } from './translate/bookkeeping.ts';
import { recordedKinds } from './translate/last-synced.ts';
import { ownershipOf } from './translate/ownership.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';

export interface EngineOptions extends SyncEnvironment {
  readonly kinds: readonly KindPlan[];
  /** Filled with the caches of virtual objects, by plural. Kinds look up objects of other kinds in them. */
  readonly virtualCaches: Map<string, ObservableInformer>;
  readonly references: References;
  /** Filled with the synced kinds, for `references`. */
  readonly referrers: SyncedReferrers;
  readonly whenLeading: (signal: AbortSignal) => Promise<void>;
  readonly random: Random;
  /** Undefined: copies of objects that are gone are deleted. */
  readonly identity?: Pick<VirtualIdentity, 'objection'> | undefined;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #services: ObservableInformer;
  readonly #hostServices: ObservableInformer;
  /** By plural: all readers of a virtual resource share one cache. */
  readonly #virtualInformers = new Map<string, ObservableInformer>();
  readonly #kinds: readonly KindSync[];
  readonly #stopping = new AbortController();
  readonly #sweeping = new AbortController();
  #isSwept = false;
  #running: Promise<void> | undefined;
  #isWorking = false;

  constructor(options: EngineOptions) {
    const { config, references } = options;
    this.#options = options;
    this.#services = this.#virtualInformer(SERVICES);
    this.#hostServices = this.#hostServiceInformer();
    const environment: KindEnvironment = {
      ...options,
      services: this.#services,
      hostServices: this.#hostServices,
      inFlight: createSemaphore(config.workers),
      serviceDeletions: serviceDeletions(options.clock),
      virtualInformer: (resource) => this.#virtualInformer(resource),
      hostInformer: ({ resource, labelSelector }, indexes) =>
        resource.plural === SERVICES.plural
          ? this.#hostServices
          : this.#createInformer('host', resource, { indexes, labelSelector }),
      kinds: () => this.#kinds,
      objection: () => this.objection(),
    };
    this.#kinds = options.kinds.map(
      (plan) => new KindSync(plan, environment, references.index.recordsOf(plan.kind.resource), reconcile),
    );
    for (const kind of this.#kinds) {
      options.virtualCaches.set(kind.kind.resource.plural, kind.virtual);
      options.referrers.add(kind);
    }
    for (const kind of this.#kinds) kind.followRelated(options.virtualCaches);
  }

  /** By the name of their readiness check. */
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

  /** The workers have processed all objects of the first lists and all changes since. */
  get isIdle(): boolean {
    return this.#isWorking && this.#isSwept && this.#controllers.every(({ queue }) => queue.isIdle);
  }

  get initialOutcomes(): Readonly<Record<string, number>> {
    const sums: Record<string, number> = {};
    for (const { controller } of this.#kinds)
      for (const [outcome, count] of controller.initialOutcomes) sums[outcome] = (sums[outcome] ?? 0) + count;
    return sums;
  }

  get #controllers(): readonly Controller[] {
    return [...this.#kinds, this.#options.references].map(({ controller }) => controller);
  }

  get isWorking(): boolean {
    return this.#isWorking;
  }

  /** Starts the informers, waits for cache sync and leadership, then starts the workers. Resolves when {@link stop} has drained them. */
  run(): Promise<void> {
    this.#running ??= this.#work();
    return this.#running;
  }

  abandon(): number {
    return this.#controllers.reduce((sum, { queue }) => sum + queue.abandon(), 0);
  }

  async stop(): Promise<void> {
    this.#sweeping.abort();
    for (const { controller } of this.#kinds) controller.queue.shutDown();
    if (!this.#isWorking) this.#stopping.abort();
    await this.#running;
  }

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
      await this.#options.whenLeading(signal);
      signal.throwIfAborted();
      await references.former.recover(this.#recordedKinds(), signal);
      // Stopped before all imports of removed kinds are gone: a reconcile would drop these kinds from the records.
      signal.throwIfAborted();
      // Before this process writes a copy, which would count as one of a known object. A failure is that of the first deletion.
      await this.objection().catch(() => undefined);
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
    const { clients, config, names, clock, random, references, logger } = this.#options;
    const attempts = { ...SWEEP_ATTEMPTS, clock, random, signal: this.#sweeping.signal };
    const parts = { host: clients.host, names, retry: attempts, logger };
    const [areListed] = await Promise.all([
      Promise.all(
        this.#kinds.map(({ kind: { resource }, virtual, writers }) =>
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
    const all = this.#kinds.map(({ kind, virtual, host }) => {
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
    return this.#kinds.flatMap(({ host }) => [...host.list()].flatMap(recordedKinds));
  }

  #virtualInformer(resource: Resource): ObservableInformer {
    const known = this.#virtualInformers.get(resource.plural);
    if (known !== undefined) return known;
    const { kinds, names, readsUnsynced = false } = this.#options;
    const synced = kinds.find(({ kind }) => kind.resource.plural === resource.plural)?.kind;
    const indexes = synced === undefined ? {} : virtualIndexes(names, synced);
    const labelSelector = readsUnsynced ? undefined : synced?.labelSelector;
    const informer = this.#createInformer('virtual', resource, { indexes, labelSelector });
    this.#virtualInformers.set(resource.plural, informer);
    return informer;
  }

  /** Whole objects only if Services are synced; otherwise, only their bookkeeping is read. */
  #hostServiceInformer(): ObservableInformer {
    const { kinds, names } = this.#options;
    const synced = kinds.find(({ kind }) => kind.resource.plural === SERVICES.plural)?.kind;
    return this.#createInformer(
      'host',
      SERVICES,
      synced === undefined
        ? { isMetadataOnly: true, transform: bookkeepingOf }
        : { indexes: hostIndexes(names, synced) },
    );
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

/** What tells whose a host Service is. The rest can be large: kubectl's last-applied-configuration. */
function bookkeepingOf({ metadata }: KubeObject): KubeObject {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) =>
    isBookkeepingAnnotation(key),
  );
  const { managedFields: _managedFields, ...rest } = metadata;
  return { metadata: { ...rest, annotations: Object.fromEntries(annotations) } };
}
