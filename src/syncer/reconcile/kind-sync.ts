/** The sync of one kind: caches, states, controller and writers, and what a change means to objects of other kinds. The reconciler works on it. */

import { objectField, objectList, text, type JsonObject } from '../../base/json.ts';
import type { Semaphore } from '../../base/semaphore.ts';
import { Budget } from '../../expressions/local/budget.ts';
import type { ObservableInformer } from '../../kube/informer/informer.ts';
import {
  asJson,
  isTerminating,
  keyOf,
  objectKey,
  parseKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { CacheEvent, ClusterName, Lister, RecordedEvent } from '../../kube/types.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { isSyncedByVcluster } from '../kinds/synced-kinds.ts';
import type { PatchPipeline, TranslatedReference } from '../patch/types.ts';
import { recordedRevision, recordOf } from '../translate/last-synced.ts';
import { namedVirtual, ownershipOf, virtualOf } from '../translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import { isStandIn } from '../translate/stand-in.ts';
import type { NameTranslator } from '../translate/types.ts';
import { Controller, type Reconcile } from './controller.ts';
import { CopyForge, type ForeignService } from './copy.ts';
import { isOptedOut, type DecideOptions } from './decide.ts';
import type { ReferenceRecords, SyncEnvironment } from './environment.ts';
import { FoughtDeletions, noteDeletion, notingDeletions, ownDeletions, type OwnDeletions } from './guards.ts';
import type { KeptEvaluations } from './kept-evaluations.ts';
import type { ReconcileResult } from './left.ts';
import { ObjectStates } from './object-state.ts';
import { createWriter, type Writer } from './writer.ts';

export interface KindPlan {
  readonly kind: SyncedKind;
  readonly pipeline: PatchPipeline;
  /** The evaluator of the pipeline; undefined: no patch has an expression. */
  readonly evaluations: KeptEvaluations | undefined;
}

export interface KindEnvironment extends SyncEnvironment {
  /** Bounds the requests of all kinds together. */
  readonly inFlight: Semaphore;
  readonly services: ObservableInformer;
  readonly hostServices: ObservableInformer;
  readonly damagedServices: ReadonlyMap<ObjectKey, ObjectKey>;
  /** Of the engine: all of them once one runs. */
  readonly kinds: readonly KindSync[];
}

export class KindSync {
  readonly kind: SyncedKind;
  readonly pipeline: PatchPipeline;
  readonly evaluations: KeptEvaluations | undefined;
  readonly environment: KindEnvironment;
  readonly names;
  readonly decide: DecideOptions;
  readonly virtual: ObservableInformer;
  readonly host: ObservableInformer;
  readonly services: ObservableInformer;
  readonly writers: Readonly<Record<ClusterName, Writer>>;
  readonly states = new ObjectStates();
  readonly references: ReferenceRecords;
  readonly foreignService: ForeignService;
  readonly forge: CopyForge;
  readonly foughtDeletions: FoughtDeletions;
  readonly controller: Controller;
  readonly #ownDeletions: OwnDeletions;
  #isWorking = false;

  constructor(
    { kind, pipeline, evaluations }: KindPlan,
    environment: KindEnvironment,
    { virtual, host, references }: Pick<KindSync, 'virtual' | 'host' | 'references'>,
    reconcile: (sync: KindSync, key: ObjectKey) => Promise<ReconcileResult>,
  ) {
    const { names, clock, config, hostServices, services } = environment;
    this.kind = kind;
    this.pipeline = pipeline;
    this.evaluations = evaluations;
    this.environment = environment;
    this.names = names;
    const isShared = isSyncedByVcluster(config, kind.resource);
    this.decide = { requireService: config.requireService, kind, isSyncedByVcluster: isShared };
    this.references = references;
    this.virtual = virtual;
    this.host = host;
    this.services = services;
    this.foreignService = foreignServices(this, hostServices);
    this.forge = new CopyForge({ ...environment, kind, pipeline, foreignService: this.foreignService });
    this.foughtDeletions = new FoughtDeletions(clock);
    this.#ownDeletions = ownDeletions(clock);
    this.writers = {
      host: notingDeletions(this.#createWriter('host'), this.#ownDeletions, (target) =>
        this.#deleting(target),
      ),
      virtual: this.#createWriter('virtual'),
    };
    this.controller = this.#createController((key) => reconcile(this, key));
    this.#connect();
  }

  enqueue(key: ObjectKey): void {
    this.controller.enqueue(key, 'live');
  }

  /** What the copies are made from has changed, although neither side has. */
  renewAll(): void {
    this.#renew([...this.virtual.list()].map(objectKey));
  }

  #renew(keys: Iterable<ObjectKey>): void {
    for (const key of keys) {
      this.states.find(key)?.renew();
      this.enqueue(key);
    }
  }

  async run(): Promise<void> {
    this.#isWorking = true;
    for (const key of keysChangedSinceCopied(this)) this.controller.enqueue(key, 'changed');
    try {
      await this.controller.run();
    } finally {
      this.#isWorking = false;
    }
  }

  nowMs(): number {
    return this.environment.clock.monotonicMs();
  }

  /** For the evaluations of one reconcile, in both directions; undefined: no patch has an expression. */
  newBudget(): Budget | undefined {
    return this.evaluations && new Budget();
  }

  report(virtual: KubeObject | undefined, ...notices: readonly RecordedEvent[]): void {
    const { recorder } = this.environment;
    if (virtual !== undefined)
      for (const notice of notices) recorder.event(virtual, this.kind.resource, notice);
  }

  patchStatus(virtual: KubeObject, patch: JsonObject, reason: string): Promise<KubeObject | undefined> {
    const { name, namespace = '', uid = null, resourceVersion = null } = virtual.metadata;
    const body = { ...patch, metadata: { uid, resourceVersion } };
    return this.writers.virtual.mergePatch({ name, namespace }, body, reason, 'status');
  }

  recordReferences(key: ObjectKey, references: readonly TranslatedReference[]): void {
    this.environment.listener?.referenced(this.kind, key, references);
    this.references.recordReferences(key, references);
  }

  ownerOf(copy: KubeObject): ObjectKey | undefined {
    const owner = namedVirtual(copy, this.kind.resource, this.names);
    return owner && keyOf(owner);
  }

  #createWriter(cluster: ClusterName): Writer {
    return createWriter({
      ...this.environment,
      client: this.environment.clients[cluster],
      resource: this.kind.resource,
      cache: this[cluster],
      // Whether a Service is synced, and which object has a host name, depends on the virtual objects.
      publishesDeletions: cluster === 'virtual',
    });
  }

  #createController(reconcile: Reconcile): Controller {
    const { config } = this.environment;
    const { resource } = this.kind;
    return new Controller({
      ...this.environment,
      // A copy that waits for a free request survives collections, and its memory grows the heap.
      decisionsMax: this.evaluations !== undefined ? undefined : 2 * config.workers,
      name: resource.plural,
      identify: (key) => ({ group: resource.group, kind: resource.kind, key }),
      reconcile,
      stateOf: (key) => this.states.find(key),
      warn: (key, warning) => this.report(this.virtual.get(key), { type: 'Warning', ...warning }),
    });
  }

  /** Events only enqueue keys. The reconcile reads the current state from the caches. */
  #connect(): void {
    const { services, hostServices } = this.environment;
    const enqueueAll = (keys: readonly ObjectKey[], { isInitial, mayBeRestored }: CacheEvent): void => {
      for (const key of keys) {
        if (mayBeRestored === true) this.states.find(key)?.forgetVersions();
        this.controller.enqueue(key, isInitial ? 'initial' : 'live');
      }
    };
    this.virtual.subscribe((event) => enqueueAll(rivalsOf(event.key, this), event));
    services.subscribe((event) => enqueueAll(keysOfServiceEvent(event, this), event));
    services.subscribe(({ key }) => this.#renew(this.kind.keysNaming(key, this.virtual)));
    hostServices.subscribe((event) => enqueueAll(this.#keysOfHostService(event.key), event));
    this.host.subscribe((event) => {
      const keys = keysOfHostObject(event.key, [event.object, event.previous], this);
      if (event.type === 'deleted' || isTerminating(event.object)) {
        this.#expectDeletions(event.object);
        for (const key of keys) this.#noteDeletion(key, event);
      }
      enqueueAll(keys, event);
    });
  }

  /** Our own writes cause no event, and the copy may be the host Service that other copies get traffic from. */
  hostChanged(target: NamespacedName): void {
    if (this.host !== this.environment.hostServices) return;
    for (const sync of this.environment.kinds)
      for (const key of sync.#keysOfHostService(keyOf(target))) sync.enqueue(key);
  }

  /** This process has freed a host name that other objects may wait for. */
  released(target: NamespacedName): void {
    for (const key of this.virtual.byIndex(BY_HOST_KEY, keyOf(target))) this.enqueue(key);
    this.hostChanged(target);
  }

  /** This process has changed a virtual object, on which objects of other kinds may depend. */
  patched(virtual: KubeObject): void {
    for (const sync of this.environment.kinds) sync.#enqueueRelated(this.kind.resource, virtual);
  }

  /** The objects that are refused because of this host Service, those whose copies get traffic from it, and their rivals for a host name. */
  #keysOfHostService(service: ObjectKey): readonly ObjectKey[] {
    const refused = this.states.awaiting(service).flatMap((key) => rivalsOf(key, this));
    const copied = [...this.host.byIndex(BY_HOST_SERVICE, service)].flatMap((key) => {
      const object = this.host.get(key);
      return object === undefined ? [] : keysOfHostObject(key, [object], this);
    });
    return [...refused, ...copied];
  }

  /** A deletion counts when it begins: a finalizer may delay its end, and the copy that of another object by then. */
  #noteDeletion(key: ObjectKey, event: CacheEvent): void {
    const { object, previous, type } = event;
    const { uid } = object.metadata;
    const isKnown = this.states.find(key)?.termination?.uid === uid;
    if (isKnown && type === 'deleted') this.states.of(key).noteEnd(this.nowMs());
    if (isKnown) return;
    const wasWhole = previous !== undefined && previous.metadata.uid === uid && !isTerminating(previous);
    const isBeginning = isTerminating(object) ? wasWhole : type === 'deleted';
    const isByOthers = isBeginning && this.#isByOthers(key, event);
    if (type !== 'deleted') this.states.of(key).noteTermination(uid, this.nowMs(), isByOthers);
  }

  #isByOthers(key: ObjectKey, { object, mayBeRestored }: CacheEvent): boolean {
    // Seen by a standby, a deletion is the leader's. A copy that a restored host never had was not deleted by a user.
    if (!this.#isWorking || mayBeRestored === true) return false;
    if (this.#ownDeletions.get(object.metadata.uid ?? '') === true) return false;
    if (isStandIn(object, this.names.toHost(parseKey(key)))) return false;
    const virtualUid = this.#copiedUid(key, object);
    if (virtualUid === undefined) return false;
    const state = this.states.of(key);
    const serviceUid = this.#serviceOf(object)?.metadata.uid;
    const meant = { virtualUid, serviceUid, ownerUids: ownerUidsOf(object) };
    // What the other controller of the object does says nothing of what a user wants.
    const isControlled = isOptedOut(object) || isOptedOut(this.virtual.get(key));
    const isMeant = !isControlled && !this.#isExpected(object);
    state.deletions = noteDeletion(state.deletions, this.nowMs(), isMeant ? meant : undefined);
    return true;
  }

  #serviceOf(copy: KubeObject): KubeObject | undefined {
    const key = this.kind.hostService(copy);
    return key === undefined ? undefined : this.environment.hostServices.get(key);
  }

  /** The host's controllers look at the name of every Endpoints that is deleted, and may be behind. */
  #expectDeletions(copy: KubeObject): void {
    const key = this.kind.hostService(copy);
    if (key !== undefined && this.#serviceOf(copy) === undefined)
      this.environment.expectedDeletions.ofServices.set(key, true);
  }

  #isExpected(copy: KubeObject): boolean {
    if (!this.kind.isDeletedByControllers) return false;
    const key = this.kind.hostService(copy);
    return key === undefined || this.environment.expectedDeletions.ofServices.get(key) === true;
  }

  /** The uid of the virtual object of which the host object was this key's copy, '' if unknown; undefined: it was not the copy. */
  #copiedUid(key: ObjectKey, object: KubeObject): string | undefined {
    const state = this.states.find(key);
    if (state?.isKnownCopy(object) === true) return state.synced?.virtual.metadata.uid ?? '';
    const owner = ownershipOf(object, this.kind.resource, this.names, parseKey(key));
    return owner.kind === 'ours' && keyOf(owner.virtual) === key ? (owner.uid ?? '') : undefined;
  }

  #deleting(target: NamespacedName): void {
    const object = this.host.get(keyOf(target));
    if (object !== undefined) this.#expectDeletions(object);
    if (this.kind.deletesAlong.length === 0) return;
    this.environment.expectedDeletions.ofServices.set(keyOf(target), true);
    for (const sync of this.environment.kinds)
      if (this.kind.deletesAlong.includes(sync.kind.resource)) sync.#noteDeletedAlong(keyOf(target));
  }

  /** No change of the copies that get traffic from this host Service is still to be read: they are deleted with it, or when it is another's. */
  areDependentsRead(target: NamespacedName): boolean {
    if (this.host !== this.environment.hostServices) return true;
    return this.environment.kinds.every((sync) =>
      sync.#keysOfHostService(keyOf(target)).every((key) => !sync.controller.queue.has(key)),
    );
  }

  #noteDeletedAlong(hostKey: ObjectKey): void {
    const uid = this.host.get(hostKey)?.metadata.uid;
    if (uid !== undefined) this.#ownDeletions.set(uid, true);
  }

  followRelated(virtualCaches: ReadonlyMap<string, ObservableInformer>): void {
    for (const [plural, keysOf] of Object.entries(this.kind.relatedKinds)) {
      virtualCaches.get(plural)?.subscribe(({ object, previous, isInitial }) => {
        const keys = new Set(
          [object, previous].flatMap((state) => (state === undefined ? [] : keysOf(state))),
        );
        for (const key of keys) this.controller.enqueue(key, isInitial ? 'initial' : 'live');
      });
    }
  }

  #enqueueRelated({ plural }: Resource, object: KubeObject): void {
    for (const key of this.kind.relatedKinds[plural]?.(object) ?? []) this.enqueue(key);
  }
}

