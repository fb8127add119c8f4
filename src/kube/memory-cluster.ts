/** A cluster in memory behind the interface of a client: objects, optimistic concurrency, one history for watches; without sockets and latency. */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  mergePatch,
  ownValue,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import { parseLabelSelector } from './label-selector.ts';
import {
  asJson,
  asObject,
  cloneObject,
  keyOf,
  nameOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from './object.ts';
import { failure } from './status-error.ts';
import type {
  ClusterName,
  DeletePreconditions,
  ListOptions,
  ObjectList,
  PatchOptions,
  PatchType,
  WatchClient,
  WatchEventType,
  WatchHandler,
  WatchOptions,
  WriteOptions,
} from './types.ts';

export interface Change {
  readonly revision: number;
  readonly plural: string;
  readonly object: KubeObject;
  /** Undefined for a creation. */
  readonly previous: KubeObject | undefined;
  readonly isDeletion: boolean;
  /** The field manager of the request. */
  readonly manager: string;
}

export interface MemoryClusterOptions {
  readonly name: ClusterName;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number;
  /** The object as an API server stores it: with defaults and allocated fields. Throws a `StatusError` for an invalid one. */
  readonly admit?: (plural: string, object: KubeObject, previous: KubeObject | undefined) => KubeObject;
  /** The Endpoints of a Service are deleted together with it, as API servers before 1.37 do. Default: they stay. */
  readonly deletesEndpoints?: boolean;
}

export interface WriteContext {
  readonly manager: string;
  readonly isDryRun?: boolean;
}

/** Of what an API server deletes together with another object. */
export const API_SERVER_MANAGER = 'kube-apiserver';

/** An API server compacts its history. */
const HISTORY_MAX = 1000;

/** Every call completes immediately. A plural is one that {@link qualifiedPlural} gives. */
export class MemoryCluster {
  readonly name: ClusterName;
  readonly #options: MemoryClusterOptions;
  protected readonly objects = new Map<string, Map<ObjectKey, KubeObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  protected history: Change[] = [];
  protected newest = 100;
  #compactedAt = 100;
  #uids = 0;
  /** Namespaces that are being deleted, or that are gone. */
  readonly #closedNamespaces = new Map<string, 'terminating' | 'gone'>();

  constructor(options: MemoryClusterOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get revision(): number {
    return this.newest;
  }

  /** The oldest revision from which a watch can resume. */
  get oldestRevision(): number {
    return this.#compactedAt;
  }

  /** Called after every change, in the order of the revisions. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stores an object of another cluster or of a file as it is, with a resourceVersion if it has none. */
  load(plural: string, object: KubeObject): void {
    const resourceVersion = object.metadata.resourceVersion ?? String(this.newest + 1);
    const complete = { ...object, metadata: { ...object.metadata, resourceVersion } };
    const admitted = this.#admitted(plural, cloneObject(complete), undefined);
    this.#ofPlural(plural).set(objectKey(object), deepFreeze(admitted));
    this.newest = Math.max(this.newest, Number(resourceVersion));
    this.#compactedAt = this.newest;
    // Objects of another cluster in memory may have uids up to its revision.
    this.#uids = this.newest;
  }

  get(plural: string, key: ObjectKey): KubeObject | undefined {
    return this.objects.get(plural)?.get(key);
  }

  list(plural: string): KubeObject[] {
    return [...(this.objects.get(plural)?.values() ?? [])];
  }

  /** The objects as they were at a revision that history still reaches. */
  listAt(plural: string, revision: number): KubeObject[] {
    if (revision >= this.newest) return this.list(plural);
    const objects = new Map(this.objects.get(plural));
    for (const { plural: other, object, previous, revision: at } of this.history.toReversed()) {
      if (at <= revision || other !== plural) continue;
      if (previous === undefined) objects.delete(objectKey(object));
      else objects.set(objectKey(previous), previous);
    }
    return [...objects.values()];
  }

  /** Changes after a revision; undefined when history does not reach back to it. */
  changesAfter(revision: number): readonly Change[] | undefined {
    if (revision < this.#compactedAt) return undefined;
    return this.history.filter((change) => change.revision > revision);
  }

  compact(): void {
    this.#compactedAt = this.newest;
    this.history = [];
  }

  plurals(): Iterable<string> {
    return this.objects.keys();
  }

  /** Creations are rejected while the namespace is being deleted, and after. */
  setNamespace(name: string, state: 'active' | 'terminating' | 'gone'): void {
    if (state === 'active') this.#closedNamespaces.delete(name);
    else this.#closedNamespaces.set(name, state);
  }

  hasNamespace(name: string): boolean {
    return !this.#closedNamespaces.has(name);
  }

  create(plural: string, given: KubeObject, { manager, isDryRun = false }: WriteContext): KubeObject {
    const key = objectKey(given);
    this.#checkNamespace(given.metadata.namespace ?? '');
    if (this.get(plural, key) !== undefined)
      throw failure(409, 'AlreadyExists', `${plural} "${key}" already exists`);
    const metadata = { ...given.metadata, uid: this.#newUid(), creationTimestamp: this.#timestamp() };
    delete metadata.deletionTimestamp;
    const admitted = this.#admitted(plural, { ...given, metadata }, undefined);
    const object = this.#managed(admitted, undefined, manager);
    if (isDryRun) return object;
    return this.#commit({ plural, object, previous: undefined, isDeletion: false, manager });
  }

  /** PUT: `metadata.resourceVersion`, when set, is a precondition. */
  update(plural: string, given: KubeObject, context: WriteContext): KubeObject {
    const previous = this.existing(plural, objectKey(given));
    checkVersion(given.metadata.resourceVersion, previous);
    return this.#replace(plural, previous, given, context);
  }

  /** A JSON merge patch of an object, or of its status alone; a uid and a resourceVersion in it are preconditions. */
  mergePatch(
    plural: string,
    name: NamespacedName,
    patch: JsonObject,
    { isStatus = false, ...context }: WriteContext & { readonly isStatus?: boolean },
  ): KubeObject {
    const previous = this.existing(plural, keyOf(name));
    const merged = asObject(mergePatch(asJson(previous), patch));
    checkVersion(merged.metadata.resourceVersion, previous);
    checkUid(merged.metadata.uid, previous);
    if (!isStatus) return this.#replace(plural, previous, merged, context);
    return this.#replace(plural, previous, { ...previous, status: merged['status'] }, context, true);
  }

  /** An object with finalizers is only marked. */
  delete(
    plural: string,
    name: NamespacedName,
    { manager, isDryRun = false, uid, resourceVersion }: DeletePreconditions & WriteContext,
  ): void {
    const previous = this.existing(plural, keyOf(name));
    if (uid !== undefined && uid !== previous.metadata.uid)
      throw failure(409, 'Conflict', 'the uid in the precondition is another');
    checkVersion(resourceVersion, previous);
    if (isDryRun) return;
    if (!hasFinalizers(previous)) {
      this.#commit({ plural, object: previous, previous, isDeletion: true, manager });
      return;
    }
    if (previous.metadata.deletionTimestamp !== undefined) return;
    const metadata = { ...previous.metadata, deletionTimestamp: this.#timestamp() };
    this.#commit({ plural, object: { ...previous, metadata }, previous, isDeletion: false, manager });
  }

  #replace(
    plural: string,
    previous: KubeObject,
    given: KubeObject,
    { manager, isDryRun = false }: WriteContext,
    isStatus = false,
  ): KubeObject {
    const {
      uid,
      creationTimestamp,
      deletionTimestamp,
      managedFields,
      resourceVersion = '',
    } = previous.metadata;
    if (given.metadata.uid !== undefined && given.metadata.uid !== uid)
      throw failure(409, 'Conflict', 'the uid in the object is another');
    const kept = { uid, creationTimestamp, deletionTimestamp, managedFields };
    const metadata = { ...given.metadata, ...definedOnly(kept), resourceVersion };
    const complete = { ...given, metadata };
    const object = isStatus ? complete : this.#admitted(plural, complete, previous);
    checkImmutable(plural, object, previous);
    if (jsonEquals(asJson(object), asJson(previous))) return previous;
    const managed = this.#managed(object, previous, manager);
    if (isDryRun) return managed;
    const isDeletion = deletionTimestamp !== undefined && !hasFinalizers(managed);
    return this.#commit({ plural, object: managed, previous, isDeletion, manager });
  }

  #commit(change: Omit<Change, 'revision'>): KubeObject {
    const revision = ++this.newest;
    const metadata = { ...change.object.metadata, resourceVersion: String(revision) };
    const object = deepFreeze({ ...change.object, metadata });
    const objects = this.#ofPlural(change.plural);
    if (change.isDeletion) objects.delete(objectKey(object));
    else objects.set(objectKey(object), object);
    const done = { ...change, object, revision };
    this.history.push(done);
    if (this.history.length > HISTORY_MAX) {
      const forgotten = this.history.splice(0, HISTORY_MAX / 2);
      this.#compactedAt = forgotten.at(-1)?.revision ?? this.#compactedAt;
    }
    this.publish(done);
    if (change.plural === 'namespaces' && !change.isDeletion)
      this.setNamespace(object.metadata.name, 'active');
    const isService = change.isDeletion && change.plural === 'services';
    if (isService && this.#options.deletesEndpoints === true) this.#deleteEndpoints(object);
    return object;
  }

  protected publish(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }

  #deleteEndpoints(service: KubeObject): void {
    if (this.get('endpoints', objectKey(service)) !== undefined)
      this.delete('endpoints', nameOf(service), { manager: API_SERVER_MANAGER });
  }

  #admitted(plural: string, given: KubeObject, previous: KubeObject | undefined): KubeObject {
    return this.#options.admit?.(plural, given, previous) ?? given;
  }

  #checkNamespace(name: string): void {
    const state = this.#closedNamespaces.get(name);
    if (state === 'gone')
      throw failure(404, 'NotFound', `namespaces "${name}" not found`, { name, kind: 'namespaces' });
    if (state === 'terminating')
      throw failure(
        403,
        'Forbidden',
        `unable to create new content in namespace ${name} because it is being terminated`,
        { causes: [{ reason: 'NamespaceTerminating' }] },
      );
  }

  /** Throws a `StatusError` if there is none. */
  existing(plural: string, key: ObjectKey): KubeObject {
    const object = this.get(plural, key);
    if (object === undefined) throw failure(404, 'NotFound', `${plural} "${key}" not found`);
    return object;
  }

  #ofPlural(name: string): Map<ObjectKey, KubeObject> {
    const objects = this.objects.get(name) ?? new Map<ObjectKey, KubeObject>();
    this.objects.set(name, objects);
    return objects;
  }

  /** One entry for each manager, as far as this program reads them. */
  #managed(object: KubeObject, previous: KubeObject | undefined, manager: string): KubeObject {
    const others = (previous?.metadata.managedFields ?? []).filter((entry) => entry.manager !== manager);
    const entry = { manager, operation: 'Update', time: this.#timestamp() };
    return { ...object, metadata: { ...object.metadata, managedFields: [...others, entry] } };
  }

  #newUid(): string {
    return `${this.name}-${++this.#uids}`;
  }

  #timestamp(): string {
    const seconds = Math.floor(this.#options.now() / 1000);
    return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
  }
}

