/**
 * References of Endpoints to other objects: which names they get, and that the objects come along. Endpoints are decided first and write
 * down which kinds they name; the importer follows with a work queue of its own, whose keys are the referenced objects.
 */

import type { ObservableInformer } from '../../kube/informer/informer.ts';
import type { CacheEvent, ClusterName } from '../../kube/types.ts';
import { keyOf, parseKey, type KubeObject, type NamespacedName, type ObjectKey } from '../../kube/object.ts';
import type { ObjectReference, ReferenceLookup, TranslatedReference } from '../patch/types.ts';
import { createWorkQueue, type WorkQueue } from '../../kube/work-queue.ts';
import { createContentionGuard } from '../reconcile/contention.ts';
import { createController, type Controller } from '../reconcile/controller.ts';
import { createRecreationBackoff } from '../reconcile/recreation.ts';
import { decideReference } from './decide/decide-reference.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { HostNames } from './index/host-names.ts';
import { isImport } from './import/import-forge.ts';
import { Importer } from './import/importer.ts';
import type { KindCaches } from './kinds/kind-caches.ts';
import { KindRegistry, partsOfKind } from './kinds/kind-registry.ts';
import { copiedFrom, observeReference } from './decide/observe-reference.ts';
import { ReferenceIndex, type ReferrerId } from './index/reference-index.ts';
import { ReferenceNotices, type Referrer } from './reference-notices.ts';
import { type ReferencedKind } from './kinds/referenced-kind.ts';
import { parseReferenceId, referenceIdOf, type ReferenceId } from './index/reference-id.ts';
import { kindIdOf, type KindId } from '../translate/merge/recorded-kinds.ts';
import { refusalRules, type RefusalRules } from './decide/refusals.ts';
import { createSweeper, type KindParts } from './orphans/removed-kinds.ts';

/** How the synced objects that reference others are reached. */
export interface Referrers {
  virtual(id: ReferrerId): Referrer | undefined;
  /** What is at the place of its host copy. */
  hostCopy(id: ReferrerId): KubeObject | undefined;
  /** It has to be decided again. */
  enqueue(id: ReferrerId): void;
}

/** A deleted import comes back after this long: time for a tenant to put an object of their own there. */
const IMPORT_RETURN_MS = 1500;

export class References {
  readonly #environment: ReferenceEnvironment;
  readonly #rules: RefusalRules;
  readonly #kinds: KindRegistry;
  readonly #index = new ReferenceIndex();
  /** Endpoints that have to be translated again although neither side of them changed. */
  readonly #stale = new Set<ReferrerId>();
  readonly #hostNames: HostNames;
  readonly #notices: ReferenceNotices;
  readonly #queue: WorkQueue;
  readonly #importer: Importer;
  readonly #controller: Controller;
  #side: Referrers | undefined;
  #isSwept = false;