function ownerUidsOf(object: KubeObject): readonly string[] {
  return objectList(objectField(asJson(object), 'metadata'), 'ownerReferences').map((owner) =>
    text(owner, 'uid'),
  );
}

// Which keys an event concerns: events of both sides map to the keys of virtual objects.

/** Index on virtual objects: the key of their host copy. */
export const BY_HOST_KEY = 'hostKey';

export function virtualIndexes(translator: NameTranslator, kind: SyncedKind) {
  return {
    ...kind.indexes,
    [BY_HOST_KEY]: (object: KubeObject): readonly string[] => {
      const { namespace = '', name } = object.metadata;
      const target = translator.toHost({ namespace, name });
      return target === undefined ? [] : [keyOf(target)];
    },
  };
}

/** Index on host objects: the key of the virtual object that its bookkeeping names. */
export const BY_VIRTUAL_KEY = 'virtualKey';

/** Index on host objects: the key of the host Service that they get traffic from. */
const BY_HOST_SERVICE = 'hostService';

export function hostIndexes(translator: NameTranslator, kind: SyncedKind) {
  return {
    [BY_VIRTUAL_KEY]: (object: KubeObject): readonly string[] => {
      const virtual = namedVirtual(object, kind.resource, translator);
      return virtual === undefined ? [] : [keyOf(virtual)];
    },
    [BY_HOST_SERVICE]: (object: KubeObject): readonly string[] => {
      const service = kind.hostService(object);
      return service === undefined ? [] : [service];
    },
  };
}

