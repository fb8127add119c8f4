/** A client on the connections of another one. */

import { TransportError, type RequestOptions, type WatchClient } from './types.ts';

/** Disposing of the result aborts its own requests in flight and rejects later ones; `client` and its connections stay open. */
export function borrowedClient(client: WatchClient): WatchClient {
  const closing = new AbortController();
  const own = <T extends RequestOptions>(options: T | undefined): T & RequestOptions => ({
    ...(options ?? ({} as T)), // every member of T is optional
    signal:
      options?.signal === undefined ? closing.signal : AbortSignal.any([options.signal, closing.signal]),
  });
  return {
    cluster: client.cluster,
    get: (resource, key, options) => client.get(resource, key, own(options)),
    list: (resource, options) => client.list(resource, own(options)),
    watch: (resource, options, handler) => client.watch(resource, own(options), handler),
    create: (resource, object, options) => client.create(resource, object, own(options)),
    update: (resource, object, options) => client.update(resource, object, own(options)),
    patch: (resource, key, patch, options) => client.patch(resource, key, patch, own(options)),
    delete: (resource, key, preconditions, options) =>
      client.delete(resource, key, preconditions, own(options)),
    request: (method, path, body, options) => client.request(method, path, body, own(options)),
    async [Symbol.asyncDispose]() {
      // As of a connection that is closed: a write may have happened.
      closing.abort(new TransportError('this client is closed'));
    },
  };
}
