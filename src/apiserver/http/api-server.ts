/** Serves the Kubernetes API: one HTTP request in, one response out, errors as `Status` documents. */

import type { Logger } from '../../base/logger.ts';
import { StatusError, failure } from '../../kube/status-error.ts';
import { CLIENT_TIMEOUTS, DISCARDED_BODY_BYTES_MAX } from '../limits.ts';
import type { ApiServerSeries } from '../metrics.ts';
import {
  type AccessRequest,
  type Authorizer,
  denialText,
  type ResourcePath,
  type ServerPath,
  parseResourcePath,
  verbOf,
  auditEvent,
  type AuditEvent,
  masked,
  recordDecision,
  type RequestRecord,
} from '../request/request-info.ts';
import { MetaHandler, type ServerVersion } from '../request/meta-handler.ts';
import { ResourceHandler, type WatchResponse } from '../request/resource-handler.ts';
import { RefusedCredentialError, type Credentials, type UserInfo } from '../user.ts';
import { internalError, noSuchResource, storeUnavailable, tooManyRequests } from '../status.ts';
import { StoreError } from '../storage/store.ts';
import { WatchStreams } from '../watch/watch-streams.ts';
import { type ApiResponse, plainHeaders, statusResponse } from '../request/api-response.ts';
import { type HttpServer, type ListenOptions, openHttpServer, type RequestListener } from './http-server.ts';
import {
  BodyReader,
  OpenRequests,
  type RequestLimits,
  type Sender,
  UnreadResponses,
} from './client-limits.ts';
import type { ServerResponse, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { randomUUID } from 'node:crypto';
import type { Verb, DefinitionTable } from '../objects/resource-definition.ts';
import type { ObjectRegistry } from '../objects/object-registry.ts';
import { ObjectViews } from '../objects/object-view.ts';

export interface StartOptions {
  readonly table: DefinitionTable;
  readonly logger: Logger;
  readonly authorizer: Authorizer;
  /** The user who sent a request; undefined: 401. Throws a `StatusError` for any other response. */
  readonly authenticate: (credentials: Credentials) => UserInfo | undefined | Promise<UserInfo | undefined>;
  /** Splits the path of a URL into prefix and API path. Default: no prefixes. Undefined: 404. */
  readonly splitPath?: (path: string) => ServerPath | undefined;
  readonly publicDocuments?: ReadonlyMap<string, () => Promise<ApiResponse>>;
  readonly version: ServerVersion;
  /** Owned by the caller, who closes it after the server, and its store. */
  readonly registry: ObjectRegistry;
  /** Default: no rate limits. */
  readonly throttle?: Pick<RequestLimits, keyof RequestLimits>;
  /** Receives the audit event of a request once its response is sent; of a watch, once it ends. Must not throw. */
  readonly audit?: (event: AuditEvent) => void;
  readonly metrics?: ApiServerSeries;
  /** Wraps the request listener, such as with the faults of a test double. */
  readonly wrapListener?: (serve: RequestListener) => RequestListener;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
  readonly rechecksWatchesOf?: (user: UserInfo) => boolean;
  /** Defaults are in `limits.ts`. */
  readonly watchesMax?: number;
  readonly watchesPerUserMax?: number;
  readonly unreadResponsesBytesMax?: number;
  readonly listen?: ListenOptions;
}

export interface RunningServer extends Omit<HttpServer, 'close'>, AsyncDisposable {
  /** Ends the open watches of users whose rights have changed. */
  endWatches(isAffected: (user: UserInfo) => boolean): void;
}

export async function startServer(options: StartOptions): Promise<RunningServer> {
  const api = new ApiServer(options);
  const listener = options.wrapListener?.(api.listener) ?? api.listener;
  const http = await openHttpServer(listener, options.listen);
  api.meta.address = http.address;
  return Object.assign(http, {
    endWatches: (isAffected: (user: UserInfo) => boolean) => api.watches.closeOf(isAffected),
    [Symbol.asyncDispose]: async () => {
      api.close();
      await http.close();
    },
  });
}

class ApiServer {
  readonly meta: MetaHandler;
  readonly watches: WatchStreams;
  readonly #options: StartOptions;
  readonly #resources: ResourceHandler;
  readonly #open: OpenRequests;
  readonly #unread: UnreadResponses;
  readonly #bodies: BodyReader;

  constructor(options: StartOptions) {
    const { registry, table, version } = options;
    const { clock } = registry;
    const { bodyMs, responseMs } = { ...CLIENT_TIMEOUTS, ...options.listen?.timeouts };
    const views = new ObjectViews();
    this.#options = options;
    this.meta = new MetaHandler(table, version);
    this.watches = new WatchStreams({ ...options, views });
    this.#resources = new ResourceHandler({ ...options, views });
    this.#bodies = new BodyReader(clock, bodyMs);
    this.#open = new OpenRequests(clock, responseMs);
    this.#unread = new UnreadResponses(options.unreadResponsesBytesMax);
  }

  readonly listener: RequestListener = (request, response) =>
    void this.#serve(createExchange(request, response, this.#options));

  /** Never rejects. */
  async #serve(exchange: Exchange): Promise<void> {
    const { method } = exchange;
    const { metrics } = this.#options;
    metrics?.began(method);
    try {
      const result = await this.#handle(exchange);
      const bytes = 'body' in result ? Buffer.byteLength(result.body) : 0;
      this.#rejectUnread(exchange, bytes);
      if ('target' in result) await this.#stream(exchange, result);
      else this.#send(exchange, result, bytes);
    } catch (error) {
      this.#fail(exchange, error);
    } finally {
      metrics?.ended(method);
    }
  }

  close(): void {
    this.watches.closeAll();
    this.#open.close();
  }

  async #handle(exchange: Exchange): Promise<ApiResponse | WatchResponse> {
    const { request, method, split, path, record } = exchange;
    const { publicDocuments, throttle } = this.#options;
    const document =
      publicDocuments?.get(exchange.fullPath) ??
      (split?.prefix === '' ? publicDocuments?.get(split.path) : undefined);
    if (document && (method === 'GET' || method === 'HEAD')) return document();
    const user = await this.#authenticate(exchange);
    if (user === undefined) return this.#document(exchange);
    throttle?.admit(user, record.verb);
    if (!split) throw noSuchResource();
    const sender: Sender = {
      name: user.name,
      isPrivileged: throttle?.isPrivileged(user, path) ?? true,
    };
    if (!path) {
      if (!HEALTH_PATHS.has(split.path)) this.#count(exchange, sender);
      return this.#handleNonResource(exchange, split, user);
    }
    const { headers } = request;
    if (requestsImpersonation(headers)) throw failure(403, 'Forbidden', NO_IMPERSONATION, {});
    const contentType = mediaType(headers['content-type']);
    // After authentication: a body without a valid credential is never read.
    const bytes = hasBody(exchange) ? await this.#bodies.read(request, sender) : EMPTY;
    this.#count(exchange, sender);
    return this.#resources.handle({
      authenticate: () => this.#authenticatedUser(exchange),
      verb: exchange.verb,
      path,
      query: exchange.query,
      accept: headers.accept,
      userAgent: record.userAgent,
      user,
      prefix: split.prefix,
      record,
      body: { contentType, bytes },
    });
  }

  /** The request is in flight from now on: one whose body is still being read occupies no place. */
  #count({ response }: Exchange, sender: Sender): void {
    if (this.#open.begin(response, sender)) return;
    throw tooManyRequests('too many requests are in flight, try again later');
  }

  async #authenticatedUser({ request, record: { address } }: Exchange): Promise<UserInfo> {
    const { authorization } = request.headers;
    const user = await this.#options.authenticate({ authorization, address });
    if (user === undefined) throw failure(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  /** Undefined: the credential is refused, and what is requested are the documents that clients read first. kubectl shows no reason with which one of those is refused, so
   * that it has to reach the request that it sends next. */
  async #authenticate(exchange: Exchange): Promise<UserInfo | undefined> {
    const { record } = exchange;
    try {
      const user = await this.#authenticatedUser(exchange);
      this.#options.metrics?.authenticated('success');
      record.user = user;
      return user;
    } catch (error) {
      if (error instanceof RefusedCredentialError && exchange.path === undefined) return undefined;
      const isUnauthorized = error instanceof StatusError && error.code === 401;
      this.#options.metrics?.authenticated(isUnauthorized ? 'failure' : 'error');
      // After too many failures the client gets 429, which says nothing about the credential.
      if (isUnauthorized) this.#options.throttle?.refused(record.address);
      throw error;
    }
  }

  async #handleNonResource(
    exchange: Exchange,
    { prefix, path }: ServerPath,
    user: UserInfo,
  ): Promise<ApiResponse> {
    const { record } = exchange;
    const { authorizer } = this.#options;
    const access: AccessRequest = { ...NO_RESOURCE, verb: record.verb, path, prefix };
    const decision = await authorizer.authorize(user, access);
    recordDecision(record, decision);
    if (!decision.isAllowed) {
      throw failure(403, 'Forbidden', `forbidden: ${denialText(user, access, decision)}`, {});
    }
    return this.#document(exchange);
  }

  /** Of discovery, OpenAPI, health or the version. */
  #document({ request, method, split }: Exchange): ApiResponse {
    const { accept, 'if-none-match': ifNoneMatch } = request.headers;
    const response =
      split?.prefix === '' && this.meta.handle({ method, path: split.path, accept, ifNoneMatch });
    if (!response) throw noSuchResource();
    return response;
  }

  async #stream(exchange: Exchange, watched: WatchResponse): Promise<void> {
    const { response, query } = exchange;
    const served = withoutStreams(exchange);
    const watch = this.watches.open(response, query, watched, () => this.#finished(served, 200));
    this.#open.leave(response);
    await watch.start();
  }

  #fail(exchange: Exchange, error: unknown): void {
    const { request, response } = exchange;
    if (!(error instanceof StatusError)) {
      const { method, url } = request;
      this.#options.logger.error({ err: error, method, url: masked(url ?? '') }, 'request failed');
    }
    if (response.headersSent || response.destroyed) {
      this.#open.leave(response);
      response.destroy();
      return;
    }
    const answer = statusResponse(publicError(error) ?? internalError());
    this.#send(exchange, answer, Buffer.byteLength(answer.body));
  }

  /** Reads only: the client must learn the outcome of a write. */
  #rejectUnread({ response, method, record }: Exchange, bytes: number): void {
    if (method !== 'GET' || this.#unread.take(record.user?.name ?? '', bytes, response)) return;
    throw tooManyRequests('too many bytes of earlier responses are unread: read them first');
  }

  /** `bytes`: the length of the body, passed because counting it takes time for a long list. */
  #send(exchange: Exchange, { code, headers, body }: ApiResponse, bytes: number): void {
    const { request, response, method, record } = exchange;
    const all: Record<string, string | number> = {
      'cache-control': 'no-cache, private',
      ...plainHeaders(headers),
      'content-length': bytes,
    };
    if (record.id !== '') all['audit-id'] = record.id;
    if (code === 408 || closesConnection(request)) all['connection'] = 'close';
    response.writeHead(code, all);
    response.end(method === 'HEAD' ? undefined : body);
    this.#open.written(response);
    this.#finished(exchange, code);
  }

  #finished({ record, path, verb, method, query, startedMs }: ServedExchange, code: number): void {
    const { audit, metrics, registry } = this.#options;
    audit?.(auditEvent(record, code, registry.clock.now()));
    if (!metrics) return;
    const seconds = (registry.clock.monotonicMs() - startedMs) / 1000;
    metrics.served({ verb, path, method, isDryRun: query.has('dryRun'), code, seconds });
  }
}