type EventContext = Pick<KindSync, 'virtual' | 'names' | 'kind'>;

/** A virtual Service changed: the keys of the objects whose sync it controls, and of their rivals. */
function keysOfServiceEvent({ key }: CacheEvent, context: EventContext): readonly ObjectKey[] {
  const keys = [...context.kind.keysOfService(key, context.virtual)];
  return [...new Set(keys.flatMap((one) => rivalsOf(one, context)))];
}

/** The keys of all objects with the host name of this one, itself included: one that is deleted or no longer synced frees the name. */
function rivalsOf(key: ObjectKey, { virtual, names }: Omit<EventContext, 'kind'>): readonly ObjectKey[] {
  const target = names.toHost(parseKey(key));
  if (target === undefined) return [key];
  const rivals = virtual.byIndex(BY_HOST_KEY, keyOf(target));
  return rivals.size < 2 && (rivals.size === 0 || rivals.has(key)) ? [key] : [...new Set([key, ...rivals])];
}

/** A host object changed: all virtual objects with this host name, and the key in its bookkeeping, which is the only link to an orphan. */
function keysOfHostObject(
  key: ObjectKey,
  states: readonly (KubeObject | undefined)[],
  { virtual, names, kind }: EventContext,
): readonly ObjectKey[] {
  const keys = new Set(virtual.byIndex(BY_HOST_KEY, key));
  for (const state of states) {
    const named = state && namedVirtual(state, kind.resource, names);
    if (named !== undefined) keys.add(keyOf(named));
  }
  return [...keys];
}

