/** Everything that syncs one kind: caches of both sides, work queue, controller, and the guards of its objects. */

import type { Semaphore } from '../base/semaphore.ts';
import type { ObservableInformer } from '../kube/informer/informer.ts';
import {
  keyOf,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../kube/object.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import { isOptedOut } from './reconcile/decide.ts';
import type { CacheEvent, ClusterName, IndexFunctions } from '../kube/types.ts';
import { WorkQueue, type QueueMetrics } from '../kube/work-queue.ts';
import {
  type SyncEnvironment,
  namespaceAdvice,
  namespaceCreator,
  type ReferenceRecords,
} from './reconcile/environment.ts';
import type { SyncedKind } from './kinds/kind.ts';
import type { PatchPipeline } from './patch/types.ts';
import {
  FoughtDeletions,
  hasLostCopy,
  noteDeletion,
  OwnDeletions,
  type ServiceDeletions,
} from './reconcile/guards.ts';
import { Controller, type ControllerMetrics } from './reconcile/controller.ts';
import { createCopyForge } from './reconcile/copy.ts';
import {
  BY_HOST_KEY,
  BY_HOST_SERVICE,
  createObserver,
  foreignServices,
  hostIndexes,
  type ForeignService,
  keysChangedSinceCopied,
  keysOfHostEvent,
  keysOfHostObject,
  keysOfServiceEvent,
  keysOfVirtualEvent,
  rivalsOf,
} from './reconcile/observer.ts';
import { Reconciler } from './reconcile/reconciler.ts';
import { ObjectStates } from './reconcile/object-state.ts';
import { createWriter, type WriteMetrics } from './reconcile/writer.ts';
import { namedVirtual, ownershipOf } from './translate/ownership.ts';
import { deleteUnmapped, type UnmappedOptions } from './references/unmapped-copies.ts';
import type { CopiesEvidence } from './virtual-identity.ts';

/** One kind with its patches. */
export interface KindPlan {
  readonly kind: SyncedKind;
  readonly pipeline: PatchPipeline;
}

export interface KindEngineMetrics {
  readonly writes: WriteMetrics;
  queue(kind: Resource): QueueMetrics;
  controller(kind: Resource): ControllerMetrics;
}

/** What all kinds share. */
export interface KindEnvironment extends SyncEnvironment {
  readonly metrics: KindEngineMetrics;
  /** Bounds the requests of all kinds together. */
  readonly inFlight: Semaphore;
  readonly services: ObservableInformer;
  /** Those of the host, from which a copy would get traffic. */
  readonly hostServices: ObservableInformer;
  readonly serviceDeletions: ServiceDeletions;
  /** The one cache of this resource, with the indexes of its kind. */
  virtualInformer(resource: Resource): ObservableInformer;
  hostInformer(kind: SyncedKind, indexes: IndexFunctions): ObservableInformer;
  /** Undefined if the kind is not synced. */
  engines(): readonly KindEngine[];
  /** Why the copies of objects that are gone must stay for now. */
  objection(): Promise<string | undefined>;
}

export class KindEngine {
  readonly kind: SyncedKind;
  readonly virtual: ObservableInformer;
  readonly host: ObservableInformer;
  readonly #environment: KindEnvironment;
  readonly #queue;
  readonly #controller: Controller;
  readonly #states = new ObjectStates();
  readonly #ownDeletions: OwnDeletions;
  readonly #foreignService: ForeignService;
  #isWorking = false;

  constructor({ kind, pipeline }: KindPlan, environment: KindEnvironment, references: ReferenceRecords) {
    const { names, clock, metrics, hostServices } = environment;
    this.kind = kind;
    this.#environment = environment;
    this.virtual = environment.virtualInformer(kind.resource);
    this.host = environment.hostInformer(kind, hostIndexes(names, kind));
    this.#foreignService = foreignServices(kind, names, hostServices);
    this.#queue = new WorkQueue({ clock, metrics: metrics.queue(kind.resource) });
    this.#ownDeletions = new OwnDeletions(clock);
    this.#controller = this.#createController(this.#createReconciler(pipeline, references));
    this.#connect();
  }

  /** Called when something that the copy depends on has changed. */
  enqueue(key: ObjectKey): void {
    this.#controller.enqueue(key, 'live');
  }

  /** Runs until the queue is shut down and empty. */
  async run(): Promise<void> {
    this.#isWorking = true;
    const { virtual, host } = this;
    const changed = keysChangedSinceCopied({ virtual, host, translator: this.#environment.names });
    for (const key of changed) this.#controller.enqueue(key, 'changed');
    try {
      await this.#controller.run();
    } finally {
      this.#isWorking = false;
    }
  }

  /** Deletes copies in host namespaces that are not mapped any more. */
  sweepUnmapped(attempts: UnmappedOptions['retry']): Promise<void> {
    const { clients, names, logger } = this.#environment;
    const { virtual, kind } = this;
    const writer = this.#createWriter('host');
    return deleteUnmapped({
      host: clients.host,
      resource: kind.resource,
      names,
      virtual,
      writer,
      retry: attempts,
      logger,
    });
  }

  shutDown(): void {
    this.#queue.shutDown();
  }

  /** Nothing is queued or in progress. */
  get isIdle(): boolean {
    return this.#queue.isIdle;
  }

  /** Drops all queued keys. Returns how many objects were queued or in progress. */
  abandon(): number {
    return this.#queue.abandon();
  }

  /** Of the virtual cluster: the uids that the copies record, as far as it has objects with them. */
  evidence(): CopiesEvidence {
    const { names } = this.#environment;
    const originals = new Set([...this.virtual.list()].map(({ metadata: { uid } }) => uid));
    const owners = [...this.host.list()].map((copy) => ownershipOf(copy, this.kind.resource, names));
    const ours = owners.flatMap((owner) => (owner.kind === 'ours' ? [owner.uid] : []));
    return { copies: ours.length, isAnyOriginalKnown: ours.some((uid) => originals.has(uid)) };
  }

  #createReconciler(pipeline: PatchPipeline, references: ReferenceRecords): Reconciler {
    const { config, clients, names, labels, owner, recorder, clock, services } = this.#environment;
    const { kind, virtual, host } = this;
    const foreignService = this.#foreignService;
    const decide = { requireService: config.requireService, kind };
    return new Reconciler({
      kind,
      observe: createObserver({
        virtual,
        services,
        host,
        translator: names,
        states: this.#states,
        decide,
        foreignService,
        kind,
      }),
      decide,
      onHostDelete: config.onHostDelete,
      forge: createCopyForge({
        kind,
        names,
        labels,
        pipeline,
        owner,
        foreignService,
      }),
      readsHostObject: pipeline.readsHostObject,
      states: this.#states,
      host: {
        client: clients.host,
        cache: host,
        writer: this.#ownDeletions.noting(this.#createWriter('host'), (target) => this.#deleting(target)),
      },
      virtual: { client: clients.virtual, cache: virtual, services, writer: this.#createWriter('virtual') },
      foughtDeletions: new FoughtDeletions(clock),
      clock,
      recorder,
      references: this.#reported(references),
      listener: this.#environment.listener,
      enqueue: (key) => this.enqueue(key),
      ownerOf: (copy) => {
        const owner = namedVirtual(copy, kind.resource, names);
        return owner && keyOf(owner);
      },
      created: (target) => this.#hostChanged(target),
      released: (target) => {
        for (const key of virtual.byIndex(BY_HOST_KEY, keyOf(target))) this.enqueue(key);
        this.#hostChanged(target);
      },
      objection: () => this.#environment.objection(),
      areDependentsRead: (target) => this.#areDependentsRead(keyOf(target)),
      isDeletedAlong: async (key, target) => (await this.#deleter()?.isDeletingVirtual(key, target)) === true,
      patched: (object) => {
        for (const engine of this.#environment.engines()) engine.enqueueRelated(kind.resource, object);
      },
    });
  }

  #reported(records: ReferenceRecords): ReferenceRecords {
    const { listener } = this.#environment;
    if (listener === undefined) return records;
    return {
      ...records,
      recordReferences: (key, references) => {
        listener.referenced(this.kind, key, references);
        records.recordReferences(key, references);
      },
    };
  }

  #createWriter(cluster: ClusterName) {
    const { clients, inFlight, dryRun, logger, metrics, listener } = this.#environment;
    return createWriter({
      client: clients[cluster],
      resource: this.kind.resource,
      cache: this[cluster],
      // Whether a Service is synced, and which object has a host name, depends on the virtual objects.
      publishesDeletions: cluster === 'virtual',
      inFlight,
      dryRun,
      logger,
      metrics: metrics.writes,
      listener,
    });
  }

  #createController(reconciler: Reconciler): Controller {
    const { recorder, dryRun, clock, logger, metrics } = this.#environment;
    const { resource } = this.kind;
    const createNamespace = namespaceCreator(this.#environment);
    return new Controller({
      queue: this.#queue,
      name: resource.plural,
      identify: (key) => ({ group: resource.group, kind: resource.kind, key }),
      reconcile: (key) => reconciler.reconcile(key),
      warn: (key, warning) => {
        const object = this.virtual.get(key);
        if (object !== undefined) recorder.event(object, resource, { type: 'Warning', ...warning });
      },
      createNamespace: createNamespace && ((key) => createNamespace(parseKey(key).namespace)),
      namespaceAdvice: namespaceAdvice(this.#environment.config),
      dryRun,
      clock,
      logger,
      metrics: metrics.controller(resource),
    });
  }

  /** Events only enqueue keys. The reconcile reads the current state from the caches. */
  #connect(): void {
    const { names: translator, services, hostServices } = this.#environment;
    const context = { virtual: this.virtual, translator, kind: this.kind };
    const enqueueAll = (keys: readonly ObjectKey[], { isInitial, mayBeRestored }: CacheEvent): void => {
      for (const key of keys) {
        // The same versions may have other content.
        const state = mayBeRestored === true ? this.#states.find(key) : undefined;
        if (state !== undefined) state.synced = undefined;
        this.#controller.enqueue(key, isInitial ? 'initial' : 'live');
      }
    };
    this.virtual.subscribe((event) => enqueueAll(keysOfVirtualEvent(event, context), event));
    services.subscribe((event) => enqueueAll(keysOfServiceEvent(event, context), event));
    hostServices.subscribe((event) => enqueueAll(this.#keysOfHostService(event.key), event));
    this.host.subscribe((event) => {
      const keys = keysOfHostEvent(event, context);
      // Seen by a standby, a deletion is the leader's. A copy that a restored host never had was not deleted by a user.
      if (event.type === 'deleted' && event.mayBeRestored !== true && this.#isWorking)
        for (const key of keys) this.#noteDeletion(key, event);
      enqueueAll(keys, event);
    });
  }

  /** This process has created or deleted a copy, which may be the host Service that other copies get traffic from. */
  #hostChanged(target: NamespacedName): void {
    if (this.host !== this.#environment.hostServices) return;
    for (const engine of this.#environment.engines())
      for (const key of engine.#keysOfHostService(keyOf(target))) engine.enqueue(key);
  }

  /** The objects that are refused because of this host Service, those whose copies get traffic from it, and their rivals for a host name. */
  #keysOfHostService(service: ObjectKey): readonly ObjectKey[] {
    const { virtual, host, kind } = this;
    const context = { virtual, translator: this.#environment.names, kind };
    const refused = this.#states.awaiting(service).flatMap((key) => rivalsOf(key, context));
    const copied = [...host.byIndex(BY_HOST_SERVICE, service)].flatMap((key) => {
      const object = host.get(key);
      return object === undefined ? [] : keysOfHostObject(key, [object], context);
    });
    return [...refused, ...copied];
  }

  /** A host object was deleted. What only was in the place of this key's copy is not the copy. */
  #noteDeletion(key: ObjectKey, { key: hostKey, object }: CacheEvent): void {
    const { uid = '' } = object.metadata;
    if (this.#ownDeletions.has(uid)) return;
    const virtualUid = this.#copiedUid(key, object);
    if (virtualUid === undefined) return;
    const isConsequence = this.#environment.serviceDeletions.get(hostKey) === true;
    const state = this.#states.of(key);
    const nowMs = this.#environment.clock.monotonicMs();
    state.deletions = noteDeletion(state.deletions, nowMs, isConsequence ? undefined : virtualUid);
  }

  /** The uid of the virtual object of which the host object was this key's copy, '' if unknown; undefined: it was not the copy. */
  #copiedUid(key: ObjectKey, object: KubeObject): string | undefined {
    const state = this.#states.find(key);
    if (state?.isKnownCopy(object) === true) return state.synced?.virtual.metadata.uid ?? '';
    const owner = ownershipOf(object, this.kind.resource, this.#environment.names, parseKey(key));
    return owner.kind === 'ours' && keyOf(owner.virtual) === key ? (owner.uid ?? '') : undefined;
  }

  /** This process is about to delete a copy. */
  #deleting(target: NamespacedName): void {
    if (this.kind.deletesAlong.length === 0) return;
    this.#environment.serviceDeletions.set(keyOf(target), true);
    for (const engine of this.#environment.engines())
      if (this.#deletesAlong(engine)) engine.noteDeletedAlong(keyOf(target));
  }

  #deletesAlong({ kind }: KindEngine): boolean {
    return this.kind.deletesAlong.some(({ plural }) => plural === kind.resource.plural);
  }

  /** No object is queued whose copy gets traffic from the host Service at this key: a change on the host may be the reason. */
  #areDependentsRead(hostKey: ObjectKey): boolean {
    if (this.host !== this.#environment.hostServices) return true;
    return this.#environment
      .engines()
      .every((engine) => engine.#keysOfHostService(hostKey).every((key) => !engine.#queue.has(key)));
  }

  /** The engine of the kind along with whose objects API servers delete those of this kind. */
  #deleter(): KindEngine | undefined {
    return this.#environment.engines().find((engine) => engine.#deletesAlong(this));
  }

  /** The object at this host key is deleted together with its Service. */
  noteDeletedAlong(hostKey: ObjectKey): void {
    const uid = this.host.get(hostKey)?.metadata.uid;
    if (uid !== undefined) this.#ownDeletions.note(uid);
  }

  /** A user has deleted the copy of this object, which is deleted for that. The event of the copy's deletion may still be on its way. */
  async isDeletingVirtual(key: ObjectKey, target: NamespacedName): Promise<boolean> {
    const { clients, dryRun, clock } = this.#environment;
    const virtual = this.virtual.get(key);
    if (virtual === undefined || isOptedOut(virtual) || dryRun !== undefined) return false;
    const uid = this.host.get(keyOf(target))?.metadata.uid;
    const isGone = async (): Promise<boolean> =>
      (await ignoreNotFound(clients.host.get(this.kind.resource, target))) === undefined;
    if (uid !== undefined && (await isGone())) this.host.observeAbsence(keyOf(target), uid);
    const deletions = this.#states.find(key)?.deletions;
    return hasLostCopy(deletions, clock.monotonicMs(), virtual.metadata.uid ?? '');
  }

  /** Watches the kinds whose objects decide whether objects of this kind are synced. */
  followRelated(virtualCaches: ReadonlyMap<string, ObservableInformer>): void {
    for (const [plural, keysOf] of Object.entries(this.kind.relatedKinds)) {
      virtualCaches.get(plural)?.subscribe(({ object, previous, isInitial }) => {
        const keys = new Set(
          [object, previous].flatMap((state) => (state === undefined ? [] : keysOf(state))),
        );
        for (const key of keys) this.#controller.enqueue(key, isInitial ? 'initial' : 'live');
      });
    }
  }

  /** An object of another kind has changed, which may decide whether objects of this kind are synced. */
  enqueueRelated({ plural }: Resource, object: KubeObject): void {
    for (const key of this.kind.relatedKinds[plural]?.(object) ?? []) this.enqueue(key);
  }
}
