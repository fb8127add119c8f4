/** Maps kinds to the resources of an API server. */

import { TerminalError } from '../base/errors.ts';
import { isDnsLabel } from './names.ts';
import { groupOf, type Resource } from './object.ts';
import { StatusError } from './status-error.ts';
import { isJsonObject, type JsonObject } from '../base/json.ts';
import {
  MalformedResponseError,
  type ClusterClient,
  type ClusterName,
  type RequestOptions,
} from './types.ts';

export interface Discovery {
  /**
   * The resource of `apiVersion` (`v1`, `apps/v1`) and `kind`. Rejects with `TerminalError` when the server does not serve it, with
   * `StatusError` or `TransportError` when the request fails. Results are cached per group and version. A missing kind is looked up again, since a CustomResourceDefinition may have been added.
   */
  resolve(apiVersion: string, kind: string, options?: RequestOptions): Promise<Resource>;
  /** As {@link resolve}; also rejects with `TerminalError` for a cluster-scoped kind. */
  resolveNamespaced(apiVersion: string, kind: string, options?: RequestOptions): Promise<Resource>;
}

export class ClusterScopedError extends TerminalError {
  readonly cluster: ClusterName;

  constructor(apiVersion: string, kind: string, cluster: ClusterName) {
    super(
      `${kind} of ${apiVersion} is cluster-scoped in the ${cluster} cluster; only namespaced kinds can be used here`,
    );
    this.cluster = cluster;
  }
}

export class CachingDiscovery implements Discovery {
  readonly #client: Pick<ClusterClient, 'cluster' | 'request'>;
  readonly #known = new Map<string, readonly Resource[]>();

  constructor(client: Pick<ClusterClient, 'cluster' | 'request'>) {
    this.#client = client;
  }

  async resolve(apiVersion: string, kind: string, options: RequestOptions = {}): Promise<Resource> {
    const isKind = (resource: Resource): boolean => resource.kind === kind;
    const known = this.#known.get(apiVersion)?.find(isKind);
    if (known !== undefined) return known;
    const resources = await this.#fetch(apiVersion, options);
    this.#known.set(apiVersion, resources);
    const found = resources.find(isKind);
    if (found !== undefined) return found;
    throw new TerminalError(
      `the ${this.#client.cluster} cluster serves no kind ${kind} in ${apiVersion}${suggestion(resources, kind)}`,
    );
  }

  async resolveNamespaced(apiVersion: string, kind: string, options: RequestOptions = {}): Promise<Resource> {
    const resource = await this.resolve(apiVersion, kind, options);
    if (resource.isNamespaced) return resource;
    throw new ClusterScopedError(apiVersion, kind, this.#client.cluster);
  }

  async #fetch(apiVersion: string, options: RequestOptions): Promise<readonly Resource[]> {
    const { group, version } = splitVersion(apiVersion);
    const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    try {
      return asResources(await this.#client.request('GET', path, undefined, options), group, version);
    } catch (cause) {
      if (!(cause instanceof StatusError && cause.code === 404)) throw cause;
      throw new TerminalError(
        `the ${this.#client.cluster} cluster does not serve ${apiVersion}; kubectl api-versions lists what it serves`,
        { cause },
      );
    }
  }
}

/** Validates group and version, because they become part of a URL path. */
function splitVersion(apiVersion: string): { group: string; version: string } {
  const [group, version] = [groupOf(apiVersion), apiVersion.slice(apiVersion.indexOf('/') + 1)];
  if (!/^([a-z0-9][a-z0-9.-]*)?$/.test(group) || !isDnsLabel(version)) {
    throw new TerminalError(`${JSON.stringify(apiVersion)} is not an apiVersion: write v1 or group/version`);
  }
  return { group, version };
}

function asResources(response: unknown, group: string, version: string): readonly Resource[] {
  const list = isJsonObject(response) ? response['resources'] : undefined;
  if (!Array.isArray(list))
    throw new MalformedResponseError(`the discovery response for ${group}/${version} has no resources`);
  return list.filter(isJsonObject).flatMap((entry) => asResource(entry, group, version));
}

function asResource(entry: JsonObject, group: string, version: string): Resource[] {
  const { name, kind, namespaced } = entry;
  // A slash marks a subresource, which has a kind of its own.
  if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) return [];
  return [{ group, version, kind, plural: name, isNamespaced: namespaced === true }];
}

function suggestion(resources: readonly Resource[], kind: string): string {
  const wanted = kind.toLowerCase();
  const near = resources.find(
    (resource) =>
      resource.kind.toLowerCase() === wanted ||
      resource.plural === wanted ||
      `${wanted}s` === resource.plural,
  );
  if (near !== undefined) return `; did you mean ${near.kind}?`;
  const kinds = resources.map((resource) => resource.kind).sort();
  return kinds.length === 0 ? '' : `; it serves ${kinds.slice(0, 30).join(', ')}`;
}
