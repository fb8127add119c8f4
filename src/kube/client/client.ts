/** A client of one API server, with raw JSON. */

import { setImmediate } from 'node:timers/promises';
import { nameOf, type KubeObject, type NamespacedName, type Resource } from '../object.ts';
import { failure, NO_STATUS, StatusError } from '../status-error.ts';
import { backoffDelayMs, boundedRetryAfterMs } from '../../base/retry.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { parseJson, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asList, checkDeletion, requireObject, responseError } from './responses.ts';
import { ResponseTooLargeError, type HttpRequest, type HttpResponse } from './exchange.ts';
import { parseProblem } from './parse-cost.ts';
import { Transport, type TransportOptions } from './transport.ts';
import {
  MalformedResponseError,
  type ClusterName,
  type DeletePreconditions,
  type ListOptions,
  type ObjectList,
  type PatchType,
  type RequestOptions,
  type WatchClient,
  type WatchHandler,
  type WatchOptions,
  type PatchOptions,
  type WriteOptions,
} from '../types.ts';
import { WatchStream } from './watch-stream.ts';

export interface ClientOptions extends TransportOptions {
  cluster: ClusterName;
}

const TIMEOUT_MS = 30_000;
/** Attempts of a read while the server responds with 429 or 503. */
const READ_ATTEMPTS_MAX = 4;
const READ_RETRY_BASE_MS = 500;
const READ_RETRY_MAX_MS = 4000;
const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
};
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

/** A client on pooled connections. It opens none before the first request. */
export class RestClient implements WatchClient {
  readonly cluster: ClusterName;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #limits: Pick<ClientOptions, 'responseBytesMax' | 'pace'>;
  readonly #timeoutMs: number;

  constructor(options: ClientOptions) {
    const { cluster, clock, timeoutMs = TIMEOUT_MS, ...limits } = options;
    this.cluster = cluster;
    this.#transport = new Transport(options);
    this.#clock = clock;
    this.#limits = limits;
    this.#timeoutMs = timeoutMs;
  }

  async get(resource: Resource, key: NamespacedName, options: RequestOptions = {}): Promise<KubeObject> {
    const about = { resource, key };
    const response = await this.#read({ method: 'GET', path: objectPath(resource, key), options, about });
    return requireObject(response, { resource, key, isStored: true });
  }

  async list(resource: Resource, options: ListOptions = {}): Promise<ObjectList> {
    const query = queryString({
      limit: options.limit,
      continue: options.continueToken,
      resourceVersion: options.resourceVersion,
      labelSelector: options.labelSelector,
    });
    const path = collectionPath(resource, options.namespace ?? '') + query;
    const accept = options.isMetadataOnly === true ? METADATA_LIST : 'application/json';
    const response = await this.#read({ method: 'GET', path, options, accept, isBulky: true });
    const page = asList(response, resource, options);
    // Parsing a page takes as long as storing it. And undici uses a connection again after a turn of the event loop: without it, each page would wait for
    // a new connection.
    await setImmediate();
    return page;
  }

  async create(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const key = nameOf(object);
    const path = namespacePath(resource, key.namespace);
    return await this.#write({ method: 'POST', path, body: object, options }, { resource, key });
  }

  async update(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const key = nameOf(object);
    const path = objectPath(resource, key);
    return await this.#write({ method: 'PUT', path, body: object, options }, { resource, key });
  }

  async patch(
    resource: Resource,
    key: NamespacedName,
    { type, body }: { type: PatchType; body: JsonValue },
    options: PatchOptions = {},
  ): Promise<KubeObject> {
    const below = options.subresource === undefined ? '' : `/${options.subresource}`;
    const path = objectPath(resource, key) + below;
    const contentType = CONTENT_TYPES[type];
    return await this.#write({ method: 'PATCH', path, body, options, contentType }, { resource, key });
  }

  async delete(
    resource: Resource,
    key: NamespacedName,
    preconditions: DeletePreconditions,
    options: WriteOptions = {},
  ): Promise<void> {
    const path = objectPath(resource, key) + writeQuery(options);
    const body: JsonObject = { apiVersion: 'v1', kind: 'DeleteOptions' };
    // A DELETE with a body has its options there: kube-apiserver ignores those in the query.
    if (options.isDryRun === true) body['dryRun'] = ['All'];
    if (preconditions.uid !== undefined || preconditions.resourceVersion !== undefined) {
      body['preconditions'] = { ...preconditions };
    }
    const response = await this.#send({ method: 'DELETE', path, body, options, about: { resource, key } });
    checkDeletion(response, { resource, key, isStored: options.isDryRun !== true });
  }

