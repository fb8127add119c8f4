/** Serves the Kubernetes API: one HTTP request in, one response out, errors as `Status` documents. */

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { StatusError, failure } from '../../kube/status-error.ts';
import {
  CLIENT_TIMEOUTS,
  type ClientTimeouts,
  COUNTED_RESPONSE_BYTES_MIN,
  UNREAD_RESPONSES_PER_USER_BYTES_MAX,
} from '../limits.ts';
import type { ApiServerSeries } from '../metrics.ts';
import { auditEvent, type AuditEvent, masked, recordDecision } from '../request/audit-event.ts';
import { type AccessRequest, type Authorizer, denialText } from '../request/authorizer.ts';
import type { MetaHandler } from '../request/meta-handler.ts';
import type { ResourcePath, ServerPath } from '../request/request-info.ts';
import type { ResourceHandler, WatchResponse } from '../request/resource-handler.ts';
import type { Credentials, UserInfo } from '../user.ts';
import { internalError, noSuchResource, storeUnavailable, tooManyRequests } from '../status.ts';
import { StoreError } from '../storage/store.ts';
import type { WatchStreams } from '../watch/watch-streams.ts';
import { type ApiResponse, plainHeaders, statusResponse } from '../request/api-response.ts';
import {
  closesConnection,
  createExchange,
  type Exchange,
  mediaType,
  requestsImpersonation,
} from './exchange.ts';
import { type HttpServer, type ListenOptions, openHttpServer, type RequestListener } from './http-server.ts';
import { OpenRequests } from './open-requests.ts';
import { BodyReader } from './read-bytes.ts';
import type { Sender } from './shared-limit.ts';
import type { ServerResponse } from 'node:http';

export interface ApiServerOptions {
  readonly meta: MetaHandler;
  readonly resources: ResourceHandler;
  readonly watches: WatchStreams;
  /** Undefined: 401. */
  authenticate(credentials: Credentials): UserInfo | undefined | Promise<UserInfo | undefined>;
  readonly authorizer: Authorizer;
  splitPath(path: string): ServerPath | undefined;
  readonly publicDocuments: ReadonlyMap<string, () => Promise<ApiResponse>>;
  readonly throttle: Throttle | undefined;
  /** Default: `UNREAD_RESPONSES_PER_USER_BYTES_MAX`. */
  readonly unreadResponsesBytesMax?: number | undefined;
  readonly audit: ((event: AuditEvent) => void) | undefined;
  readonly metrics: ApiServerSeries | undefined;
  readonly wrapListener: ((serve: RequestListener) => RequestListener) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Rate limits. */
export interface Throttle {
  /** Before a request of an authenticated user is served. Throws a 429 `StatusError` above the limit. */
  admit(user: UserInfo, verb: string): void;
  /** After a request from this address failed to authenticate. Throws a 429 `StatusError` above the limit. */
  refused(address: string): void;
  /** The request may use the part of each limit that other requests leave: see `SharedLimit`. `path`: undefined for a non-resource request. */
  isPrivileged(user: UserInfo, path: ResourcePath | undefined): boolean;
}

export async function listen(options: ApiServerOptions, where: ListenOptions = {}): Promise<HttpServer> {
  const server = new ApiServer(options, { ...CLIENT_TIMEOUTS, ...where.timeouts });
  const exchangeOptions = {
    clock: options.clock,
    isAudited: options.audit !== undefined,
    splitPath: (path: string) => options.splitPath(path),
  };
  const serve: RequestListener = (request, response) =>
    void server.serve(createExchange(request, response, exchangeOptions));
  const http = await openHttpServer(options.wrapListener?.(serve) ?? serve, where);
  return {
    address: http.address,
    get connections() {
      return http.connections;
    },
    renewTls: (pair) => http.renewTls(pair),
    disconnect: () => http.disconnect(),
    close: async () => {
      options.watches.closeAll();
      server.close();
      await http.close();
    },
  };
}

class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #open: OpenRequests;
  readonly #unread: UnreadResponses;
  readonly #bodies: BodyReader;

  constructor(options: ApiServerOptions, { bodyMs, responseMs }: ClientTimeouts) {
    this.#options = options;
    this.#bodies = new BodyReader(options.clock, bodyMs);
    this.#open = new OpenRequests(options.clock, responseMs);
    this.#unread = new UnreadResponses(options.unreadResponsesBytesMax);
  }

