/** A client that checks each write immediately before it is sent. */

import type { JsonValue } from '../base/json.ts';
import type { KubeObject, NamespacedName, Resource } from './object.ts';
import type {
  DeletePreconditions,
  ListOptions,
  ObjectList,
  PatchOptions,
  PatchType,
  RequestOptions,
  WatchClient,
  WatchHandler,
  WatchOptions,
  WriteOptions,
} from './types.ts';

/** `checkWrite` throws if writes are not allowed. It is called when a connection is free, not when the request is queued, so a process
 * that was suspended in between sends nothing. Disposing of the result does not dispose of `client`.
 */
export function guardedClient(client: WatchClient, checkWrite: () => void): WatchClient {
  return new GuardedClient(client, checkWrite);
}

class GuardedClient implements WatchClient {
  readonly #client: WatchClient;
  readonly #checkWrite: () => void;

  constructor(client: WatchClient, checkWrite: () => void) {
    this.#client = client;
    this.#checkWrite = checkWrite;
  }

  get cluster(): WatchClient['cluster'] {
    return this.#client.cluster;
  }

  get(resource: Resource, key: NamespacedName, options?: RequestOptions): Promise<KubeObject> {
    return this.#client.get(resource, key, options);
  }

  list(resource: Resource, options?: ListOptions): Promise<ObjectList> {
    return this.#client.list(resource, options);
  }

  watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void> {
    return this.#client.watch(resource, options, handler);
  }

  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject> {
    return this.#client.create(resource, object, this.#guarded(options));
  }

  update(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject> {
    return this.#client.update(resource, object, this.#guarded(options));
  }

  patch(
    resource: Resource,
    key: NamespacedName,
    patch: { type: PatchType; body: JsonValue },
    options?: PatchOptions,
  ): Promise<KubeObject> {
    return this.#client.patch(resource, key, patch, this.#guarded(options));
  }

  delete(
    resource: Resource,
    key: NamespacedName,
    preconditions: DeletePreconditions,
    options?: RequestOptions,
  ): Promise<void> {
    return this.#client.delete(resource, key, preconditions, this.#guarded(options));
  }

  request(method: string, path: string, body?: JsonValue, options?: RequestOptions): Promise<JsonValue> {
    return this.#client.request(method, path, body, method === 'GET' ? options : this.#guarded(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The client is owned by the caller.
  }

  #guarded<T extends RequestOptions>(options: T | undefined): T & RequestOptions {
    return { ...(options ?? ({} as T)), beforeSend: this.#checkWrite }; // every member of T is optional
  }
}