/** What the audit log and the metrics need of an exchange that has ended. */
type ServedExchange = Omit<Exchange, 'request' | 'response'>;

/** An open watch keeps the result: request and response would be a tenth of its memory. */
function withoutStreams({ request: _request, response: _response, ...served }: Exchange): ServedExchange {
  return served;
}

const EMPTY = Buffer.alloc(0);

/** Without limits: an answer to a probe must not depend on what other clients do. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

function hasBody({ method }: Exchange): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

const NO_IMPERSONATION =
  'impersonation is not supported: every request is served as the user of its credential (kubectl: omit --as, --as-group and --as-uid)';
const NO_RESOURCE = { group: '', version: '', resource: '', subresource: '', namespace: '', name: '' };

/** The error that the client may see; undefined: only that an error occurred. */
function publicError(error: unknown): StatusError | undefined {
  if (error instanceof StatusError) return error;
  if (!(error instanceof StoreError)) return undefined;
  if (error.code === 'unavailable') return storeUnavailable(`the store cannot be used: ${error.message}`);
  return error.code === 'closed' ? storeUnavailable('the server is shutting down') : undefined;
}

/** One HTTP request on its way through the server, with its response. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly fullPath: string;
  readonly query: URLSearchParams;
  /** Undefined: the path belongs to no prefix of this server. */
  readonly split: ServerPath | undefined;
  readonly path: ResourcePath | undefined;
  readonly verb: Verb | undefined;
  readonly record: RequestRecord;
  /** Monotonic. */
  readonly startedMs: number;
}

