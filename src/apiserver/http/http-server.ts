/** HTTP/1.1 with or without TLS, with limits on everything that a client can send or leave unread. */

import {
  createServer,
  type IncomingMessage,
  type Server as NodeHttpServer,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls';
import type { StatusError } from '../../kube/status-error.ts';
import { plainHeaders, statusResponse } from '../request/api-response.ts';
import {
  CLIENT_TIMEOUTS,
  type ClientTimeouts,
  CONNECTIONS_MAX,
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  URL_BYTES_MAX,
} from '../limits.ts';
import {
  badRequest,
  expectationFailed,
  headersTooLarge,
  methodNotAllowed,
  urlTooLong,
  requestTimeout,
} from '../status.ts';

/** A certificate chain and its key, as PEM. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

export interface ListenOptions {
  /** Default 127.0.0.1; `''`: all addresses. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  readonly tls?: TlsPair;
  readonly timeouts?: Partial<ClientTimeouts>;
  /** How long `close` waits for requests in flight. Default 0: it aborts them. */
  readonly drainMs?: number;
  readonly connectionsMax?: number;
}

export interface HttpServer {
  /** `127.0.0.1:40123` */
  readonly address: string;
  readonly connections: number;
  /** New connections use this certificate; open connections keep the previous one. */
  renewTls(pair: TlsPair): void;
  /** Closes every connection: idle ones immediately, the others within `drainMs`. */
  close(): Promise<void>;
}

/** Receives every request whose head can be parsed and is within the limits. Must not throw. */
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

export async function openHttpServer(
  onRequest: RequestListener,
  options: ListenOptions = {},
): Promise<HttpServer> {
  const timeouts = { ...CLIENT_TIMEOUTS, ...options.timeouts };
  const http = createNodeServer(onRequest, timeouts);
  const server = createSocketServer(http, timeouts, options.tls);
  server.maxConnections = options.connectionsMax ?? CONNECTIONS_MAX;
  const sockets = new Set<Socket>();
  const secured = new Set<TLSSocket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    // Not `once`, which keeps a wrapper of the listener for each connection: the event comes once anyway.
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    secured.add(socket);
    socket.on('close', () => secured.delete(socket));
  });
  await listening(server, options);
  return {
    address: addressOf(server),
    get connections() {
      return sockets.size;
    },
    renewTls: (pair) => {
      if ('setSecureContext' in server) server.setSecureContext({ ...pair, ...TLS_SETTINGS });
    },
    close: () => closed({ server, http, sockets, secured: options.tls && secured }, options.drainMs ?? 0),
  };
}

/** Node's HTTP server without a listening socket. */
function createNodeServer(onRequest: RequestListener, timeouts: ClientTimeouts): NodeHttpServer {
  const listener: RequestListener = (request, response) => {
    // Node reports the end inside any other request itself.
    if (request.headers.upgrade !== undefined)
      request.socket.once('end', () => request.complete || respondToEndOfRequest(request.socket));
    const problem = headProblem(request);
    if (problem) rejectAndClose(response, problem);
    else onRequest(request, response);
  };
  const settings = {
    // Above the limit that is checked here, so that the response can name what is too long.
    maxHeaderSize: HEADER_BYTES_MAX + URL_BYTES_MAX,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // Checked here: Node's response has no Status document.
    requireHostHeader: false,
  };
  const http = createServer(settings, listener);
  // No limit by number: Node would drop headers silently, perhaps one that matters. Their size is limited.
  http.maxHeadersCount = 0;
  http.on('clientError', respondToBrokenRequest);
  http.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    rejectAndClose(response, expectationFailed());
  });
  // A client may end its side before it has its responses. Not in Node's documentation; without it, Node would drop them.
  Object.assign(http, { httpAllowHalfOpen: true });
  http.on('connect', (_request, socket: Duplex) => endWith(socket, methodNotAllowed()));
  // From this event on, Node enforces the timeouts.
  http.emit('listening');
  return http;
}

/** TLS 1.3, and of TLS 1.2 only suites with forward secrecy and authenticated encryption: none with CBC. */
const TLS_SETTINGS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
} as const;

