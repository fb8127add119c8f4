/** A client that reads and writes objects of one namespace only, whatever its user may do. */

import type { Resource } from '../kube/object.ts';
import { failure } from '../kube/status-error.ts';
import type { WatchClient } from '../kube/types.ts';

/**
 * The identity of a fleet may have rights in every namespace, but its members are separate tenants, and vClusters of one name are common: a member that
 * lists the copies of its name everywhere reads those of all others. Its sync gets what it gets with a Role in its own namespace. Resources without
 * namespaces, discovery and access reviews are left to the rights of the identity.
 */
export function confinedClient(client: WatchClient, namespace: string): WatchClient {
  const check = ({ plural, isNamespaced }: Resource, requested: string | undefined): void => {
    if (!isNamespaced || requested === namespace) return;
    const where = requested === undefined || requested === '' ? 'all namespaces' : `namespace "${requested}"`;
    throw failure(403, 'Forbidden', `${plural} in ${where}: the member is confined to "${namespace}"`);
  };
  return {
    cluster: client.cluster,
    async get(resource, key, options) {
      check(resource, key.namespace);
      return client.get(resource, key, options);
    },
    async list(resource, options) {
      check(resource, options?.namespace);
      return client.list(resource, options);
    },
    async watch(resource, options, handler) {
      check(resource, options.namespace);
      return client.watch(resource, options, handler);
    },
    async create(resource, object, options) {
      check(resource, object.metadata.namespace);
      return client.create(resource, object, options);
    },
    async update(resource, object, options) {
      check(resource, object.metadata.namespace);
      return client.update(resource, object, options);
    },
    async patch(resource, key, patch, options) {
      check(resource, key.namespace);
      return client.patch(resource, key, patch, options);
    },
    async delete(resource, key, preconditions, options) {
      check(resource, key.namespace);
      return client.delete(resource, key, preconditions, options);
    },
    request: (method, path, body, options) => client.request(method, path, body, options),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
