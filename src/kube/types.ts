/** The contract of this folder: clients, informers and Events. */

import type { KubeObject, NamespacedName, ObjectKey, Resource } from './object.ts';
import type { JsonValue } from '../base/json.ts';

/** Which of the two clusters, as it appears in logs, metrics and Events. */
export type ClusterName = 'virtual' | 'host';

export interface RequestOptions {
  signal?: AbortSignal;
  /** Until the complete response has arrived, retries included. Default 30 s. */
  timeoutMs?: number;
  /** Called immediately before the request is sent. If it throws, nothing is sent and the request rejects with that error. */
  beforeSend?: () => void;
  /** The body has a credential, which is not sent without TLS: the request rejects with a `TransportError` then. */
  isSecret?: boolean;
  /** Reads are retried within the timeout after 429 and 503; false leaves that to the caller. */
  isRetried?: boolean;
}

export interface WriteOptions extends RequestOptions {
  fieldManager?: string;
  /** The server does everything except storing the result. */
  isDryRun?: boolean;
}

export interface PatchOptions extends WriteOptions {
  /** Absent: the object itself. */
  subresource?: 'status' | undefined;
}

/** `merge` sends `application/merge-patch+json`, `json` a JSON Patch. */
export type PatchType = 'merge' | 'json';

export interface DeletePreconditions {
  uid?: string;
  resourceVersion?: string;
}

export interface ListOptions extends RequestOptions {
  /** Absent: every namespace. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  limit?: number;
  continueToken?: string;
  resourceVersion?: string;
  /** Requests `PartialObjectMetadata`: only `metadata` is returned. */
  isMetadataOnly?: boolean | undefined;
  /** Malformed items are reported; otherwise one of them makes the list a `MalformedResponseError`. */
  leavesOutMalformed?: boolean;
}

export interface ObjectList {
  resourceVersion: string;
  continueToken: string;
  items: KubeObject[];
  /** Only with `leavesOutMalformed`. */
  malformed?: readonly MalformedItem[];
}

/** An item of a list that is not an object as the rest of the program relies on. */
export interface MalformedItem {
  /** Undefined: not even its name can be read. */
  readonly key: ObjectKey | undefined;
  /** `metadata.labels is not a map of strings`. */
  readonly why: string;
}

/**
 * One API server, raw JSON in and out. Every method rejects with `StatusError` for an error response (its `code`, `reason` and
 * `retryAfterMs` are set) and with `TransportError` without a response: then a write may or may not have happened.
 */
