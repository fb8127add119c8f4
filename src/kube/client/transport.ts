/** HTTP to one API server: pooled keep-alive connections, deadlines, size limits, credentials. */

import { isIP, isIPv6, type Socket } from 'node:net';
import { checkServerIdentity, createSecureContext, type ConnectionOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { codeOf } from '../../base/errors.ts';
import { TransportError } from '../types.ts';
import {
  isLoopback,
  takesCredentials,
  type ClientCertificate,
  type RequestHeaders,
  type ServerAccess,
  type ServerTrust,
} from '../access.ts';
import {
  Exchange,
  type ExchangeLimits,
  type HttpRequest,
  type HttpResponse,
  type StreamHandler,
} from './exchange.ts';
import type { InputBudget } from './input-budget.ts';
import { meteredClients } from './metered-connection.ts';
import type { ReadPace, ReadPaces } from './read-pace.ts';
import { Pool, buildConnector } from './undici-parts.ts';

/** `code` is the HTTP status, or `<error>` without a response, as in client-go. */
interface RequestMetrics {
  requested(method: string, code: string, seconds: number): void;
}

export interface TransportOptions extends TransportLimits {
  access: ServerAccess;
  clock: Clock;
  metrics: RequestMetrics;
  /** `endpoint-syncer/1.2.3`. */
  userAgent: string;
}

export interface TransportLimits {
  /** Deadline of a request that has none of its own. Default 30 s. */
  timeoutMs?: number;
  /** Connections for everything but watches. Default 16. */
  connections?: number;
  /** Connections for watches, each of which keeps one. Default 128. */
  watchesMax?: number;
  /** Of a response, and of an event of a watch. Default 64 MiB, and 16 MiB for an event. */
  responseBytesMax?: number;
  /** A token for each byte that arrives, see `MeterOptions`; clients may share it. Default: as fast as they arrive. */
  pace?: ReadPaces;
  /** Of responses and events that are not complete; clients may share it. Default: not limited. */
  input?: InputBudget;
}

/** One sync has fewer informers than this. */
const WATCHES_MAX = 128;
/** Go's servers close an idle connection after 90 s or more: never reuse one that may be closing. */
const IDLE_CONNECTION_MS = 60_000;
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

export class Transport {
  readonly #options: TransportOptions;
  #address: Address;
  /** Of both pools: a watch resumes the TLS session of a request, which takes a third less processor time than a new session. */
  readonly #connect: Connector;
  /** Requests and watches use separate pools, so that neither starves the other. */
  #requests: Pool | undefined;
  #watches: Pool | undefined;
  /** These, and former ones with requests in flight. */
  readonly #pools = new Set<Pool>();
  #isClosed = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#address = addressOf(options);
    this.#connect = createConnector(options.access);
  }

  /** `host:port`, for metrics and messages. */
  get host(): string {
    return this.#address.limits.host;
  }

  /** Where the credentials come from, for messages. */
  get accessDescription(): string {
    return this.#options.access.description;
  }

  /** Resolves with any HTTP response. Rejects with `TransportError`, or with the reason of the signal. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const { clock, metrics } = this.#options;
    const startedMs = clock.monotonicMs();
    let isRecorded = false;
    const record = (code: string): void => {
      if (!isRecorded) metrics.requested(request.method, code, (clock.monotonicMs() - startedMs) / 1000);
      isRecorded = true;
    };
    try {
      const response = await this.#sendWithCredentials(recordStart(request, () => record('200')));
      record(String(response.status));
      return response;
    } catch (error) {
      if (!isRecorded && error instanceof TransportError) this.#options.access.unreachable?.();
      record('<error>');
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#pools].map((pool) => pool.destroy()));
  }

  /** Renews rejected credentials and sends the request once more. A request with a 401 had no effect, so this is safe for writes too. */
  async #sendWithCredentials(request: HttpRequest): Promise<HttpResponse> {
    const { credentials } = this.#options.access;
    const first = credentials.headers();
    const headers = first instanceof Promise ? await first : first;
    this.#follow();
    const response = await this.#exchange(request, headers);
    if (response.status !== 401) return response;
    const mayDiffer = credentials.invalidate();
    if (mayDiffer) this.#renewConnections(); // a client certificate belongs to a connection
    const renewed = await credentials.headers();
    // Those of several requests in flight are renewed once, for the first that is rejected.
    if (!mayDiffer && renewed['authorization'] === headers['authorization']) return response;
    this.#follow();
    return await this.#exchange(request, renewed);
  }

  /** The kubeconfig may name another server or proxy now. */
  #follow(): void {
    const { server, proxyUrl } = this.#options.access;
    if (server === this.#address.server && proxyUrl === this.#address.proxyUrl) return;
    this.#address = addressOf(this.#options);
    this.#renewConnections();
  }

  #exchange(request: HttpRequest, credentials: RequestHeaders): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(request, this.#address.limits, { resolve, reject });
      try {
        if (request.isSecret === true && !this.#address.takesCredentials) throw new Error(NOT_SECURE);
        this.#poolFor(request).dispatch(
          {
            path: this.#address.basePath + request.path,
            method: request.method,
            body: request.body ?? null,
            headers: this.#headers(request, credentials),
            // One deadline for the whole exchange replaces the pool's own timers.
            headersTimeout: 0,
            bodyTimeout: 0,
          },
          exchange,
        );
      } catch (error) {
        exchange.fail(error);
      }
    });
  }

  #headers(request: HttpRequest, credentials: RequestHeaders): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = {
      accept: request.accept ?? 'application/json',
      'user-agent': this.#options.userAgent,
      ...credentials,
    };
    // The server may be another one by now than the one that the credentials were read for.
    if (!this.#address.takesCredentials) delete headers['authorization'];
    if (request.isBulky === true && !this.#address.isLocal) headers['accept-encoding'] = 'gzip';
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    return headers;
  }

  #poolFor(request: HttpRequest): Pool {
    if (this.#isClosed) throw new Error('this client is closed');
    const { pace } = this.#options;
    if (request.stream !== undefined)
      return (this.#watches ??= this.#open(this.#options.watchesMax ?? WATCHES_MAX, pace?.watches));
    return (this.#requests ??= this.#open(this.#options.connections ?? 16, pace?.responses));
  }

  #open(connections: number, pace: ReadPace | undefined): Pool {
    const { clock } = this.#options;
    const pool = new Pool(new URL(this.#address.server).origin, {
      connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      connect: this.#connect,
      ...(pace !== undefined && { factory: meteredClients(this.#connect, { clock, pace }) }),
    });
    this.#pools.add(pool);
    return pool;
  }

  /** Lets requests in flight finish; new ones open new connections. */
  #renewConnections(): void {
    this.#requests = undefined;
    this.#watches = undefined;
    for (const pool of this.#pools) {
      const forget = (): boolean => this.#pools.delete(pool);
      if (!pool.closed) pool.close().then(forget, forget);
    }
  }
}

const NOT_SECURE =
  'its URL is not an https URL, and no credential is sent to another machine without TLS; name its https URL';

/** What follows from the URLs of the server and of the proxy. */
interface Address {
  readonly server: string;
  readonly proxyUrl: string | undefined;
  readonly takesCredentials: boolean;
  readonly basePath: string;
  /** On the same machine compression costs more than it saves. */
  readonly isLocal: boolean;
  readonly limits: ExchangeLimits;
}

function addressOf({
  access: { server, proxyUrl },
  clock,
  input,
  pace,
  responseBytesMax = RESPONSE_BYTES_MAX,
}: TransportOptions): Address {
  const url = new URL(server);
  const { host, pathname } = url;
  return {
    server,
    proxyUrl,
    takesCredentials: takesCredentials({ server, proxyUrl }),
    basePath: pathname === '/' ? '' : pathname.replace(/\/+$/, ''),
    isLocal: isLoopback(url),
    limits: { clock, host, responseBytesMax, pace: pace?.responses, input },
  };
}

/** A stream is recorded when it starts, because it lasts. */
function recordStart(request: HttpRequest, onStart: () => void): HttpRequest {
  const { stream } = request;
  if (stream === undefined) return request;
  const started = (): void => {
    onStart();
    stream.started();
  };
  const recorded: StreamHandler = {
    started,
    chunk: (chunk) => stream.chunk(chunk),
    get pendingBytes() {
      return stream.pendingBytes;
    },
  };
  return { ...request, stream: recorded };
}

// Opens connections. Certificate files are read for each new connection, which supports rotation.

type Connector = ReturnType<typeof buildConnector>;

const CONNECT_TIMEOUT_MS = 10_000;
/** Shorter than the 60 s after which many load balancers drop an idle connection. */
const KEEP_ALIVE_PROBE_MS = 30_000;

interface TlsMaterial {
  readonly certificate: ClientCertificate | undefined;
  readonly trust: ServerTrust;
}

/** A connector for one server. An unreadable credential or file fails the connection. */
function createConnector(access: ServerAccess): Connector {
  let built: { readonly connect: Connector; readonly material: TlsMaterial } | undefined;
  return (options, callback) => {
    const open = async (): Promise<void> => {
      try {
        const [certificate, trust] = await Promise.all([access.credentials.certificate(), access.trust()]);
        const material = { certificate, trust };
        // The connector keeps TLS sessions: it is replaced only when what it was built from has changed.
        if (built === undefined || !isDeepStrictEqual(built.material, material))
          built = { material, connect: buildFrom(material, options.protocol === 'https:') };
        throughProxy(access.proxyUrl, built.connect)(options, callback);
      } catch (error) {
        callback(asError(error), null);
      }
    };
    void open();
  };
}

/**
 * One context for all connections: Node would build one for each, of 40 KiB and in 0.8 ms. As for kubectl, an intermediate authority, or the
 * certificate of the server itself, may stand in the kubeconfig alone.
 */
function buildFrom(
  { certificate, trust: { ca, serverName, isUnverified } }: TlsMaterial,
  isSecure: boolean,
): Connector {
  return buildConnector({
    rejectUnauthorized: !isUnverified,
    ...(serverName !== undefined && verifiedAs(serverName)),
    ...(isSecure && {
      secureContext: createSecureContext({ ca, ...certificate, allowPartialTrustChain: true }),
    }),
    // HTTP/1.1, because it is cheaper: a PUT needs 0.15 ms of CPU time, with HTTP/2 0.2 ms and 30 MiB more memory.
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
  });
}

/** Verifies the server by another name than that of its URL. A handshake cannot carry an address (RFC 6066 3), and Node throws for one. */
export function verifiedAs(
  servername: string,
): Pick<ConnectionOptions, 'servername' | 'checkServerIdentity'> {
  if (isIP(servername) === 0) return { servername };
  return { checkServerIdentity: (_, certificate) => checkServerIdentity(servername, certificate) };
}

/** `connect` through this HTTP proxy; undefined: directly. */
export function throughProxy(proxyUrl: string | undefined, connect: Connector): Connector {
  if (proxyUrl === undefined) return connect;
  return (options, callback) => {
    const open = async (): Promise<void> => {
      try {
        const tunnel = await openTunnel(proxyUrl, options);
        if (options.protocol === 'https:') connect({ ...options, httpSocket: tunnel }, callback);
        else callback(null, tunnel);
      } catch (error) {
        callback(asError(error), null);
      }
    };
    void open();
  };
}

/** Of the answer of a proxy, before the connection is that of the API server. */
const ANSWER_BYTES_MAX = 64 * 1024;

/** Asks an HTTP proxy for a raw connection to the server (CONNECT, RFC 9110 9.3.6). */
async function openTunnel(
  proxyUrl: string,
  target: { hostname: string; port: string; protocol?: string },
): Promise<Socket> {
  const proxy = new URL(proxyUrl);
  const { request } = proxy.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const user = decodeURIComponent(proxy.username);
  const host = isIPv6(target.hostname) ? `[${target.hostname}]` : target.hostname;
  const authority = `${host}:${target.port || (target.protocol === 'http:' ? '80' : '443')}`;
  return await new Promise((resolve, reject) => {
    const connectRequest = request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(user === '' ? {} : { 'proxy-authorization': basic(user, proxy) }) },
    });
    const fail = (error: Error): void => {
      clearTimeout(deadline);
      reject(new Error(`the proxy ${proxy.host} ${problemOf(error)}: ${PROXY_ADVICE}`));
    };
    // For all of the answer: neither a byte now and then nor an endless one extends it.
    const deadline = setTimeout(
      () => connectRequest.destroy(new Error('does not respond')),
      CONNECT_TIMEOUT_MS,
    );
    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) connectRequest.destroy(new Error('sent too long an answer'));
    };
    connectRequest.once('socket', (socket) => socket.on('data', count));
    connectRequest.once('connect', (response, socket) => {
      clearTimeout(deadline);
      socket.off('data', count);
      if (response.statusCode === 200) return resolve(socket as Socket);
      socket.destroy(); // a proxy may keep it open
      const refusal = `refused to connect to ${authority}: ${response.statusCode}`;
      reject(new Error(`the proxy ${proxy.host} ${refusal}: ${PROXY_ADVICE}`));
    });
    connectRequest.once('error', fail);
    connectRequest.end();
  });
}

const PROXY_ADVICE = 'correct proxy-url in the kubeconfig or HTTPS_PROXY, or name the API server in NO_PROXY';

/** The code of the error would be taken for that of the API server. */
function problemOf(error: Error): string {
  const code = codeOf(error);
  return code === '' ? error.message : `cannot be reached (${code})`;
}

function basic(user: string, proxy: URL): string {
  return `Basic ${Buffer.from(`${user}:${decodeURIComponent(proxy.password)}`).toString('base64')}`;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