  async request(
    method: string,
    path: string,
    body?: JsonValue,
    options: RequestOptions = {},
  ): Promise<JsonValue> {
    const call = { method, path, options, body };
    return await (method === 'GET' ? this.#read(call) : this.#send(call));
  }

  async watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void> {
    const query = queryString({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: options.resourceVersion,
      timeoutSeconds: options.timeoutSeconds,
      labelSelector: options.labelSelector,
    });
    const path = collectionPath(resource, options.namespace ?? '') + query;
    const accept = options.isMetadataOnly === true ? METADATA : 'application/json';
    const stream = new WatchStream(handler, this.#limits.responseBytesMax, this.#limits.pace?.watches);
    const call: Call = { method: 'GET', path, options, accept };
    const response = await this.#transport.send({ ...this.#httpRequest(call), stream });
    if (response.status > 299) throw this.#refusal(response, call);
    stream.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }

  /** Retries a read while the server responds with 429 or 503 and the deadline allows it. */
  async #read(call: Call): Promise<JsonValue> {
    const { options } = call;
    const deadlineMs = this.#clock.monotonicMs() + (options.timeoutMs ?? this.#timeoutMs);
    for (let attempt = 1; ; attempt++) {
      const leftMs = Math.max(1, Math.ceil(deadlineMs - this.#clock.monotonicMs()));
      try {
        return await this.#send({ ...call, options: { ...options, timeoutMs: leftMs } });
      } catch (error) {
        if (!isOverloaded(error) || options.isRetried === false || attempt >= READ_ATTEMPTS_MAX) throw error;
        const backoffMs = backoffDelayMs(attempt - 1, READ_RETRY_BASE_MS, READ_RETRY_MAX_MS);
        const delayMs = boundedRetryAfterMs(backoffMs, error.retryAfterMs ?? 0);
        if (this.#clock.monotonicMs() + delayMs >= deadlineMs) throw error;
        await this.#pause(delayMs, options.signal);
      }
    }
  }

  async #write(call: Call & { readonly options: WriteOptions }, written: Requested): Promise<KubeObject> {
    const { path, options } = call;
    const response = await this.#send({ ...call, path: path + writeQuery(options), about: written });
    return requireObject(response, { ...written, isStored: options.isDryRun !== true });
  }

  async #send(call: Call): Promise<JsonValue> {
    const response = await this.#transport.send(this.#httpRequest(call));
    if (response.status > 299) throw this.#refusal(response, call);
    const { text } = response;
    if (text === '') return null;
    const { pace } = this.#limits;
    if (pace === undefined) return this.#parse(text, call);
    // A server that is read at a limited rate is not trusted.
    return pace.responses.timed(() => {
      const problem = parseProblem(text);
      if (problem !== undefined) throw new ResponseTooLargeError(this.#what(call), `has ${problem}`);
      return this.#parse(text, call);
    });
  }

  #parse(text: string, call: Call): JsonValue {
    try {
      return parseJson(text);
    } catch (cause) {
      const excerpt = JSON.stringify(text.slice(0, 80));
      throw new MalformedResponseError(`the response to ${this.#what(call)} is not JSON: ${excerpt}`, {
        cause,
      });
    }
  }

  #refusal({ status, headers, text }: HttpResponse, call: Call): StatusError {
    const error = responseError({ status, headers, text }, this.#what(call), this.#clock.now());
    if (error.code === 404 && call.about !== undefined && !isAbout(error, call.about))
      return new StatusError({ ...error.status, reason: NO_STATUS });
    if (error.code !== 401) return error;
    const message = `${error.message}: the credentials of ${this.#transport.accessDescription} are not accepted`;
    return new StatusError({ ...error.status, message });
  }

  #httpRequest({ options, body, ...call }: Call): HttpRequest {
    return {
      ...call,
      timeoutMs: options.timeoutMs ?? this.#timeoutMs,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: options.signal,
      beforeSend: options.beforeSend,
      isSecret: options.isSecret,
    };
  }

  #what({ method, path }: Call): string {
    return `${method} ${this.#transport.host}${path}`;
  }

  async #pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    await sleep(this.#clock, delayMs, signal ?? new AbortController().signal);
    signal?.throwIfAborted();
  }
}

/** One API request, before it is HTTP. */
interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly isBulky?: boolean;
  readonly options: RequestOptions;
  /** Undefined for a request that is not about one object. */
  readonly about?: Requested;
}

interface Requested {
  readonly resource: Resource;
  readonly key: NamespacedName;
}

/** A 404 of this object or its namespace. That of an admission webhook, or of a proxy that speaks `Status`, names another one. */
function isAbout({ status: { details } }: StatusError, { resource, key }: Requested): boolean {
  const isNamespace = details?.kind === 'namespaces' && details.name === key.namespace;
  return isNamespace || (details?.kind === resource.plural && details.name === key.name);
}

function isOverloaded(error: unknown): error is StatusError {
  return error instanceof StatusError && (error.code === 429 || error.code === 503);
}

function writeQuery({ fieldManager, isDryRun = false }: WriteOptions): string {
  return queryString({ fieldManager, dryRun: isDryRun ? 'All' : undefined });
}

// URL paths of the Kubernetes API.

/** `/api/v1/namespaces/NS/endpoints`, `/apis/GROUP/VERSION/…`; namespace '' means every namespace, or a cluster-scoped resource. */
export function collectionPath(resource: Resource, namespace: string): string {
  const base =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  return namespace === '' || !resource.isNamespaced
    ? `${base}/${resource.plural}`
    : `${base}/namespaces/${segment(namespace, 'namespace')}/${resource.plural}`;
}

/** The collection that an object of this namespace is created in. Throws a `StatusError` (400) without a namespace. */
function namespacePath(resource: Resource, namespace: string): string {
  if (resource.isNamespaced && namespace === '')
    throw failure(400, 'BadRequest', `a ${resource.kind} needs a namespace`);
  return collectionPath(resource, namespace);
}

/** The path of one object. Throws a `StatusError` (400) for a name that cannot be one: it must never reach another path. */
function objectPath(resource: Resource, { namespace, name }: NamespacedName): string {
  return `${namespacePath(resource, namespace)}/${segment(name, 'name')}`;
}

/** `?a=1&b=2` of the parameters that are set; '' when none is. */
export function queryString(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') parts.push(`${key}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** The names almost everything has; they travel as they are. */
const PLAIN = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

function segment(text: string, what: string): string {
  if (PLAIN.test(text)) return text;
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw failure(400, 'BadRequest', `${JSON.stringify(text)} cannot be the ${what} of an object`);
  }
  return encodeURIComponent(text);
}
