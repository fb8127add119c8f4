/** One HTTP request → one answer, every answer a document of Kubernetes. */

import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { StatusError } from '../../kube/status-error.ts';
import { statusResponse, type ApiResponse } from './api-response.ts';
import {
  auditEvent,
  masked,
  recordDecision,
  type AuditEvent,
  type RequestRecord,
} from '../request/audit-event.ts';
import { denialText, type AccessRequest, type Authorizer } from '../request/authorizer.ts';
import {
  openHttpServer,
  plainHeaders,
  type HttpServer,
  type ListenOptions,
  type RequestListener,
} from './http-server.ts';
import { CLIENT_TIMEOUTS } from '../limits.ts';
import type { Verb } from '../objects/resource-definition.ts';
import type { ApiServerSeries } from '../metrics.ts';
import type { MetaHandler } from '../request/meta-handler.ts';
import { OpenRequests } from './open-requests.ts';
import { StoreError } from '../storage/store.ts';
import { BodyReader } from './read-bytes.ts';
import { parseResourcePath, verbOf, type ResourcePath, type ServerPath } from '../request/request-info.ts';
import type { ResourceHandler, WatchResponse } from '../request/resource-handler.ts';
import { failure, internalError, noSuchResource, storeUnavailable, tooManyRequests } from '../status.ts';
import { UnreadResponses } from './unread-responses.ts';
import type { Credentials, UserInfo } from '../request/user.ts';
import type { WatchStreams } from '../watch/watch-streams.ts';

export interface ApiServerOptions {
  readonly meta: MetaHandler;
  readonly resources: ResourceHandler;
  readonly watches: WatchStreams;
  /** Who sent a request; undefined: 401. */
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

/** How much one client may ask. Both throw a 429 `StatusError` when it is too much. */
export interface Throttle {
  /** A request of somebody who is known is about to be served. */
  admit(user: UserInfo, verb: string): void;
  /** Nobody knows who sends from this address. */
  refused(address: string): void;
}

export async function listen(options: ApiServerOptions, where: ListenOptions = {}): Promise<HttpServer> {
  const server = new ApiServer(options, where.timeouts?.responseMs ?? CLIENT_TIMEOUTS.responseMs);
  const serve: RequestListener = (request, response) => void server.serve(request, response);
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

/** A request on its way through the server. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The path of the URL as it was sent. */
  readonly fullPath: string;
  readonly query: URLSearchParams;
  readonly split: ServerPath | undefined;
  readonly path: ResourcePath | undefined;
  readonly verb: Verb | undefined;
  readonly record: RequestRecord;
  /** Monotonic. */
  readonly startedMs: number;
}

class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #open: OpenRequests;
  readonly #unread: UnreadResponses;
  readonly #bodies = new BodyReader();

  constructor(options: ApiServerOptions, responseMs: number) {
    this.#options = options;
    this.#open = new OpenRequests(options.clock, responseMs);
    this.#unread = new UnreadResponses(options.unreadResponsesBytesMax);
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = this.#exchange(request, response);
    const { method } = exchange;
    const { metrics } = this.#options;
    metrics?.began(method);
    try {
      if (!this.#open.begin(response))
        throw tooManyRequests('too many requests are under way, try again later');
      const answer = await this.#answer(exchange);
      const bytes = 'body' in answer ? Buffer.byteLength(answer.body) : 0;
      this.#rejectUnread(exchange, bytes);
      if ('definition' in answer) await this.#stream(exchange, answer);
      else this.#send(exchange, answer, bytes);
    } catch (error) {
      this.#fail(exchange, error);
    } finally {
      metrics?.ended(method);
    }
  }

  close(): void {
    this.#open.close();
  }

  #exchange(request: IncomingMessage, response: ServerResponse): Exchange {
    const { method = '', url = '/', headers, socket } = request;
    const at = url.indexOf('?');
    const fullPath = at < 0 ? url : url.slice(0, at);
    const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
    const { clock, audit } = this.#options;
    const split = this.#options.splitPath(fullPath);
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

  async #answer(exchange: Exchange): Promise<ApiResponse | WatchResponse> {
    const { request, method, split, path, record } = exchange;
    const { resources, publicDocuments, throttle } = this.#options;
    const document =
      publicDocuments.get(exchange.fullPath) ??
      (split?.prefix === '' ? publicDocuments.get(split.path) : undefined);
    if (document && (method === 'GET' || method === 'HEAD')) return document();
    const user = await this.#user(exchange);
    throttle?.admit(user, record.verb);
    if (!split) throw noSuchResource();
    if (!path) return this.#metaAnswer(exchange, split, user);
    const { headers } = request;
    if (requestsImpersonation(headers)) throw failure(403, 'Forbidden', NO_IMPERSONATION, {});
    const contentType = mediaType(headers['content-type']);
    return resources.handle({
      verb: exchange.verb,
      path,
      query: exchange.query,
      accept: headers.accept,
      userAgent: record.userAgent,
      user,
      prefix: split.prefix,
      record,
      body: { contentType, bytes: await this.#bytes(exchange) },
    });
  }

  async #user({ request, record }: Exchange): Promise<UserInfo> {
    const { address } = record;
    try {
      const { authorization } = request.headers;
      const user = await this.#options.authenticate({ authorization, address });
      if (user === undefined) throw failure(401, 'Unauthorized', 'Unauthorized');
      this.#options.metrics?.authenticated('success');
      record.user = user;
      return user;
    } catch (error) {
      // Somebody who failed too often is told that, and nothing about the credential.
      const isRefused = error instanceof StatusError && error.code === 401;
      this.#options.metrics?.authenticated(isRefused ? 'failure' : 'error');
      if (isRefused) this.#options.throttle?.refused(address);
      throw error;
    }
  }