function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  { audit, registry: { clock }, splitPath }: StartOptions,
): Exchange {
  const { method = '', url = '/', headers, socket } = request;
  const at = url.indexOf('?');
  const fullPath = at < 0 ? url : url.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const split = splitPath ? splitPath(fullPath) : { prefix: '', path: fullPath };
  const path = split && parseResourcePath(split.path);
  const verb = path && verbOf(method, path, query);
  const record: RequestRecord = {
    id: audit ? randomUUID() : '',
    url,
    address: socket.remoteAddress ?? '',
    userAgent: headers['user-agent'] ?? '',
    receivedMs: clock.now(),
    verb: verb ?? method.toLowerCase(),
    path,
    user: undefined,
    decision: '',
    reason: '',
    writtenName: '',
  };
  const startedMs = clock.monotonicMs();
  return { request, response, method, fullPath, query, split, path, verb, record, startedMs };
}

/** Whether the connection closes after this response: the client asked for another protocol, or sends a body too large to discard. */
function closesConnection({ headers, complete }: IncomingMessage): boolean {
  if (headers.upgrade !== undefined) return true;
  return !complete && Number(headers['content-length'] ?? 0) > DISCARDED_BODY_BYTES_MAX;
}

/**
 * Ignoring these headers would give all rights of the credential to a client that gave up rights, such as a proxy with an administrator's
 * credential. Discovery ignores them: its content does not depend on the user, and kubectl does not show why discovery failed.
 */
function requestsImpersonation(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true;
  return false;
}

/** Without parameters, in lower case; `''` without the header. */
function mediaType(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
