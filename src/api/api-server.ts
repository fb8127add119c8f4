/** The HTTP face of the machinery: fastify in front, one handler behind, every answer a document of Kubernetes. */

import type { AddressInfo, Socket } from 'node:net';
import { fastify, type FastifyReply, type FastifyRequest } from 'fastify';
import { sleep, type Clock } from '../lib/clock.ts';
import type { Logger } from '../observe/logger.ts';
import { StatusError } from '../kube/status-error.ts';
import { statusAnswer, type Answer } from './answer.ts';
import { denialText, type AccessRequest, type Authorizer } from './authorizer.ts';
import type { Fault, Interceptor, InterceptedRequest } from './faults.ts';
import type { MetaHandler } from './meta-handler.ts';
import { parseResourcePath, verbOf, type ResourcePath, type ServerPath } from './request-info.ts';
import type { ResourceHandler, WatchAnswer } from './resource-handler.ts';
import { failure, internalError, methodNotAllowed, noSuchResource, tooLarge } from './status.ts';
import type { Credentials, UserInfo } from './user.ts';
import type { WatchStreams } from './watch-streams.ts';

export interface ApiServerOptions {
  readonly meta: MetaHandler;
  readonly resources: ResourceHandler;
  readonly watches: WatchStreams;
  /** Who sent a request; undefined: 401. */
  authenticate(credentials: Credentials): UserInfo | undefined | Promise<UserInfo | undefined>;
  readonly authorizer: Authorizer;
  splitPath(path: string): ServerPath | undefined;
  readonly publicDocuments: ReadonlyMap<string, () => Promise<Answer>>;
  readonly interceptor: Interceptor | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ListenOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
}

export interface ListeningServer {
  /** `127.0.0.1:40123` */
  readonly address: string;
  /** Resets every open connection, as a crash or a network would; the server goes on. */
  disconnect(): void;
  close(): Promise<void>;
}

const BODY_BYTES_MAX = 3 * 1024 * 1024;
const HEADER_BYTES_MAX = 16 * 1024;
/** Longer than the client's idle time, so that it is the client who closes. */
const KEEP_ALIVE_MS = 75_000;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export async function listen(options: ApiServerOptions, where: ListenOptions = {}): Promise<ListeningServer> {
  const sockets = new Set<Socket>();
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    http: { maxHeaderSize: HEADER_BYTES_MAX },
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 2048 },
    // A URL that is none leads nowhere.
    frameworkErrors: (_error, _request, reply) => send(reply, statusAnswer(noSuchResource())),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, request, reply) => send(reply, answerOf(error, request, options.logger)));
  app.setNotFoundHandler((_request, reply) => send(reply, statusAnswer(methodNotAllowed())));
  app.route({ method: METHODS, url: '*', handler: (request, reply) => serve(options, request, reply) });
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await app.listen({ host: where.host ?? '127.0.0.1', port: where.port ?? 0 });
  const { address, port } = app.server.address() as AddressInfo; // it listens on TCP
  return {
    address: `${address}:${port}`,
    disconnect: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: async () => {
      options.watches.closeAll();
      await app.close();
    },
  };
}

async function serve(options: ApiServerOptions, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const url = parseTarget(request.raw.url ?? '/');
  const split = options.splitPath(url.path);
  const path = split && parseResourcePath(split.path);
  const fault = options.interceptor?.(intercepted(request, url, path));
  if (fault && !(await passes(options, fault, reply))) return;
  const answer = await answerTo(options, { request, url, split, path }).catch((error: unknown) =>
    answerOf(error, request, options.logger),
  );
  if (fault === 'reset-after-commit') {
    reply.hijack();
    request.raw.socket.resetAndDestroy();
    return;
  }
  if ('definition' in answer) {
    reply.hijack();
    await options.watches.stream(reply.raw, url.query, answer);
    return;
  }
  send(reply, answer);
}

/** False when the fault has ended the request. */
async function passes(options: ApiServerOptions, fault: Fault, reply: FastifyReply): Promise<boolean> {
  if (fault === 'reset-after-commit') return true;
  if (fault === 'drop') {
    reply.hijack();
    reply.raw.destroy();
    return false;
  }
  if ('delayMs' in fault) {
    await sleep(options.clock, fault.delayMs, new AbortController().signal);
    return true;
  }
  const { status, reason, message, retryAfterSeconds } = fault;
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const error = failure(status, reason ?? reasonOf(status), message ?? 'an injected fault', details);
  send(reply, statusAnswer(error));
  return false;
}