  /** Read only for somebody who is known. */
  async #bytes({ method, request }: Exchange): Promise<Buffer> {
    return method === 'GET' || method === 'HEAD' ? EMPTY : this.#bodies.read(request);
  }

  /** What is no request for objects. */
  async #metaAnswer(exchange: Exchange, { prefix, path }: ServerPath, user: UserInfo): Promise<ApiResponse> {
    const { request, method, query, record } = exchange;
    const { authorizer, meta } = this.#options;
    const access: AccessRequest = { ...NO_RESOURCE, verb: record.verb, path, prefix };
    const decision = await authorizer.authorize(user, access);
    recordDecision(record, decision);
    if (!decision.isAllowed) {
      throw failure(403, 'Forbidden', `forbidden: ${denialText(user, access, decision)}`, {});
    }
    const { headers } = request;
    const asked = { method, path, query, accept: headers.accept };
    const answer = prefix === '' && meta.handle({ ...asked, ifNoneMatch: headers['if-none-match'] });
    if (!answer) throw noSuchResource();
    return answer;
  }

  async #stream(exchange: Exchange, answer: WatchResponse): Promise<void> {
    const { response, query } = exchange;
    const watch = this.#options.watches.open(response, query, answer, () => this.#finished(exchange, 200));
    this.#open.leave(response);
    await watch.start();
  }

  #fail(exchange: Exchange, error: unknown): void {
    const { request, response } = exchange;
    const refusal = refusalOf(error);
    if (!(error instanceof StatusError)) {
      const { method, url } = request;
      this.#options.logger.error({ err: error, method, url: masked(url ?? '') }, 'request failed');
    }
    if (response.headersSent || response.destroyed) response.destroy();
    else this.#refuse(exchange, refusal ?? internalError());
  }

  #refuse(exchange: Exchange, error: StatusError): void {
    const answer = statusResponse(error);
    this.#send(exchange, answer, Buffer.byteLength(answer.body));
  }

  /** Only of a read: what a write did must be said. */
  #rejectUnread({ response, method, record }: Exchange, bytes: number): void {
    if (method !== 'GET' || this.#unread.take(record.user?.name ?? '', bytes, response)) return;
    throw tooManyRequests('too much of earlier answers is unread: read it first');
  }

  /** `bytes`: the length of the body, which for a long list takes its time to count. */
  #send(exchange: Exchange, { code, headers, body }: ApiResponse, bytes: number): void {
    const { request, response, method, record } = exchange;
    const all: Record<string, string | number> = {
      'cache-control': 'no-cache, private',
      ...plainHeaders(headers),
      'content-length': bytes,
    };
    if (record.id !== '') all['audit-id'] = record.id;
    if (isLast(request)) all['connection'] = 'close';
    response.writeHead(code, all);
    response.end(method === 'HEAD' ? undefined : body);
    this.#open.answered(response);
    this.#finished(exchange, code);
  }

  #finished({ record, path, verb, method, query, startedMs }: Exchange, code: number): void {
    const { audit, clock, metrics } = this.#options;
    audit?.(auditEvent(record, code, clock.now()));
    if (!metrics) return;
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
    metrics.served({ verb, path, method, isDryRun: query.has('dryRun'), code, seconds });
  }
}

const EMPTY = Buffer.alloc(0);
const NO_IMPERSONATION =
  'impersonation is not supported: requests are answered for the user of the credential itself (kubectl: leave out --as, --as-group and --as-uid)';
/** A refused body is read and forgotten up to this size, so that its sender gets to see the answer. */
const UNREAD_BODY_BYTES_MAX = 64 * 1024 * 1024;
const NO_RESOURCE = { group: '', version: '', resource: '', subresource: '', namespace: '', name: '' };

/**
 * Nothing may follow on this connection: who asked to change the protocol may go on in another one, and nobody waits for the rest of a
 * large body that is not wanted.
 */
function isLast({ headers, complete }: IncomingMessage): boolean {
  if (headers.upgrade !== undefined) return true;
  return !complete && Number(headers['content-length'] ?? 0) > UNREAD_BODY_BYTES_MAX;
}

/**
 * To ignore these headers would answer somebody who gave up rights, such as a proxy with an administrator's credential, with all of them.
 * Discovery is answered: it is the same for everybody, and kubectl hides why it failed.
 */
function requestsImpersonation(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true;
  return false;
}

function mediaType(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** What the client may know of an error; undefined: only that it happened. */
function refusalOf(error: unknown): StatusError | undefined {
  if (error instanceof StatusError) return error;
  if (!(error instanceof StoreError)) return undefined;
  if (error.code === 'unavailable') return storeUnavailable(`the store cannot be used: ${error.message}`);
  return error.code === 'closed' ? storeUnavailable('the server is about to end') : undefined;
}
