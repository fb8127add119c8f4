/** The requests of the store to the host cluster, one attempt each. */

import { asList } from '../../../../kube/client/responses.ts';
import { collectionPath, queryString } from '../../../../kube/client/resource-path.ts';
import type { ObjectList, RequestOptions, WatchClient } from '../../../../kube/types.ts';
import { SECRETS, type KubeObject } from '../../../../kube/object.ts';
import { ignoreNotFound, StatusError } from '../../../../kube/status-error.ts';
import type { JsonObject } from '../../../../base/json.ts';
import { parseRevision } from '../codec/secret-codec.ts';

export interface SecretList {
  readonly secrets: readonly KubeObject[];
  /** The revision of the list. */
  readonly revision: number;
}

const FIELD_MANAGER = 'endpoint-syncer';
const PAGE_SIZE = 500;
/** A current list is restarted when its continue token expires. */
const LIST_ATTEMPTS = 3;
/** No Secret has this name. A list with it as field selector is empty, and its resourceVersion is the current one. */
const UNUSED_NAME = 'endpoint-syncer.revision';

/** Secrets of one namespace. Everything rejects as the client does: `StatusError`, `TransportError`. */
export class HostSecrets {
  readonly #client: WatchClient;
  readonly #namespace: string;

  constructor(client: WatchClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The current state: a read without a resourceVersion is never served from a stale cache. */
  async get(name: string, options: RequestOptions): Promise<KubeObject | undefined> {
    return await ignoreNotFound(this.#client.get(SECRETS, { namespace: this.#namespace, name }, options));
  }

  async create(secret: KubeObject, options: RequestOptions): Promise<KubeObject> {
    const metadata = { ...secret.metadata, namespace: this.#namespace };
    const settings = { ...options, fieldManager: FIELD_MANAGER };
    return await this.#client.create(SECRETS, { ...secret, metadata }, settings);
  }

  /** A merge patch whose `metadata.resourceVersion` is a precondition. */
  async patch(name: string, body: JsonObject, options: RequestOptions): Promise<KubeObject> {
    const settings = { ...options, fieldManager: FIELD_MANAGER };
    const key = { namespace: this.#namespace, name };
    return await this.#client.patch(SECRETS, key, { type: 'merge', body }, settings);
  }

  /** Deletes only this revision, so never another Secret with the same name. */
  async delete(name: string, revision: number, options: RequestOptions): Promise<void> {
    const key = { namespace: this.#namespace, name };
    await this.#client.delete(SECRETS, key, { resourceVersion: String(revision) }, options);
  }

  /** All pages at one revision: the current one, or `atRevision`. Rejects with 410 when it is compacted. */
  async list(labelSelector: string, options: RequestOptions, atRevision?: number): Promise<SecretList> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pages({ labelSelector, limit: PAGE_SIZE }, options, atRevision);
      } catch (error) {
        const isExpired = error instanceof StatusError && error.code === 410;
        if (!isExpired || atRevision !== undefined || attempt >= LIST_ATTEMPTS) throw error;
      }
    }
  }

  /** The current Secrets of a type, whatever their labels. */
  async listOfType(type: string, options: RequestOptions): Promise<SecretList> {
    return await this.#pages({ fieldSelector: `type=${type}`, limit: PAGE_SIZE }, options, undefined);
  }

  /** The current revision of the host. */
  async revision(options: RequestOptions): Promise<number> {
    const { resourceVersion } = await this.#page({ fieldSelector: `metadata.name=${UNUSED_NAME}` }, options);
    return parseRevision(resourceVersion);
  }

  async #pages(
    query: Readonly<Record<string, string | number>>,
    options: RequestOptions,
    atRevision: number | undefined,
  ): Promise<SecretList> {
    const exact =
      atRevision === undefined
        ? {}
        : { resourceVersion: String(atRevision), resourceVersionMatch: 'Exact' as const };
    let page = await this.#page({ ...query, ...exact }, options);
    const secrets = page.items;
    const revision = parseRevision(page.resourceVersion);
    while (page.continueToken !== '') {
      page = await this.#page({ ...query, continue: page.continueToken }, options);
      secrets.push(...page.items);
    }
    return { secrets, revision };
  }

  async #page(
    query: Readonly<Record<string, string | number>>,
    options: RequestOptions,
  ): Promise<ObjectList> {
    const path = collectionPath(SECRETS, this.#namespace) + queryString(query);
    return asList(await this.#client.request('GET', path, undefined, options), SECRETS);
  }
}