/** Objects without a copy, or whose copy records another version of them: they are processed before the rest of the first list. */
export function keysChangedSinceCopied({
  virtual,
  host,
  names,
}: {
  readonly virtual: Lister;
  readonly host: Lister;
  readonly names: NameTranslator;
}): readonly ObjectKey[] {
  return [...virtual.list()].flatMap((object) => {
    const key = objectKey(object);
    const target = names.toHost(parseKey(key));
    const copy = target && host.get(keyOf(target));
    const revision = copy && recordedRevision(recordOf(copy));
    return revision === object.metadata.resourceVersion ? [] : [key];
  });
}

/** `services`: those of the host. Different virtual Services can have the same host name, and the host may have a Service of that name itself. */
function foreignServices(
  { kind, names, environment }: Pick<KindSync, 'kind' | 'names' | 'environment'>,
  services: Pick<Lister, 'get'>,
): ForeignService {
  const { damagedServices: damaged, kinds } = environment;
  return (key, virtual) => {
    const service = key === undefined ? undefined : services.get(key);
    if (key === undefined || service === undefined) return undefined;
    const original = originalOf(service, names);
    const wanted = virtual && kind.serviceKey(objectKey(virtual), virtual);
    if (wanted === undefined) return original === undefined ? key : undefined;
    if (original !== undefined && wanted === keyOf(original)) return undefined;
    if (isDamagedCopyOf(wanted, service, { kinds, names })) return undefined;
    if (original === undefined) return damaged.get(key) === wanted ? undefined : key;
    const { namespace, name } = parseKey(wanted);
    // Another syncer has copied the translated name of the Service back to the virtual object.
    const isTranslated = name === parseKey(key).name;
    return isTranslated && namespace === original.namespace ? undefined : key;
  };
}

