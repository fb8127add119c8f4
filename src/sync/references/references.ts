/**
 * References of Endpoints to other objects: which names they get, and that the objects come along. Endpoints are decided first and write
 * down which kinds they name; the importer follows with a work queue of its own, whose keys are the referenced objects.
 */

import type { CacheEvent, ClusterName } from '../../cluster/types.ts';
import { ENDPOINTS, keyOf, parseKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { sleep } from '../../lib/clock.ts';
import type { ObjectReference, ReferenceLookup, TranslatedReference } from '../../patch/types.ts';
import { createSemaphore } from '../../queue/semaphore.ts';
import { createWorkQueue } from '../../queue/work-queue.ts';
import type { ObservableInformer } from '../../cluster/informer.ts';
import { createContentionGuard } from '../contention.ts';
import { createController, type Controller } from '../controller.ts';
import { createRecreationBackoff } from '../recreation.ts';
import { kindPolicy, type KindPolicy } from '../reference-kinds.ts';
import { createCopyWriter, type CopyWriter } from './copy-writer.ts';
import { decideReference, type ReferenceDecision, type ReferenceProblem } from './decide-reference.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { isImport } from './import-forge.ts';
import { Importer, type KindWorkplace } from './importer.ts';
import { KindCaches } from './kind-caches.ts';
import { copiedFrom, observeReference, sourceKeyOf } from './kind-view.ts';
import { ReferenceIndex } from './reference-index.ts';
import {
  kindIdOf,
  parseReferenceId,
  referenceIdOf,
  resolveKind,
  type KindId,
  type ReferencedKind,
  type ReferenceId,
} from './referenced-kind.ts';
import type { RefusalRules } from './refusals.ts';
import { createSweeper, type KindParts } from './sweep.ts';

/** How the Endpoints' side is reached. */
export interface EndpointsSide {
  virtual(key: ObjectKey): KubeObject | undefined;
  /** What is at the place of the host copy of this Endpoints. */
  hostCopy(key: ObjectKey): KubeObject | undefined;
  /** It has to be decided again. */
  enqueue(key: ObjectKey): void;
}

/** A kind that only data lead to is watched when the first reference comes; so long the Endpoints wait for it. */
const OPENING_MS = 5000;
const UNAVAILABLE_MS = 60_000;
/** A deleted import comes back after this long: time for a tenant to put an object of their own there. */
const IMPORT_RETURN_MS = 1500;

export class References {
  readonly #environment: ReferenceEnvironment;
  readonly #policy: KindPolicy;
  readonly #rules: RefusalRules;
  readonly #workplaces = new Map<KindId, KindWorkplace>();
  readonly #opening = new Map<KindId, Promise<void>>();
  /** Kinds that data lead to and that cannot be watched at the moment, and why. */
  readonly #unavailable = new Map<KindId, string>();
  readonly #index = new ReferenceIndex();
  /** Endpoints that have to be translated again although neither side of them changed. */
  readonly #stale = new Set<ObjectKey>();
  /** Referenced objects that wait for something at this host name, by kind and host key. */
  readonly #byHostName = new Map<string, Set<ReferenceId>>();
  readonly #told = new Map<ReferenceId, { readonly note: string; readonly keys: Set<ObjectKey> }>();
  readonly #queue;
  readonly #inFlight;
  readonly #importer: Importer;
  readonly #controller: Controller;
  readonly #watching: Promise<void>[] = [];
  #signal: AbortSignal | undefined;
  #side: EndpointsSide | undefined;
  #isSwept = false;

  constructor(environment: ReferenceEnvironment, named: readonly ReferencedKind[]) {
    const { config, clock, metrics, names, logger } = environment;
    this.#environment = environment;
    this.#policy = kindPolicy(config.sync);
    this.#rules = { vcluster: config.name, kubeconfigSecret: config.virtual.secret };
    this.#queue = createWorkQueue({ clock, metrics: metrics.queue });
    this.#inFlight = createSemaphore(config.workers);
    this.#importer = this.#createImporter();
    this.#controller = createController({
      name: 'references',
      queue: this.#queue,
      reconcile: (id) => this.#importer.reconcile(id),
      warn: (id, warning) => this.#warn(id, warning.reason, warning.note),
      createNamespace: undefined,
      clock,
      logger,
      metrics: metrics.controller,
    });
    for (const kind of named) this.#addKind(kind);
    this.lookup = (reference, direction) => {
      const caches = this.#caches(kindIdOf(reference));
      if (caches?.isSynced !== true) return undefined;
      if (direction === 'toHost') return decideReference(this.#observe(caches, reference), this.#rules).name;
      const copy = caches.copies.get(keyOf(reference));
      return copy && copiedFrom(copy, caches.kind, names);
    };
  }

  /** For the patches: what an object is called on the other side, where it is not what the rule says. */
  readonly lookup: ReferenceLookup;

  get informers(): readonly ObservableInformer[] {
    return [...this.#workplaces.values()].flatMap(({ caches }) => caches.informers);
  }

  /** Opens the watches. Events are heard at once, but nothing is written before {@link run}. */
  start(signal: AbortSignal, side: EndpointsSide): void {
    this.#signal = signal;
    this.#side = side;
    for (const { caches } of this.#workplaces.values()) this.#watch(caches);
  }

  /** All watches that patches ask for by name are in sync. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.whenSynced(signal)));
  }

  /**
   * Before any Endpoints is decided: `recorded` are the kinds that their host copies say they named. Kinds that the configuration still
   * leads to are watched again; what was imported of any other kind goes.
   */
  async recover(recorded: Iterable<KindId>): Promise<void> {
    const kinds = [...new Set(recorded)].filter((id) => this.#caches(id) === undefined).map(partsOfKind);
    const isReachable = ({ apiVersion, kind }: KindParts): boolean =>
      this.#policy.isOpen && this.#policy.isAllowed(apiVersion, kind);
    const sweeper = createSweeper(this.#environment, this.#signal ?? AbortSignal.abort());
    for (const kind of kinds.filter((one) => !isReachable(one))) await sweeper.removeAll(kind);
    const left = this.#policy.isOpen ? await sweeper.kindsWithImports(this.#policy.reachable) : [];
    for (const id of new Set([...kinds.filter(isReachable), ...left].map(kindIdOf))) await this.#open(id);
  }

  /** Works until {@link shutDown} has been called and the queue is empty. `endpoints`: every Endpoints that there is. */
  async run(endpoints: Iterable<ObjectKey>): Promise<void> {
    this.#index.begin(endpoints);
    this.#sweepWhenComplete();
    await this.#controller.run();
  }

  shutDown(): void {
    this.#queue.shutDown();
  }

  async closed(): Promise<void> {
    await Promise.all(this.#watching);
  }

  // What the Endpoints' reconciler says and asks.

  isStale(key: ObjectKey): boolean {
    return this.#stale.has(key);
  }

  /** Makes sure that everything about these kinds is known, as far as it can be. True: the lookups may answer otherwise now. */
  async open(references: readonly ObjectReference[]): Promise<boolean> {
    const missing = [...new Set(references.map(kindIdOf))].filter((id) => this.#isOpenable(id));
    if (missing.length === 0) return false;
    const { clock } = this.#environment;
    const signal = this.#signal ?? new AbortController().signal;
    await Promise.race([Promise.all(missing.map((id) => this.#open(id))), sleep(clock, OPENING_MS, signal)]);
    for (const id of missing)
      this.#noteUnavailable(id, this.#caches(id)?.lastError ?? 'it is not answered for');
    return missing.some((id) => this.#caches(id)?.isSynced === true);
  }

  /** The host copy of this Endpoints names exactly these now. */
  took(key: ObjectKey, references: readonly TranslatedReference[]): void {
    const named = new Map<ReferenceId, ObjectKey>();
    const wasUnknown = this.#index.unknown.has(key);
    this.#stale.delete(key);
    for (const reference of references) {
      const id = referenceIdOf(kindIdOf(reference), reference);
      named.set(id, reference.written === undefined ? '' : keyOf(reference.written));
      if (this.#caches(kindIdOf(reference))?.isSynced !== true) this.#tellUnavailable(key, reference);
    }
    for (const id of this.#index.set(key, named)) {
      this.#linkHostNames(id);
      this.#queue.add(id);
    }
    for (const [id, written] of named) {
      // Translating took its time, and the world may have moved on.
      const name = this.#nameOf(id);
      if (name !== undefined && name !== written) this.#redecide(key);
    }
    if (wasUnknown && this.#isSwept) this.#sweepAll();
    this.#sweepWhenComplete();
  }

  /** There is no host copy of this Endpoints (any more). */
  dropped(key: ObjectKey): void {
    this.took(key, []);
  }

  /** Whatever became of it: this Endpoints has been looked at. */
  settled(key: ObjectKey): void {
    this.#index.settle(key);
    this.#sweepWhenComplete();
  }

  // Kinds.

  #caches(id: KindId): KindCaches | undefined {
    return this.#workplaces.get(id)?.caches;
  }

  #addKind(kind: ReferencedKind): KindCaches {
    const caches = new KindCaches(kind, this.#environment);
    const host = this.#copyWriter('host', caches);
    const virtual = this.#copyWriter('virtual', caches);
    this.#workplaces.set(kind.id, { caches, host, virtual });
    caches.subscribe((cluster, event) => this.#onEvent(caches, cluster, event));
    return caches;
  }

  #copyWriter(cluster: ClusterName, caches: KindCaches): CopyWriter {
    const { clients, isDryRun, logger, metrics } = this.#environment;
    return createCopyWriter({
      client: clients[cluster],
      resource: caches.kind[cluster],
      cache: cluster === 'host' ? caches.copies : caches.virtualCache,
      inFlight: this.#inFlight,
      isDryRun,
      logger,
      metrics: metrics.writes,
    });
  }

  #watch(caches: KindCaches): void {
    const signal = this.#signal;
    if (signal === undefined) return;
    for (const informer of caches.informers) this.#watching.push(informer.run(signal));
  }

  #isOpenable(id: KindId): boolean {
    return this.#caches(id)?.isSynced !== true && !this.#unavailable.has(id);
  }

  #open(id: KindId): Promise<void> {
    const opening = this.#opening.get(id) ?? this.#openKind(id);
    this.#opening.set(id, opening);
    return opening.finally(() => this.#opening.delete(id));
  }

  async #openKind(id: KindId): Promise<void> {
    const { discoveries, logger } = this.#environment;
    try {
      const known = this.#caches(id);
      const caches = known ?? this.#addKind(await resolveKind(partsOfKind(id), discoveries, this.#policy));
      if (known === undefined) this.#watch(caches);
      if (this.#signal !== undefined)
        await Promise.all(caches.informers.map((one) => one.whenSynced(this.#signal ?? AbortSignal.abort())));
      this.#unavailable.delete(id);
      this.#recheckKind(caches);
    } catch (error) {
      if (this.#signal?.aborted) return;
      logger.warn({ kind: id, err: error }, 'referenced kind cannot be watched');
      this.#noteUnavailable(id, error instanceof Error ? error.message : String(error));
    }
  }

  /** For a while nobody waits for this kind; then those that name it try again. What syncs meanwhile is taken at once. */
  #noteUnavailable(id: KindId, message: string): void {
    const { clock } = this.#environment;
    if (this.#caches(id)?.isSynced === true || this.#unavailable.has(id)) return;
    this.#unavailable.set(id, message);
    clock.schedule(UNAVAILABLE_MS, () => {
      this.#unavailable.delete(id);
      for (const reference of this.#index.references()) {
        if (parseReferenceId(reference).kind !== id) continue;
        for (const key of this.#index.namersOf(reference)) this.#redecide(key);
      }
    });
  }

  #redecide(key: ObjectKey): void {
    this.#stale.add(key);
    this.#side?.enqueue(key);
  }

  #recheckKind(caches: KindCaches): void {
    for (const id of this.#index.references()) {
      if (parseReferenceId(id).kind !== caches.kind.id) continue;
      this.#linkHostNames(id);
      this.#recheck(id);
    }
    if (this.#isSwept) this.#sweep(caches);
  }

  // Events.

  #onEvent(caches: KindCaches, cluster: ClusterName, { type, key, object, previous }: CacheEvent): void {
    const states = previous === undefined ? [object] : [object, previous];
    const ids = new Set<ReferenceId>();
    if (cluster === 'virtual') {
      const id = referenceIdOf(caches.kind.id, parseKey(key));
      if (this.#index.isReferenced(id) || states.some((state) => isImport(state, this.#rules.vcluster)))
        ids.add(id);
    } else {
      for (const id of this.#byHostName.get(`${caches.kind.id} ${key}`) ?? []) ids.add(id);
      for (const state of states) {
        const virtual = copiedFrom(state, caches.kind, this.#environment.names);
        if (virtual !== undefined) ids.add(referenceIdOf(caches.kind.id, virtual));
      }
    }
    for (const id of ids) {
      // Our own deletions cause no event, so this one is somebody else's.
      if (type === 'deleted') this.#importer.noteDeletion(id, cluster);
      this.#recheck(id);
    }
  }

  /** Something about this object changed: it is looked at, and so are the Endpoints whose copy should name it otherwise. */
  #recheck(id: ReferenceId): void {
    this.#queue.add(id);
    const name = this.#nameOf(id);
    if (name === undefined) return;
    for (const key of this.#index.namersOf(id))
      if (this.#index.writtenBy(key, id) !== name) this.#redecide(key);
  }

  /** What the copies of Endpoints should name for it now; undefined where nobody can say. */
  #nameOf(id: ReferenceId): ObjectKey | undefined {
    const parts = parseReferenceId(id);
    const caches = this.#caches(parts.kind);
    if (caches?.isSynced !== true) return undefined;
    const { name } = decideReference(this.#observe(caches, parts), this.#rules);
    return name && keyOf(name);
  }

  #linkHostNames(id: ReferenceId): void {
    const { kind, ...virtual } = parseReferenceId(id);
    const caches = this.#caches(kind);
    if (caches === undefined) return;
    const { names } = this.#environment;
    const target = names.referenceToHost(virtual);
    const hostKeys = [target && keyOf(target), sourceKeyOf(caches.kind, virtual, names)];
    for (const hostKey of new Set(hostKeys)) {
      if (hostKey === undefined) continue;
      const place = `${kind} ${hostKey}`;
      const ids = this.#byHostName.get(place) ?? new Set();
      if (this.#index.isReferenced(id)) ids.add(id);
      else ids.delete(id);
      if (ids.size > 0) this.#byHostName.set(place, ids);
      else this.#byHostName.delete(place);
    }
  }

  #observe(caches: KindCaches, virtual: { namespace: string; name: string }) {
    const { namespace, name } = virtual;
    return observeReference(caches, { namespace, name }, this.#environment.names);
  }

  // Removing what nothing references.

  /** After the first decision on every Endpoints the index is whole, and imports that nothing references are orphans. */
  #sweepWhenComplete(): void {
    if (this.#isSwept || !this.#index.isComplete) return;
    this.#isSwept = true;
    this.#sweepAll();
  }

  #sweepAll(): void {
    for (const { caches } of this.#workplaces.values()) this.#sweep(caches);
  }

  #sweep(caches: KindCaches): void {
    for (const copy of caches.copies.list()) {
      const virtual = copiedFrom(copy, caches.kind, this.#environment.names);
      if (virtual !== undefined) this.#queue.add(referenceIdOf(caches.kind.id, virtual));
    }
    for (const object of caches.virtualCache.list()) {
      if (!isImport(object, this.#rules.vcluster)) continue;
      const { namespace = '', name } = object.metadata;
      this.#queue.add(referenceIdOf(caches.kind.id, { namespace, name }));
    }
  }

  /** Endpoints that cannot be translated keep what their copies name. */
  #isDispensable({ metadata: { name } }: KubeObject): boolean {
    if (!this.#index.isComplete) return false;
    for (const key of this.#index.unknown) {
      const copy = this.#side?.hostCopy(key);
      if (copy !== undefined && JSON.stringify(copy).includes(name)) return false;
    }
    return true;
  }

  #createImporter(): Importer {
    const { names, labels, owner, clock } = this.#environment;
    const isWrittenBy = (id: ReferenceId, hostKey: ObjectKey) => (key: ObjectKey) =>
      this.#index.writtenBy(key, id) === hostKey;
    return new Importer({
      workplaceOf: (id) => {
        const workplace = this.#workplaces.get(parseReferenceId(id).kind);
        return workplace?.caches.isSynced === true ? workplace : undefined;
      },
      forge: { names, labels, owner },
      names,
      rules: this.#rules,
      isReferenced: (id) => this.#index.isReferenced(id),
      isDispensable: (copy) => this.#isDispensable(copy),
      isStillWritten: (id, hostKey) => [...this.#index.namersOf(id)].some(isWrittenBy(id, hostKey)),
      recheck: (id) => this.#recheck(id),
      tellProblem: (id, problem) => this.#tellProblem(id, problem),
      tellImported: (id, note) => this.#tellImported(id, note),
      recreation: {
        host: createRecreationBackoff(clock),
        virtual: createRecreationBackoff(clock, { free: 0, baseMs: IMPORT_RETURN_MS }),
      },
      contention: createContentionGuard(clock),
    });
  }

  // Telling people.

  #tellProblem(id: ReferenceId, problem: ReferenceDecision['problem']): void {
    if (problem === undefined) {
      this.#told.delete(id);
      return;
    }
    const told = this.#told.get(id);
    const current = told?.note === problem.note ? told : { note: problem.note, keys: new Set<ObjectKey>() };
    this.#told.set(id, current);
    for (const key of this.#index.namersOf(id)) {
      if (current.keys.has(key)) continue;
      current.keys.add(key);
      this.#event(key, problem);
    }
  }

  #tellImported(id: ReferenceId, note: string): void {
    for (const key of this.#index.namersOf(id)) {
      const regarding = this.#side?.virtual(key);
      if (regarding === undefined) continue;
      this.#environment.recorder.event(regarding, ENDPOINTS, {
        type: 'Normal',
        reason: 'ReferenceImported',
        note,
      });
    }
  }

  #tellUnavailable(key: ObjectKey, reference: ObjectReference): void {
    const why = this.#unavailable.get(kindIdOf(reference)) ?? 'its kind cannot be watched';
    const note = `${reference.kind} "${reference.namespace}/${reference.name}" is named, but ${why}; its name is written, the object is not imported.`;
    this.#event(key, { reason: 'ReferenceNotFound', note });
  }

  #warn(id: ReferenceId, reason: string, note: string): void {
    for (const key of this.#index.namersOf(id)) this.#event(key, { reason, note });
  }

  #event(key: ObjectKey, { reason, note }: Pick<ReferenceProblem, 'note'> & { reason: string }): void {
    const regarding = this.#side?.virtual(key);
    if (regarding !== undefined)
      this.#environment.recorder.event(regarding, ENDPOINTS, { type: 'Warning', reason, note });
  }
}

function partsOfKind(id: KindId): KindParts {
  const [apiVersion = '', kind = ''] = id.split(' ');
  return { apiVersion, kind };
}