/** The plural, and the group of kinds that are not of the core group: `endpoints`, `leases.coordination.k8s.io`. */
export function qualifiedPlural({ plural, group }: Pick<Resource, 'plural' | 'group'>): string {
  return group === '' ? plural : `${plural}.${group}`;
}

export interface MemoryClientOptions {
  /** Field manager of requests that name none. */
  readonly manager: string;
}

/** Objects are copied on the way in and out, as on a wire: the receiver may change them. */
export class MemoryClient implements WatchClient {
  readonly cluster: ClusterName;
  readonly #memory: MemoryCluster;
  readonly #manager: string;

  constructor(memory: MemoryCluster, { manager }: MemoryClientOptions) {
    this.cluster = memory.name;
    this.#memory = memory;
    this.#manager = manager;
  }

  async get(resource: Resource, name: NamespacedName): Promise<KubeObject> {
    return cloneObject(this.#memory.existing(qualifiedPlural(resource), keyOf(name)));
  }

  async list(resource: Resource, options: ListOptions = {}): Promise<ObjectList> {
    const { limit = Infinity, continueToken = '' } = options;
    return listPage(this.#memory, qualifiedPlural(resource), { ...options, limit, continueToken });
  }

  async create(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    return cloneObject(
      this.#memory.create(qualifiedPlural(resource), cloneObject(object), this.#context(options)),
    );
  }

  async update(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    return cloneObject(
      this.#memory.update(qualifiedPlural(resource), cloneObject(object), this.#context(options)),
    );
  }

  async patch(
    resource: Resource,
    name: NamespacedName,
    { type, body }: { type: PatchType; body: JsonValue },
    options: PatchOptions = {},
  ): Promise<KubeObject> {
    if (type !== 'merge' || !isJsonObject(body))
      throw failure(415, 'UnsupportedMediaType', 'only merge patches of objects are supported');
    const context = { ...this.#context(options), isStatus: options.subresource === 'status' };
    return cloneObject(this.#memory.mergePatch(qualifiedPlural(resource), name, cloneJson(body), context));
  }

  async delete(
    resource: Resource,
    name: NamespacedName,
    preconditions: DeletePreconditions,
    options: WriteOptions = {},
  ): Promise<void> {
    this.#memory.delete(qualifiedPlural(resource), name, { ...preconditions, ...this.#context(options) });
  }

  async request(_method: string, path: string): Promise<JsonValue> {
    throw failure(404, 'NotFound', `${path} not found`);
  }

  /** Events are delivered after the write that causes them has returned. Ends only when the signal aborts. */
  watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void> {
    const { signal, resourceVersion } = options;
    const missed = this.#memory.changesAfter(Number(resourceVersion));
    if (missed === undefined)
      return Promise.reject(failure(410, 'Expired', `resourceVersion ${resourceVersion} is too old`));
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        unsubscribe();
        settle();
      };
      const deliver = (change: Change): void => {
        const event = eventOf(change, qualifiedPlural(resource), options);
        if (event === undefined) return;
        queueMicrotask(() => {
          if (signal?.aborted === true) return;
          try {
            handler.dataReceived();
            handler.event(event.type, cloneObject(event.object));
          } catch (error) {
            end(() => reject(error as Error));
          }
        });
      };
      const unsubscribe = this.#memory.subscribe(deliver);
      if (signal?.aborted === true) return end(resolve);
      signal?.addEventListener('abort', () => end(() => reject(signal.reason as Error)), { once: true });
      handler.started();
      for (const change of missed) deliver(change);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #context({ fieldManager = this.#manager, isDryRun = false }: WriteOptions): WriteContext {
    return { manager: fieldManager, isDryRun };
  }
}

export interface PageOptions extends Scope {
  readonly limit: number;
  readonly continueToken: string;
  /** Of the first page; the newest if absent. All pages of a list show the same revision. */
  readonly atRevision?: number;
}

/** One page of a list, sorted by key. Throws a `StatusError` when the revision of the continue token is compacted. */
export function listPage(cluster: MemoryCluster, plural: string, options: PageOptions): ObjectList {
  const { limit, continueToken, atRevision = cluster.revision, isMetadataOnly = false } = options;
  const [revision = 0, from = 0] = continueToken === '' ? [atRevision] : continueToken.split(' ').map(Number);
  if (revision < cluster.oldestRevision) throw failure(410, 'Expired', 'the continue token is too old');
  const found = cluster
    .listAt(plural, revision)
    .filter((object) => isInScope(object, options))
    .toSorted((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1));
  const page = found.slice(from, from + limit);
  const next = from + page.length;
  return {
    resourceVersion: String(revision),
    continueToken: next < found.length ? `${revision} ${next}` : '',
    items: page.map((object) => cloneObject(isMetadataOnly ? metadataOnly(object) : object)),
  };
}

type Scope = Pick<ListOptions, 'namespace' | 'labelSelector' | 'isMetadataOnly'>;

/** The watch event of a change; undefined if the watch does not show it. */
export function eventOf(
  { plural, object, previous, isDeletion, revision }: Change,
  watched: string,
  scope: Scope & Pick<WatchOptions, 'resourceVersion'>,
): { readonly type: WatchEventType; readonly object: KubeObject } | undefined {
  if (plural !== watched || revision <= Number(scope.resourceVersion)) return undefined;
  const was = previous !== undefined && isInScope(previous, scope);
  const is = !isDeletion && isInScope(object, scope);
  if (!was && !is) return undefined;
  const type = !is ? 'DELETED' : was ? 'MODIFIED' : 'ADDED';
  // As an API server does: the last state that the watch has shown, with the version of the change.
  const shown = is || isDeletion ? object : withVersion(previous ?? object, revision);
  return { type, object: scope.isMetadataOnly === true ? metadataOnly(shown) : shown };
}

function withVersion(object: KubeObject, revision: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}

function isInScope(object: KubeObject, { namespace, labelSelector = '' }: Scope): boolean {
  if (namespace !== undefined && object.metadata.namespace !== namespace) return false;
  return labelSelector === '' || parseLabelSelector(labelSelector)(object.metadata.labels ?? {});
}

function metadataOnly({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata,
  };
}

function checkVersion(wanted: string | undefined, { metadata: { resourceVersion } }: KubeObject): void {
  if (wanted !== undefined && wanted !== resourceVersion)
    throw failure(409, 'Conflict', 'the object has been modified');
}

function checkUid(wanted: string | undefined, { metadata: { uid } }: KubeObject): void {
  if (wanted === undefined || wanted === uid) return;
  const cause = { field: 'metadata.uid', message: `Invalid value: "${wanted}": field is immutable` };
  throw failure(422, 'Invalid', `${cause.field}: ${cause.message}`, { causes: [cause] });
}

/** By plural. */
const IMMUTABLE_MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['endpointslices', ['addressType']],
  ['secrets', ['type']],
]);

function checkImmutable(qualified: string, object: KubeObject, previous: KubeObject): void {
  const [plural = ''] = qualified.split('.');
  const members = [
    ...(IMMUTABLE_MEMBERS.get(plural) ?? []),
    ...(previous['immutable'] === true ? ['data', 'immutable'] : []),
  ];
  const [wanted, actual] = [asJson(object), asJson(previous)];
  const changed = members.find((member) => !jsonEquals(wanted[member] ?? null, actual[member] ?? null));
  if (changed !== undefined) throw failure(422, 'Invalid', `${changed}: field is immutable`);
}

function hasFinalizers({ metadata }: KubeObject): boolean {
  const finalizers = ownValue(metadata as JsonObject, 'finalizers');
  return Array.isArray(finalizers) && finalizers.length > 0;
}

function definedOnly<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>; // a part of it
}

/** A program that changes an object of its cache fails immediately. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
