/** An API server in memory: objects, optimistic concurrency, one history for watches. Every call completes immediately; the client adds delays. */

import {
  isJsonObject,
  jsonEquals,
  ownValue,
  type JsonObject,
  type JsonValue,
} from '../../../src/base/json.ts';
import {
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../../src/kube/object.ts';
import type { ClusterName, DeletePreconditions } from '../../../src/kube/types.ts';
import { refusal } from './refusal.ts';
import { ServiceStorage } from './service-storage.ts';
import type { SimClock } from './sim-clock.ts';

export interface Change {
  readonly revision: number;
  readonly plural: string;
  readonly object: KubeObject;
  /** Undefined for a creation. */
  readonly previous: KubeObject | undefined;
  readonly isDeletion: boolean;
  readonly manager: string;
}

interface WriteContext {
  readonly manager: string;
  readonly isDryRun: boolean;
  /** Of the status alone. */
  readonly isStatus?: boolean;
}

/** An API server deletes the Endpoints of a Service together with it. */
export const API_SERVER_MANAGER = 'kube-apiserver';

/** In the changes by which a backup differs from what was there. */
export const RESTORE_MANAGER = 'etcdctl snapshot restore';

/** An API server compacts its history. */
const HISTORY_MAX = 1000;

export class SimCluster {
  readonly name: ClusterName;
  readonly #clock: SimClock;
  readonly #services: ServiceStorage;
  readonly #objects = new Map<string, Map<ObjectKey, KubeObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #streams = new Set<() => void>();
  #outage: 'refused' | 'proxied' | undefined;
  #history: Change[] = [];
  /** Namespaces that are being deleted, or that are gone. */
  readonly #closedNamespaces = new Map<string, 'terminating' | 'gone'>();
  #revision = 100;
  #compactedAt = 100;
  #uids = 0;

  constructor(name: ClusterName, clock: SimClock) {
    this.name = name;
    this.#clock = clock;
    this.#services = new ServiceStorage(name);
  }

  get revision(): number {
    return this.#revision;
  }

  /** Called after every change, in the order of the revisions. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** While the server is down: connections are refused, or a proxy in front of it answers. */
  get outage(): 'refused' | 'proxied' | undefined {
    return this.#outage;
  }

  /** `dropped` is called when the server goes down. */
  openStream(dropped: () => void): () => void {
    this.#streams.add(dropped);
    return () => this.#streams.delete(dropped);
  }

  /** The server stops, and a backup from some revisions ago takes the place of its data, as far as history reaches; Events have an etcd of
   * their own. No request of a daemon reaches it until {@link comeBack}; other clients see the restored objects. */
  restore(back: number, outage: 'refused' | 'proxied'): void {
    this.#outage = outage;
    for (const drop of this.#streams) drop();
    const revision = Math.max(this.#compactedAt, this.#revision - back);
    const restored = new Map(
      [...this.#objects.keys()]
        .filter(isRestored)
        .map((plural) => [plural, this.listAt(plural, revision)] as const),
    );
    this.#revision = revision;
    this.#history = this.#history.filter((change) => change.revision <= revision);
    for (const [plural, objects] of restored) this.#replaceAll(plural, objects);
  }

  /** `atLeast`: other resources have used up the revisions below. */
  comeBack(atLeast = 0): void {
    this.#revision = Math.max(this.#revision, atLeast);
    this.#outage = undefined;
  }

  #replaceAll(plural: string, objects: readonly KubeObject[]): void {
    const before = new Map(this.#objects.get(plural));
    const after = new Map(objects.map((object) => [objectKey(object), object]));
    this.#objects.set(plural, after);
    const change = { plural, revision: this.#revision, manager: RESTORE_MANAGER };
    const changes = [
      ...[...before.entries()].flatMap(([key, object]) =>
        after.has(key) ? [] : [{ ...change, object, previous: object, isDeletion: true }],
      ),
      ...objects.flatMap((object) => {
        const previous = before.get(objectKey(object));
        return previous === object ? [] : [{ ...change, object, previous, isDeletion: false }];
      }),
    ];
    for (const one of changes) for (const listener of this.#listeners) listener(one);
  }

  get(plural: string, key: ObjectKey): KubeObject | undefined {
    return this.#objects.get(plural)?.get(key);
  }

  list(plural: string): KubeObject[] {
    return [...(this.#objects.get(plural)?.values() ?? [])];
  }

  /** The objects as they were at a revision that history still reaches. */
  listAt(plural: string, revision: number): KubeObject[] {
    const objects = new Map(this.#objects.get(plural));
    for (const { plural: other, object, previous, revision: at } of this.#history.toReversed()) {
      if (at <= revision || other !== plural) continue;
      if (previous === undefined) objects.delete(objectKey(object));
      else objects.set(objectKey(previous), previous);
    }
    return [...objects.values()];
  }

  /** Changes after a revision; undefined when history does not reach back to it. */
  changesAfter(revision: number): readonly Change[] | undefined {
    if (revision < this.#compactedAt) return undefined;
    return this.#history.filter((change) => change.revision > revision);
  }

  get oldestRevision(): number {
    return this.#compactedAt;
  }

  compact(): void {
    this.#compactedAt = this.#revision;
    this.#history = [];
  }

  /** Creations are rejected while the namespace is being deleted, and after. */
  setNamespace(name: string, state: 'active' | 'terminating' | 'gone'): void {
    if (state === 'active') this.#closedNamespaces.delete(name);
    else this.#closedNamespaces.set(name, state);
  }

  hasNamespace(name: string): boolean {
    return !this.#closedNamespaces.has(name);
  }

  plurals(): Iterable<string> {
    return this.#objects.keys();
  }

  create(plural: string, given: KubeObject, manager: string, isDryRun = false): KubeObject {
    const key = objectKey(given);
    this.#checkNamespace(given.metadata.namespace ?? '');
    if (this.get(plural, key) !== undefined)
      throw refusal(409, 'AlreadyExists', `${plural} "${key}" already exists`);
    const metadata = {
      ...given.metadata,
      uid: `${this.name}-${++this.#uids}`,
      creationTimestamp: this.#timestamp(),
    };
    delete metadata.deletionTimestamp;
    const admitted = this.#admitted(plural, { ...given, metadata }, undefined);
    const object = this.#managed(admitted, undefined, manager);
    return isDryRun
      ? object
      : this.#commit({ plural, object, previous: undefined, isDeletion: false, manager });
  }

  /** PUT: `metadata.resourceVersion`, when set, guards it. */
  update(plural: string, given: KubeObject, manager: string, isDryRun = false): KubeObject {
    const previous = this.#existing(plural, objectKey(given));
    const { resourceVersion } = given.metadata;
    if (resourceVersion !== undefined && resourceVersion !== previous.metadata.resourceVersion)
      throw refusal(409, 'Conflict', 'the object has been modified');
    return this.#replace(plural, previous, given, { manager, isDryRun });
  }

  /** A JSON merge patch of an object, or of its status alone; a resourceVersion in it guards it. */
  mergePatch(
    plural: string,
    name: NamespacedName,
    patch: JsonValue,
    { isStatus = false, ...options }: WriteContext,
  ): KubeObject {
    const previous = this.#existing(plural, keyOf(name));
    const merged = mergeJson(previous as unknown as JsonObject, patch) as unknown as KubeObject; // a patched object
    if (merged.metadata.resourceVersion !== previous.metadata.resourceVersion)
      throw refusal(409, 'Conflict', 'the object has been modified');
    if (!isStatus) return this.#replace(plural, previous, merged, options);
    const status = { ...previous, status: merged['status'] };
    return this.#replace(plural, previous, status, { ...options, isStatus });
  }

  delete(
    plural: string,
    name: NamespacedName,
    options: DeletePreconditions & { readonly manager: string; readonly isDryRun?: boolean },
  ): void {
    const previous = this.#existing(plural, keyOf(name));
    if (options.uid !== undefined && options.uid !== previous.metadata.uid)
      throw refusal(409, 'Conflict', 'the uid in the precondition is another');
    const { resourceVersion } = options;
    if (resourceVersion !== undefined && resourceVersion !== previous.metadata.resourceVersion)
      throw refusal(409, 'Conflict', 'the resourceVersion in the precondition is another');
    if (options.isDryRun === true) return;
    const finalizers = ownValue(previous.metadata as JsonObject, 'finalizers');
    const { manager } = options;
    if (Array.isArray(finalizers) && finalizers.length > 0) {
      if (previous.metadata.deletionTimestamp !== undefined) return;
      const metadata = { ...previous.metadata, deletionTimestamp: this.#timestamp() };
      this.#commit({ plural, object: { ...previous, metadata }, previous, isDeletion: false, manager });
      return;
    }
    this.#commit({ plural, object: previous, previous, isDeletion: true, manager });
  }

  #replace(
    plural: string,
    previous: KubeObject,
    given: KubeObject,
    { manager, isDryRun, isStatus = false }: WriteContext,
  ): KubeObject {
    const { uid, creationTimestamp, deletionTimestamp, managedFields } = previous.metadata;
    if (given.metadata.uid !== undefined && given.metadata.uid !== uid)
      throw refusal(409, 'Conflict', 'the uid in the object is another');
    const metadata = {
      ...given.metadata,
      ...definedOnly({ uid, creationTimestamp, deletionTimestamp, managedFields }),
    };
    const complete = {
      ...given,
      metadata: { ...metadata, resourceVersion: previous.metadata.resourceVersion ?? '' },
    };
    const object = isStatus ? complete : this.#admitted(plural, complete, previous);
    checkImmutable(plural, object, previous);
    if (jsonEquals(asPlain(object), asPlain(previous))) return previous;
    const managed = this.#managed(object, previous, manager);
    if (isDryRun) return managed;
    const finalizers = ownValue(managed.metadata as JsonObject, 'finalizers');
    const isDeletion =
      deletionTimestamp !== undefined && (!Array.isArray(finalizers) || finalizers.length === 0);
    return this.#commit({ plural, object: managed, previous, isDeletion, manager });
  }

  #commit(change: Omit<Change, 'revision'>): KubeObject {
    const revision = ++this.#revision;
    const metadata = { ...change.object.metadata, resourceVersion: String(revision) };
    const object = deepFreeze({ ...change.object, metadata });
    const objects = this.#objects.get(change.plural) ?? new Map<ObjectKey, KubeObject>();
    this.#objects.set(change.plural, objects);
    if (change.isDeletion) objects.delete(objectKey(object));
    else objects.set(objectKey(object), object);
    const done = { ...change, object, revision };
    this.#history.push(done);
    if (this.#history.length > HISTORY_MAX) this.#forget(this.#history.splice(0, HISTORY_MAX / 2));
    for (const listener of this.#listeners) listener(done);
    if (change.isDeletion && change.plural === 'services') this.#deleteEndpoints(object);
    return object;
  }

  #deleteEndpoints({ metadata: { name, namespace = '' } }: KubeObject): void {
    if (this.get('endpoints', keyOf({ name, namespace })) !== undefined)
      this.delete('endpoints', { name, namespace }, { manager: API_SERVER_MANAGER });
  }

  #admitted(plural: string, given: KubeObject, previous: KubeObject | undefined): KubeObject {
    return plural === 'services' ? this.#services.stored(given, previous) : given;
  }

  #checkNamespace(name: string): void {
    const state = this.#closedNamespaces.get(name);
    if (state === 'gone')
      throw refusal(404, 'NotFound', `namespaces "${name}" not found`, {
        details: { name, kind: 'namespaces' },
      });
    if (state === 'terminating')
      throw refusal(403, 'Forbidden', `namespace ${name} is being terminated`, {
        details: { causes: [{ reason: 'NamespaceTerminating' }] },
      });
  }

  #forget(changes: readonly Change[]): void {
    this.#compactedAt = changes.at(-1)?.revision ?? this.#compactedAt;
  }

  #existing(plural: string, key: ObjectKey): KubeObject {
    const object = this.get(plural, key);
    if (object === undefined) throw refusal(404, 'NotFound', `${plural} "${key}" not found`);
    return object;
  }

  /** One entry for each manager, as far as this program reads them. */
  #managed(object: KubeObject, previous: KubeObject | undefined, manager: string): KubeObject {
    const others = (previous?.metadata.managedFields ?? []).filter((entry) => entry.manager !== manager);
    const entry = { manager, operation: 'Update', time: this.#timestamp() };
    return { ...object, metadata: { ...object.metadata, managedFields: [...others, entry] } };
  }

  #timestamp(): string {
    const seconds = Math.floor(this.#clock.nowMs / 1000);
    return new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString().replace('.000Z', 'Z');
  }
}

function isRestored(plural: string): boolean {
  return plural !== 'events';
}

const IMMUTABLE_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  endpointslices: ['addressType'],
  secrets: ['type'],
};

function checkImmutable(plural: string, object: KubeObject, previous: KubeObject): void {
  const members = [
    ...(IMMUTABLE_MEMBERS[plural] ?? []),
    ...(previous['immutable'] === true ? ['data', 'immutable'] : []),
  ];
  const [wanted, actual] = [asPlain(object), asPlain(previous)];
  const changed = members.find((member) => !jsonEquals(wanted[member] ?? null, actual[member] ?? null));
  if (changed !== undefined) throw refusal(422, 'Invalid', `${changed}: field is immutable`);
}

function asPlain(object: KubeObject): JsonObject {
  return object as unknown as JsonObject; // Kubernetes objects are JSON
}

function definedOnly<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>; // a part of it
}

/** RFC 7396. */
function mergeJson(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const result: JsonObject = isJsonObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergeJson(ownValue(result, key), value);
  }
  return result;
}

/** A program that changes an object of its cache fails immediately. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