  /** Never rejects. */
  async serve(exchange: Exchange): Promise<void> {
    const { method } = exchange;
    const { metrics } = this.#options;
    metrics?.began(method);
    try {
      const result = await this.#handle(exchange);
      const bytes = 'body' in result ? Buffer.byteLength(result.body) : 0;
      this.#rejectUnread(exchange, bytes);
      if ('definition' in result) await this.#stream(exchange, result);
      else this.#send(exchange, result, bytes);
    } catch (error) {
      this.#fail(exchange, error);
    } finally {
      metrics?.ended(method);
    }
  }

  close(): void {
    this.#open.close();
  }

  async #handle(exchange: Exchange): Promise<ApiResponse | WatchResponse> {
    const { request, method, split, path, record } = exchange;
    const { resources, publicDocuments, throttle } = this.#options;
    const document =
      publicDocuments.get(exchange.fullPath) ??
      (split?.prefix === '' ? publicDocuments.get(split.path) : undefined);
    if (document && (method === 'GET' || method === 'HEAD')) return document();
    const user = await this.#authenticate(exchange);
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
    return resources.handle({
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
    const authenticated = this.#options.authenticate({ authorization, address });
    const user = authenticated instanceof Promise ? await authenticated : authenticated;
    if (user === undefined) throw failure(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  async #authenticate(exchange: Exchange): Promise<UserInfo> {
    const { record } = exchange;
    try {
      const user = await this.#authenticatedUser(exchange);
      this.#options.metrics?.authenticated('success');
      record.user = user;
      return user;
    } catch (error) {
      const isUnauthorized = error instanceof StatusError && error.code === 401;
      this.#options.metrics?.authenticated(isUnauthorized ? 'failure' : 'error');
      // After too many failures the client gets 429, which says nothing about the credential.
      if (isUnauthorized) this.#options.throttle?.refused(record.address);
      throw error;
    }
  }

  /** Non-resource requests. */
  async #handleNonResource(
    exchange: Exchange,
    { prefix, path }: ServerPath,
    user: UserInfo,
  ): Promise<ApiResponse> {
    const { request, method, query, record } = exchange;
    const { authorizer, meta } = this.#options;
    const access: AccessRequest = { ...NO_RESOURCE, verb: record.verb, path, prefix };
    const decision = await authorizer.authorize(user, access);
    recordDecision(record, decision);
    if (!decision.isAllowed) {
      throw failure(403, 'Forbidden', `forbidden: ${denialText(user, access, decision)}`, {});
    }
    if (prefix !== '') throw noSuchResource();
    const { accept, 'if-none-match': ifNoneMatch } = request.headers;
    const response = meta.handle({ method, path, query, accept, ifNoneMatch });
    if (!response) throw noSuchResource();
    return response;
  }

  async #stream(exchange: Exchange, watched: WatchResponse): Promise<void> {
    const { response, query } = exchange;
    const served = withoutStreams(exchange);
    const watch = this.#options.watches.open(response, query, watched, () => this.#finished(served, 200));
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
    const { audit, clock, metrics } = this.#options;
    audit?.(auditEvent(record, code, clock.now()));
    if (!metrics) return;
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
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

class UnreadResponses {
  readonly #bytesMax: number;
  /** By user name. */
  readonly #bytes = new Map<string, number>();

  constructor(bytesMax = UNREAD_RESPONSES_PER_USER_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Must be called before a response is written. False: the user has too many unread bytes. The first response is accepted whatever its size. */
  take(user: string, bytes: number, response: Pick<ServerResponse, 'once'>): boolean {
    if (bytes < COUNTED_RESPONSE_BYTES_MIN) return true;
    const unread = this.#bytes.get(user) ?? 0;
    if (unread > 0 && unread + bytes > this.#bytesMax) return false;
    this.#bytes.set(user, unread + bytes);
    response.once('close', () => this.#release(user, bytes));
    return true;
  }

  #release(user: string, bytes: number): void {
    const left = (this.#bytes.get(user) ?? 0) - bytes;
    if (left > 0) this.#bytes.set(user, left);
    else this.#bytes.delete(user);
  }
}