export interface ClusterClient {
  readonly cluster: ClusterName;
  get(resource: Resource, key: NamespacedName, options?: RequestOptions): Promise<KubeObject>;
  list(resource: Resource, options?: ListOptions): Promise<ObjectList>;
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** PUT. The object's `metadata.resourceVersion`, if set, is a precondition. */
  update(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  patch(
    resource: Resource,
    key: NamespacedName,
    patch: { type: PatchType; body: JsonValue },
    options?: PatchOptions,
  ): Promise<KubeObject>;
  delete(
    resource: Resource,
    key: NamespacedName,
    preconditions: DeletePreconditions,
    options?: WriteOptions,
  ): Promise<void>;
  /** Any other request, e.g. discovery or an access review. `path` starts with `/`. */
  request(method: string, path: string, body?: JsonValue, options?: RequestOptions): Promise<JsonValue>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WatchOptions extends RequestOptions {
  /** Absent: every namespace. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  resourceVersion: string;
  /** After this many seconds the server ends the watch. */
  timeoutSeconds?: number;
  isMetadataOnly?: boolean | undefined;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';

/** One version of one object. */
export interface ObjectVersion extends NamespacedName {
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface WatchHandler {
  /** The server has accepted the watch. */
  started(): void;
  /** Data has been received. */
  dataReceived(): void;
  /** True if the event with this version changes nothing and has been counted: then {@link event} is not called. Absent: false. */
  ignores?(type: 'ADDED' | 'MODIFIED', version: ObjectVersion): boolean;
  event(type: WatchEventType, object: KubeObject): void;
}

/** A client that can also watch. */
export interface WatchClient extends ClusterClient {
  /** Watches changes after `resourceVersion`, bookmarks included. Resolves when the server ends the watch. Rejects with `StatusError` for an
   * error response or an ERROR event, with `TransportError` if the connection breaks, with `MalformedStreamError` for an invalid watch
   * event, and with errors of the handler.
   */
  watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void>;
}

/** A change of a cache, published after the cache has been updated. */
export interface CacheEvent {
  type: 'added' | 'updated' | 'deleted';
  key: ObjectKey;
  /** The object now, or the last state known before the deletion. Shared and immutable. */
  object: KubeObject;
  /** The state before, for `updated`. */
  previous?: KubeObject;
  /** From the first list, before the cache was in sync: the object has not necessarily changed. */
  isInitial?: boolean;
  /** The server was restored from a backup, or may have been while it could not be reached. No client has to have deleted a deleted object, and
   * after a restore there is an event for every object, because the same version may have other content. */
  mayBeRestored?: boolean;
}

/** A read-only view of one resource in one cluster. Objects are shared and must not be modified. */
export interface Lister {
  readonly resource: Resource;
  get(key: ObjectKey): KubeObject | undefined;
  list(): Iterable<KubeObject>;
  /** Keys under one value of a named index, see {@link InformerOptions.indexes}. */
  byIndex(index: string, value: string): ReadonlySet<ObjectKey>;
  readonly size: number;
}

/** Index name → the values under which an object is found. */
export type IndexFunctions = Readonly<Record<string, (object: KubeObject) => readonly string[]>>;

/** A cache of one resource, kept up to date by a list-watch. */
export interface Informer extends Lister {
  /** True once the first list is in the cache and its events are published; it stays true. */
  readonly isSynced: boolean;
  /** Resolves when `isSynced` becomes true; rejects when `signal` aborts. */
  whenSynced(signal: AbortSignal): Promise<void>;
  /** The collection's resourceVersion that the cache has reached (list, event or bookmark); '' before the first list. */
  readonly resourceVersion: string;
  /** Milliseconds since the last data from the API server (event, bookmark or list). */
  readonly stalenessMs: number;
  /** Handlers run synchronously and must only enqueue keys. */
  subscribe(handler: (event: CacheEvent) => void): void;
  /** The newest version of the collection that this process knows, its own writes included. */
  readonly newestVersion: string;
  /** Stores the response to a write immediately, so that the next reconcile does not see an older state. Publishes no event. `knownWhenSent`:
   * the {@link newestVersion} when a write was sent that must have a newer version; an older one means that the server was restored from a
   * backup, and all objects are listed again. */
  observeWrite(object: KubeObject, knownWhenSent?: string): void;
  /** The same for a confirmed deletion. */
  observeDelete(key: ObjectKey, uid: string): void;
  /** Stores an object that was returned by a GET before its watch event arrived, and publishes the event. */
  observeRead(object: KubeObject): void;
  /** The same for an object that a GET did not find. */
  observeAbsence(key: ObjectKey, uid: string): void;
  /** A watch of this namespace is broken: the server may have been restored from a backup since then, and have given a version again. */
  mayBeRestored(namespace: string): boolean;
  /** False: the server has other content than the cache under the version of this object, which was just read. All objects are listed again. */
  confirms(object: KubeObject): boolean;
  /** Runs until `signal` aborts; errors become states and metrics, it never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Records Events, see https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/. */
export interface EventRecorder {
  /** Records an Event of events.k8s.io/v1 on `regarding`; equal ones become a series. Never rejects, never blocks. */
  event(regarding: KubeObject, resource: Resource, event: RecordedEvent): void;
  /** Sends pending Events. */
  flush(): Promise<void>;
}

export interface RecordedEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  /** At most 1024 bytes are kept. */
  note: string;
  /** The action that the Event reports, UpperCamelCase. Default `Sync`. */
  action?: string;
}

/** There was no response: connection refused, reset, timed out, or not HTTP. A write may have happened. */
export class TransportError extends Error {
  override readonly name: string = 'TransportError';
  /** Where a write failed; undefined for a read. */
  cluster?: ClusterName;
}

/** The response is not what the API specifies. A write may have happened. */
export class MalformedResponseError extends TransportError {
  override readonly name = 'MalformedResponseError';
}

/** The stream of a watch contains an invalid event. */
export class MalformedStreamError extends Error {
  override readonly name = 'MalformedStreamError';
}