  constructor(environment: ReferenceEnvironment, named: readonly ReferencedKind[]) {
    const { config, clock, metrics, names, logger, recorder } = environment;
    this.#environment = environment;
    this.#hostNames = new HostNames(names);
    this.#rules = refusalRules(config);
    this.#notices = new ReferenceNotices({
      recorder,
      index: this.#index,
      referrer: (id) => this.#side?.virtual(id),
    });
    this.#queue = createWorkQueue({ clock, metrics: metrics.queue });
    this.#importer = this.#createImporter();
    this.#controller = createController({
      name: 'references',
      queue: this.#queue,
      reconcile: (id) => this.#importer.reconcile(id),
      warn: (id, { reason, note }) => this.#notices.alert(id, reason, note),
      createNamespace: undefined,
      dryRun: environment.dryRun,
      clock,
      logger,
      metrics: metrics.controller,
    });
    this.#kinds = new KindRegistry(environment, named, {
      changed: (caches, cluster, event) => this.#onEvent(caches, cluster, event),
      opened: (caches) => this.#onOpened(caches),
      retry: (kind) => this.#retry(kind),
    });
    this.lookup = (reference, direction) => {
      const caches = this.#kinds.caches(kindIdOf(reference));
      if (caches === undefined) return undefined;
      if (direction === 'toHost') return decideReference(this.#observe(caches, reference), this.#rules).name;
      const copy = caches.copies.get(keyOf(reference));
      return copy && copiedFrom(copy, caches.kind, names);
    };
  }

  /** For the patches: what an object is called on the other side, where it is not what the rule says. */
  readonly lookup: ReferenceLookup;

  get informers(): readonly ObservableInformer[] {
    return this.#kinds.informers;
  }

  /** Opens the watches. Events are heard at once, but nothing is written before {@link run}. */
  start(signal: AbortSignal, side: Referrers): void {
    this.#side = side;
    this.#kinds.start(signal);
  }

  /** All watches that patches ask for by name are in sync. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.whenSynced(signal)));
  }

  /**
   * Before any Endpoints is decided: `recorded` are the kinds that their host copies say they named. Kinds that the configuration still
   * leads to are watched again; what was imported of any other kind goes.
   */
  async recover(recorded: Iterable<KindId>, signal: AbortSignal): Promise<void> {
    const { policy } = this.#kinds;
    const kinds = [...new Set(recorded)].filter((id) => !this.#kinds.isKnown(id)).map(partsOfKind);
    const isReachable = ({ apiVersion, kind }: KindParts): boolean =>
      policy.isOpen && policy.isAllowed(apiVersion, kind);
    const sweeper = createSweeper(this.#environment, signal);
    for (const kind of kinds.filter((one) => !isReachable(one))) await sweeper.removeAll(kind);
    const left = policy.isOpen ? await sweeper.kindsWithImports(policy.reachable) : [];
    await this.#kinds.open([...kinds.filter(isReachable), ...left].map(kindIdOf));
  }

  /** Works until {@link shutDown} has been called and the queue is empty. `endpoints`: every Endpoints that there is. */
  async run(endpoints: Iterable<ReferrerId>): Promise<void> {
    this.#index.begin(endpoints);
    this.#sweepWhenComplete();
    await this.#controller.run();
  }

  shutDown(): void {
    this.#queue.shutDown();
  }

  get isIdle(): boolean {
    return this.#queue.isIdle;
  }

  /** Drops what is queued. Returns how many objects were queued or are under way. */
  abandon(): number {
    return this.#queue.abandon();
  }

  async closed(): Promise<void> {
    await this.#kinds.closed();
  }

  // What the Endpoints' reconciler says and asks.

  isStale(key: ReferrerId): boolean {
    return this.#stale.has(key);
  }

  /** Makes sure that everything about these kinds is known, as far as it can be. True: the lookups may answer otherwise now. */
  async open(references: readonly ObjectReference[]): Promise<boolean> {
    return this.#kinds.open(references.map(kindIdOf));
  }

  /** The host copy of this Endpoints names exactly these now. */
  recordReferences(key: ReferrerId, references: readonly TranslatedReference[]): void {
    const wasUnknown = this.#index.unknown.has(key);
    const named = new Map<ReferenceId, ObjectKey>();
    this.#stale.delete(key);
    for (const reference of references) {
      const id = referenceIdOf(kindIdOf(reference), reference);
      named.set(id, reference.written === undefined ? '' : keyOf(reference.written));
      if (this.#kinds.caches(kindIdOf(reference)) === undefined) this.#tellUnavailable(key, reference);
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
  clearReferences(key: ReferrerId): void {
    this.recordReferences(key, []);
  }

  /** Whatever became of it: this Endpoints has been looked at. */
  markReconciled(key: ReferrerId): void {
    this.#index.settle(key);
    this.#sweepWhenComplete();
  }

  // Events.

  #onEvent(caches: KindCaches, cluster: ClusterName, event: CacheEvent): void {
    const ids = cluster === 'virtual' ? this.#idsOfVirtual(caches, event) : this.#idsOfHost(caches, event);
    for (const id of ids) {
      // Our own deletions cause no event, so this one is somebody else's.
      if (event.type === 'deleted') this.#importer.noteDeletion(id, cluster);
      this.#recheck(id);
    }
  }

  #idsOfVirtual({ kind }: KindCaches, { key, object, previous }: CacheEvent): Iterable<ReferenceId> {
    const id = referenceIdOf(kind.id, parseKey(key));
    const wasImport = [object, previous].some(
      (one) => one !== undefined && isImport(one, this.#rules.vcluster),
    );
    return wasImport || this.#index.isReferenced(id) ? [id] : [];
  }

  #idsOfHost({ kind }: KindCaches, { key, object, previous }: CacheEvent): Iterable<ReferenceId> {
    const ids = new Set(this.#hostNames.at(kind.id, key));
    for (const state of [object, previous]) {
      const virtual = state && copiedFrom(state, kind, this.#environment.names);
      if (virtual !== undefined) ids.add(referenceIdOf(kind.id, virtual));
    }
    return ids;
  }

  #onOpened(caches: KindCaches): void {
    for (const id of this.#index.references()) {
      if (parseReferenceId(id).kind !== caches.kind.id) continue;
      this.#linkHostNames(id);
      this.#recheck(id);
    }
    if (this.#isSwept) this.#sweep(caches);
  }

  #retry(kind: KindId): void {
    for (const id of this.#index.references()) {
      if (parseReferenceId(id).kind !== kind) continue;
      for (const key of this.#index.namersOf(id)) this.#redecide(key);
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

  #redecide(key: ReferrerId): void {
    this.#stale.add(key);
    this.#side?.enqueue(key);
  }

  /** What the copies of Endpoints should name for it now; undefined where nobody can say. */
  #nameOf(id: ReferenceId): ObjectKey | undefined {
    const parts = parseReferenceId(id);
    const caches = this.#kinds.caches(parts.kind);
    const name = caches && decideReference(this.#observe(caches, parts), this.#rules).name;
    return name && keyOf(name);
  }

  #observe(caches: KindCaches, { namespace, name }: NamespacedName) {
    return observeReference(caches, { namespace, name }, this.#environment.names);
  }

  #linkHostNames(id: ReferenceId): void {
    const caches = this.#kinds.caches(parseReferenceId(id).kind);
    if (caches !== undefined) this.#hostNames.set(id, caches, this.#index.isReferenced(id));
  }

  // Removing what nothing references.

  /** After the first decision on every Endpoints the index is whole, and imports that nothing references are orphans. */
  #sweepWhenComplete(): void {
    if (this.#isSwept || !this.#index.isComplete) return;
    this.#isSwept = true;
    this.#sweepAll();
  }

  #sweepAll(): void {
    for (const caches of this.#kinds.all()) this.#sweep(caches);
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
      resourcesOf: (id) => this.#kinds.resources(parseReferenceId(id).kind),
      forge: { names, labels, owner },
      names,
      rules: this.#rules,
      isReferenced: (id) => this.#index.isReferenced(id),
      areReferencesKnown: () => this.#index.isComplete,
      isDispensable: (copy) => this.#isDispensable(copy),
      isStillWritten: (id, hostKey) => [...this.#index.namersOf(id)].some(isWrittenBy(id, hostKey)),
      recheck: (id) => this.#recheck(id),
      reportProblem: (id, problem) => this.#notices.problem(id, problem),
      reportImported: (id, note) => this.#notices.imported(id, note),
      alert: (id, reason, note) => this.#notices.alert(id, reason, note),
      guards: {
        host: { recreation: createRecreationBackoff(clock), contention: createContentionGuard(clock) },
        virtual: {
          recreation: createRecreationBackoff(clock, { free: 0, baseMs: IMPORT_RETURN_MS }),
          contention: createContentionGuard(clock),
        },
      },
    });
  }

  #tellUnavailable(key: ReferrerId, reference: ObjectReference): void {
    const { kind, namespace, name } = reference;
    const why = this.#kinds.whyUnavailable(kindIdOf(reference));
    const note = `${kind} "${namespace}/${name}" is named, but ${why}; its name is written, the object is not imported.`;
    this.#notices.warn(key, 'ReferenceNotFound', note);
  }
}