/** Copies from which a client has removed annotations, and whose copy their bookkeeping called them before: another syncer, which has made them, is
 * about to write it again. Without the marker, such a Service is a client's. */
export function damagedServices(
  services: Pick<ObservableInformer, 'subscribe'>,
  names: NameTranslator,
): ReadonlyMap<ObjectKey, ObjectKey> {
  const damaged = new Map<ObjectKey, ObjectKey>();
  services.subscribe(({ type, key, object, previous }) => {
    const { uid, labels } = object.metadata;
    const isSame = type === 'updated' && previous?.metadata.uid === uid;
    const isMarked = labels?.[MANAGED_BY_LABEL] === names.vcluster;
    if (!isSame || !isMarked || originalOf(object, names) !== undefined) {
      damaged.delete(key);
      return;
    }
    const before = previous && originalOf(previous, names);
    if (before !== undefined) damaged.set(key, keyOf(before));
  });
  return damaged;
}

/** A client has removed bookkeeping of the copy of `key`, which the sync of Services is about to write again. */
function isDamagedCopyOf(
  key: ObjectKey,
  service: KubeObject,
  { kinds, names }: { readonly kinds: readonly KindSync[]; readonly names: NameTranslator },
): boolean {
  const ownership = ownershipOf(service, SERVICES, names, parseKey(key));
  if (ownership.kind === 'ours') return keyOf(ownership.virtual) === key;
  const sync = kinds.find(({ kind: { resource } }) => resource.plural === SERVICES.plural);
  return sync?.states.find(key)?.isKnownCopy(service) === true;
}

/** The host Service is the copy of a Service in the namespace of `virtual`. */
export function isOfSameNamespace(
  service: KubeObject | undefined,
  virtual: KubeObject | undefined,
  names: NameTranslator,
): boolean {
  if (service === undefined || virtual === undefined) return false;
  return originalOf(service, names)?.namespace === virtual.metadata.namespace;
}

/** The virtual Service that a host Service is the copy of. In the virtual cluster's own host namespace, that of a Service without bookkeeping
 * follows from the name, which contains all of it: users create such Services for copies that have none. */
function originalOf(service: KubeObject, names: NameTranslator): NamespacedName | undefined {
  const isAtHome = service.metadata.namespace === names.hostNamespace;
  return isAtHome ? virtualOf(service, SERVICES, names) : namedVirtual(service, SERVICES, names);
}
