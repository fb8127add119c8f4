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
import { StatusError, type Status, type StatusDetails } from '../../../src/kube/status-error.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
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

/** An API server compacts its history. */
const HISTORY_MAX = 1000;

export class SimCluster {
  readonly name: ClusterName;
  readonly #clock: SimClock;
  readonly #objects = new Map<string, Map<ObjectKey, KubeObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  #history: Change[] = [];
  /** Namespaces that are being deleted, or that are gone. */
  readonly #closedNamespaces = new Map<string, 'terminating' | 'gone'>();
  #revision = 100;
  #compactedAt = 100;
  #uids = 0;

  constructor(name: ClusterName, clock: SimClock) {
    this.name = name;
    this.#clock = clock;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Called after every change, in the order of the revisions. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    const object = this.#managed({ ...given, metadata }, undefined, manager);
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

  /** A JSON merge patch; a resourceVersion in it guards it. */
  mergePatch(
    plural: string,
    name: NamespacedName,
    patch: JsonValue,
    { manager, isDryRun }: { readonly manager: string; readonly isDryRun: boolean },
  ): KubeObject {
    const previous = this.#existing(plural, keyOf(name));
    const merged = mergeJson(previous as unknown as JsonObject, patch) as unknown as KubeObject; // a patched object
    if (merged.metadata.resourceVersion !== previous.metadata.resourceVersion)
      throw refusal(409, 'Conflict', 'the object has been modified');
    return this.#replace(plural, previous, merged, { manager, isDryRun });
  }

  delete(
    plural: string,
    name: NamespacedName,
    options: { readonly manager: string; readonly uid?: string | undefined; readonly isDryRun?: boolean },
  ): void {
    const previous = this.#existing(plural, keyOf(name));
    if (options.uid !== undefined && options.uid !== previous.metadata.uid)
      throw refusal(409, 'Conflict', 'the uid in the precondition is another');
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
    { manager, isDryRun }: { readonly manager: string; readonly isDryRun: boolean },
  ): KubeObject {
    const { uid, creationTimestamp, deletionTimestamp, managedFields } = previous.metadata;
    if (given.metadata.uid !== undefined && given.metadata.uid !== uid)
      throw refusal(409, 'Conflict', 'the uid in the object is another');
    const metadata = {
      ...given.metadata,
      ...definedOnly({ uid, creationTimestamp, deletionTimestamp, managedFields }),
    };
    const object = {
      ...given,
      metadata: { ...metadata, resourceVersion: previous.metadata.resourceVersion ?? '' },
    };
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
    return object;
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

/** The refusal of an API server. */
export function refusal(
  code: number,
  reason: string,
  message: string,
  { retryAfterMs, details }: { readonly retryAfterMs?: number; readonly details?: StatusDetails } = {},
): StatusError {
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
  };
  return new StatusError({ ...status, ...(details === undefined ? {} : { details }) }, { retryAfterMs });
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