function createSocketServer(
  http: NodeHttpServer,
  { headersMs }: ClientTimeouts,
  tls: TlsPair | undefined,
): Server | TlsServer {
  const serve = (socket: Socket): void => void http.emit('connection', socket);
  if (!tls) return createPlainServer({ noDelay: true, allowHalfOpen: true }, serve);
  const secure = { ...tls, ...TLS_SETTINGS, noDelay: true, handshakeTimeout: headersMs } as const;
  const server = createTlsServer({ ...secure, ALPNProtocols: ['http/1.1'] }, (socket) => {
    // Only from now on: a client that rejects the certificate leaves, and no response to it is pending.
    socket.allowHalfOpen = true;
    serve(socket);
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

function listening(server: Server, { host = '127.0.0.1', port = 0 }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(host === '' ? { port } : { host, port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo; // it listens on TCP
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}

/** How often a server that is closing checks for connections whose last response is sent. */
const DRAIN_CHECK_MS = 10;

interface Running {
  readonly server: Server;
  readonly http: NodeHttpServer;
  readonly sockets: ReadonlySet<Socket>;
  readonly secured: ReadonlySet<TLSSocket> | undefined;
}

/** Accepts no new connections. Requests in flight may finish until `drainMs` have passed. */
function closed({ server, http, sockets, secured }: Running, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const endAll = (): void => {
      for (const socket of sockets) socket.destroy();
    };
    const check = setInterval(() => http.closeIdleConnections(), DRAIN_CHECK_MS);
    const ending = setTimeout(endAll, drainMs);
    server.close(() => {
      clearInterval(check);
      clearTimeout(ending);
      http.close();
      resolve();
    });
    // Without a complete handshake, no request is in flight. Node does not say which socket a TLS socket encrypts.
    const inUse = secured && new Set(Array.from(secured, connectionName));
    for (const socket of sockets) if (inUse?.has(connectionName(socket)) === false) socket.destroy();
    if (drainMs === 0) endAll();
    else http.closeIdleConnections();
  });
}

/** Why a head that Node could parse is rejected. */
function headProblem({
  url = '',
  rawHeaders,
  headers,
  httpVersionMinor,
}: IncomingMessage): StatusError | undefined {
  if (url.length > URL_BYTES_MAX) return urlTooLong(URL_BYTES_MAX);
  if (rawHeaders.length > 2 * HEADERS_MAX) return headersTooLarge(`${HEADERS_MAX} headers`);
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length;
  if (bytes > HEADER_BYTES_MAX) return headersTooLarge(`${HEADER_BYTES_MAX} bytes`);
  if (headers.host === undefined && httpVersionMinor > 0) return badRequest('the request has no Host header');
  const repeated = SINGLE_HEADERS.find((name) => countOf(rawHeaders, name) > 1);
  return repeated === undefined ? undefined : badRequest(`the request has more than one ${repeated} header`);
}

/** A proxy in front of this server may have used the other one of two. */
const SINGLE_HEADERS = ['Host', 'Authorization'];

/** `rawHeaders` alternates names and values. */
function countOf(rawHeaders: readonly string[], name: string): number {
  const wanted = name.toLowerCase();
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === wanted).length;
}

/** Responds and closes the connection: the bytes that follow cannot be trusted to be requests. */
export function rejectAndClose(response: ServerResponse, error: StatusError): void {
  sendStatus(response, error, FINAL);
}

/** Responds without the handlers of the server. */
export function sendStatus(
  response: ServerResponse,
  error: StatusError,
  more: Readonly<Record<string, string>> = {},
): void {
  const { code, headers, body } = statusResponse(error);
  response.writeHead(code, { ...plainHeaders(headers), ...more, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

const FINAL = { 'cache-control': 'no-cache, private', connection: 'close' };

function connectionName({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}

// Responses on the bare socket to bytes that Node cannot parse as a request.

/** Responds on a connection that the client has ended inside a request, with the code of Node's parser for that. */
function respondToEndOfRequest(socket: Duplex): void {
  const error = new Error('the client ended the connection inside a request');
  respondToBrokenRequest(Object.assign(error, { code: 'HPE_INVALID_EOF_STATE' }), socket);
}

/** Responds to a request that is not HTTP, or incomplete at its deadline. Without a writable socket the connection is only closed. */
function respondToBrokenRequest(error: Error, socket: Duplex): void {
  const code = 'code' in error ? String(error.code) : '';
  const response = responseOn(socket);
  const isStarted = response?.headersSent === true;
  // After the first bytes of a response, the client would read a second one as part of it.
  if (code === 'ECONNRESET' || (isStarted && !response.writableEnded)) socket.destroy(error);
  // The bytes of a complete response may still wait in the socket.
  else if (isStarted || !socket.writable) endAndLinger(socket);
  else endWith(socket, brokenRequest(code, error), packetOf(error).startsWith('HEAD '));
}

/** Node stores the response that is being written in this member of its socket. */
function responseOn(socket: Duplex & { _httpMessage?: ServerResponse | null }): ServerResponse | undefined {
  return socket._httpMessage ?? undefined;
}

function brokenRequest(code: string, error: Error): StatusError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isLongUrl(error) ? urlTooLong(URL_BYTES_MAX) : headersTooLarge(`${HEADER_BYTES_MAX} bytes`);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout();
    case 'HPE_INVALID_EOF_STATE':
      return badRequest('the request ended before it was complete');
    case 'HPE_INVALID_METHOD':
      return isOtherMethod(error) ? methodNotAllowed() : badRequest('the request is not HTTP/1.1');
    default:
      return badRequest('the request is not HTTP/1.1');
  }
}

/** The text of the packet in which the parser failed. */
function packetOf(error: Error): string {
  const packet = 'rawPacket' in error ? error.rawPacket : undefined;
  return Buffer.isBuffer(packet) ? packet.toString('latin1', 0, 2 * HEADER_BYTES_MAX) : '';
}

function isLongUrl(error: Error): boolean {
  const text = packetOf(error);
  const end = text.indexOf('\n');
  return /^[A-Z]+ \//.test(text) && (end < 0 || end > URL_BYTES_MAX);
}

function isOtherMethod(error: Error): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} \/[^\n]* HTTP\/1\.[01]\r?\n/.test(packetOf(error));
}

/** Time for a client to read the error: an immediate close with unread bytes would reset the connection. */
const LINGER_MS = 1000;

/** Writes a complete response on the socket: Node has no request to respond to. */
function endWith(socket: Duplex, error: StatusError, isHead = false): void {
  const { code, body } = statusResponse(error);
  endAndLinger(
    socket,
    `HTTP/1.1 ${code} ${error.reason}\r\ncontent-type: application/json\r\ncache-control: no-cache, private\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${isHead ? '' : body}`,
  );
}

function endAndLinger(socket: Duplex, lastBytes?: string): void {
  socket.end(lastBytes);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}
