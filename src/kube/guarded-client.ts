/** A client that checks each write immediately before it is sent. */

import type { RequestOptions, WatchClient } from './types.ts';

/**
 * `checkWrite` throws if writes are not allowed. It is called when a connection is free, not when the request is queued, so a process
 * that was suspended in between sends nothing. Disposing of the result does not dispose of `client`.
 */
export function guardedClient(client: WatchClient, checkWrite: () => void): WatchClient {
  const guarded = <T extends RequestOptions>(options: T | undefined): T & RequestOptions => ({
    ...(options ?? ({} as T)), // every member of T is optional
    beforeSend: checkWrite,
  });
  return {
    cluster: client.cluster,
    get: (resource, key, options) => client.get(resource, key, options),
    list: (resource, options) => client.list(resource, options),
    watch: (resource, options, handler) => client.watch(resource, options, handler),
    create: (resource, object, options) => client.create(resource, object, guarded(options)),
    update: (resource, object, options) => client.update(resource, object, guarded(options)),
    patch: (resource, key, patch, options) => client.patch(resource, key, patch, guarded(options)),
    delete: (resource, key, preconditions, options) =>
      client.delete(resource, key, preconditions, guarded(options)),
    request: (method, path, body, options) =>
      client.request(method, path, body, method === 'GET' ? options : guarded(options)),
    // The client is owned by the caller.
    [Symbol.asyncDispose]: async () => undefined,
  };
}