function reasonOf(status: number): string {
  switch (status) {
    case 409:
      return 'Conflict';
    case 410:
      return 'Expired';
    case 429:
      return 'TooManyRequests';
    case 503:
      return 'ServiceUnavailable';
    case 504:
      return 'Timeout';
    default:
      return 'InternalError';
  }
}

/** The target of a request line. */
interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Total on any text: `new URL` throws on some. */
function parseTarget(target: string): Target {
  const at = target.indexOf('?');
  const path = at < 0 ? target : target.slice(0, at);
  return { path, query: new URLSearchParams(at < 0 ? '' : target.slice(at + 1)) };
}

interface Incoming {
  readonly request: FastifyRequest;
  readonly url: Target;
  readonly split: ServerPath | undefined;
  readonly path: ResourcePath | undefined;
}

async function answerTo(options: ApiServerOptions, incoming: Incoming): Promise<Answer | WatchAnswer> {
  const { request, url, split, path } = incoming;
  const { headers, method } = request;
  const document = options.publicDocuments.get(url.path);
  if (document && (method === 'GET' || method === 'HEAD')) return document();
  const { authorization } = headers;
  const user = await options.authenticate({ authorization, address: request.ip });
  if (user === undefined) throw failure(401, 'Unauthorized', 'Unauthorized');
  if (!split) throw noSuchResource();
  if (!path) return metaAnswer(options, incoming, { ...split, user });
  const contentType = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  return options.resources.handle({
    method,
    path,
    query: url.query,
    accept: headers.accept,
    userAgent: headers['user-agent'] ?? '',
    user,
    prefix: split.prefix,
    body: { contentType, bytes: bytesOf(request) },
  });
}

/** What is no request for objects. */
async function metaAnswer(
  options: ApiServerOptions,
  { request, url }: Incoming,
  { prefix, path, user }: ServerPath & { readonly user: UserInfo },
): Promise<Answer> {
  const access: AccessRequest = { ...NO_RESOURCE, verb: request.method.toLowerCase(), path, prefix };
  const decision = await options.authorizer.authorize(user, access);
  if (!decision.isAllowed) {
    throw failure(403, 'Forbidden', `forbidden: ${denialText(user, access, decision)}`, {});
  }
  const { headers, method } = request;
  const asked = { method, path, query: url.query, accept: headers.accept };
  const answer = prefix === '' && options.meta.handle({ ...asked, ifNoneMatch: headers['if-none-match'] });
  if (!answer) throw noSuchResource();
  return answer;
}

const NO_RESOURCE = { group: '', version: '', resource: '', subresource: '', namespace: '', name: '' };

function bytesOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

function intercepted(
  request: FastifyRequest,
  url: Target,
  path: ResourcePath | undefined,
): InterceptedRequest {
  const { group = '', resource = '', subresource = '', namespace = '', name = '' } = path ?? {};
  return {
    method: request.method,
    url: request.raw.url ?? '/',
    verb: (path && verbOf(request.method, path, url.query)) ?? '',
    group,
    resource,
    subresource,
    namespace,
    name,
    body: bytesOf(request).toString('utf8'),
  };
}

function answerOf(error: unknown, request: FastifyRequest, logger: Logger): Answer {
  if (error instanceof StatusError) return statusAnswer(error);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return statusAnswer(tooLarge(BODY_BYTES_MAX));
  if (error instanceof Error && 'statusCode' in error && error.statusCode === 400) {
    return statusAnswer(failure(400, 'BadRequest', error.message));
  }
  logger.error({ err: error, method: request.method, url: request.url }, 'request failed');
  return statusAnswer(internalError());
}

function send(reply: FastifyReply, { code, headers, body }: Answer): void {
  // Past fastify's own serialisation, which would add a charset to the content type.
  reply.hijack();
  reply.raw.writeHead(code, {
    'cache-control': 'no-cache, private',
    ...(headers as Record<string, string>), // Node takes lists too
    'content-length': Buffer.byteLength(body),
  });
  reply.raw.end(reply.request.method === 'HEAD' ? undefined : body);
}
