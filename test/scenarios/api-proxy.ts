/**
 * An HTTP proxy between the daemon and one API server. It records requests and injects faults: errors, cut connections, lost responses
 * of completed writes, changed watch streams. It serves plain HTTP to the daemon.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Agent, request } from 'undici';
import { sendFlood, type Flood } from '../support/flooding-server.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { accessOf } from './cluster-client.ts';

export interface ProxiedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly isWatch: boolean;
  /** POST, PUT, PATCH or DELETE of anything but reviews and Events. */
  readonly isWrite: boolean;
  readonly body: Buffer;
  /** When it was complete, on the clock of `performance`. */
  readonly atMs: number;
}

export type Verdict =
  | { readonly kind: 'pass' }
  /** The proxy responds; the request does not reach the API server. */
  | {
      readonly kind: 'refuse';
      readonly status: number;
      readonly reason: string;
      readonly retryAfter?: number;
      readonly message?: string;
      readonly details?: object;
    }
  /** The proxy responds with a page of its own, as without a route; the request does not reach the API server. */
  | { readonly kind: 'page'; readonly status: number }
  /** The proxy responds with 200 and this body; the request does not reach the API server. */
  | { readonly kind: 'pretend'; readonly body: string }
  /** The proxy responds with these texts, as fast as they are read; the request does not reach the API server. */
  | { readonly kind: 'stream'; readonly texts: Iterable<string> | AsyncIterable<string> }
  /** The proxy writes these bytes on the connection; the request does not reach the API server. */
  | { readonly kind: 'flood'; readonly flood: Flood }
  /** The API server gets this body instead, as after a mutating webhook. */
  | { readonly kind: 'change'; readonly body: Buffer }
  /** The connection is cut before the request reaches the API server. */
  | { readonly kind: 'cut' }
  /** The API server executes the request, and the response is dropped. */
  | { readonly kind: 'lose-answer' };

export type WatchVerdict = readonly string[] | 'cut';

export interface ProxyBehaviour {
  /** Decides about each request; the request waits for the decision. Default: pass. */
  decide?(request: ProxiedRequest): Verdict | Promise<Verdict>;
  /** Called with each line of a watch stream; returns the lines to send instead, or 'cut' to end the stream here. The stream waits. */
  watchLine?(line: string, request: ProxiedRequest): WatchVerdict | Promise<WatchVerdict>;
  /** Called with the response to a write that the API server has executed, before it is sent. */
  afterWrite?(request: ProxiedRequest, status: number, answer: Buffer): Promise<void> | void;
}

interface Upstream {
  readonly url: string;
  readonly agent: Agent;
}

export class ApiProxy implements AsyncDisposable {
  /** All requests, in order. */
  readonly requests: ProxiedRequest[] = [];
  behaviour: ProxyBehaviour = {};
  readonly url: string;
  readonly kubeconfig: string;
  readonly #server: Server;
  readonly #upstream: Upstream;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, upstream: Upstream, token: string) {
    this.#server = server;
    this.#upstream = upstream;
    const address = server.address();
    this.url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
    this.kubeconfig = kubeconfigText('proxied', { server: this.url }, { token });
  }

  static async open(kubeconfigPath: string): Promise<ApiProxy> {
    const { url, token, tls } = accessOf(readFileSync(kubeconfigPath, 'utf8'));
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const agent = new Agent({ connect: tls, bodyTimeout: 0 });
    const proxy = new ApiProxy(server, { url, agent }, token);
    server.on('connection', (socket) => {
      proxy.#sockets.add(socket);
      socket.once('close', () => proxy.#sockets.delete(socket));
    });
    server.on('request', (message, response) => {
      proxy.#serve(message, response).catch(() => response.destroy());
    });
    return proxy;
  }

  /** Requests that change the cluster, except Events and access reviews, as `METHOD path`. */
  writes(): string[] {
    return this.requests.filter(({ isWrite }) => isWrite).map(({ method, path }) => `${method} ${path}`);
  }

  /** Delays watch events, on every path or on those that contain `part`, until the returned function is called. */
  holdWatches(part = ''): () => void {
    const gate = Promise.withResolvers<void>();
    this.behaviour = {
      watchLine: async (line, { path }) => {
        if (path.includes(part)) await gate.promise;
        return [line];
      },
    };
    return () => {
      this.behaviour = {};
      gate.resolve();
    };
  }

  /** Closes all open connections, like a network failure. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = await read(message);
    this.requests.push(asked);
    const verdict = (await this.behaviour.decide?.(asked)) ?? { kind: 'pass' };
    if (verdict.kind === 'cut') {
      message.socket.destroy();
    } else if (verdict.kind === 'refuse') {
      refuse(response, verdict);
    } else if (verdict.kind === 'page') {
      response.writeHead(verdict.status, { 'content-type': 'text/html' }).end('<h1>no route</h1>');
    } else if (verdict.kind === 'pretend') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(verdict.body);
    } else if (verdict.kind === 'flood') {
      sendFlood(message.socket, verdict.flood);
    } else if (verdict.kind === 'stream') {
      response.writeHead(200, { 'content-type': 'application/json' });
      await pipeline(Readable.from(verdict.texts), response);
    } else if (asked.isWatch) {
      await this.#relayWatch(asked, message, response);
    } else {
      const sent = verdict.kind === 'change' ? { ...asked, body: verdict.body } : asked;
      await this.#relay(sent, message, response, verdict.kind === 'lose-answer');
    }
  }

  async #relay(
    asked: ProxiedRequest,
    message: IncomingMessage,
    response: ServerResponse,
    isAnswerLost: boolean,
  ): Promise<void> {
    const answer = await request(`${this.#upstream.url}${asked.path}`, {
      method: asked.method as 'GET', // any method; undici's type lists the known ones
      dispatcher: this.#upstream.agent,
      headers: forwarded(message),
      ...(asked.body.length === 0 ? {} : { body: asked.body }),
    });
    const body = Buffer.from(await answer.body.arrayBuffer());
    if (asked.isWrite) await this.behaviour.afterWrite?.(asked, answer.statusCode, body);
    if (isAnswerLost) message.socket.destroy();
    else response.writeHead(answer.statusCode, contentHeaders(answer.headers)).end(body);
  }

  async #relayWatch(
    asked: ProxiedRequest,
    message: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const gone = new AbortController();
    message.socket.once('close', () => gone.abort());
    response.once('close', () => gone.abort());
    const answer = await request(`${this.#upstream.url}${message.url}`, {
      dispatcher: this.#upstream.agent,
      headers: forwarded(message),
      signal: gone.signal,
    });
    response.writeHead(answer.statusCode, contentHeaders(answer.headers));
    response.flushHeaders();
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of answer.body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n'); // undici's bodies are bytes
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const sent = (await this.behaviour.watchLine?.(line, asked)) ?? [line];
        if (sent === 'cut') {
          gone.abort();
          message.socket.destroy();
          return;
        }
        for (const one of sent) response.write(`${one}\n`);
      }
    }
    response.end(rest);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await this.#upstream.agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function read(message: IncomingMessage): Promise<ProxiedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer); // no encoding is set: buffers
  const path = message.url ?? '/';
  const method = message.method ?? 'GET';
  const isWatch = method === 'GET' && /[?&]watch=(true|1)/.test(path);
  const isWrite = method !== 'GET' && !/\/(events|selfsubject(access|rules)?reviews)\b/.test(path);
  return { method, path, isWatch, isWrite, body: Buffer.concat(chunks), atMs: performance.now() };
}

function refuse(response: ServerResponse, verdict: Extract<Verdict, { kind: 'refuse' }>): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (verdict.retryAfter !== undefined) headers['retry-after'] = String(verdict.retryAfter);
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: verdict.message ?? `refused by the test: ${verdict.reason}`,
    reason: verdict.reason,
    code: verdict.status,
    ...(verdict.details !== undefined && { details: verdict.details }),
  };
  response.writeHead(verdict.status, headers).end(JSON.stringify(status));
}

/** Hop-by-hop headers stay here; no compression, so that streams stay readable. */
function forwarded(message: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (
      typeof value === 'string' &&
      !/^(host|connection|content-length|transfer-encoding|accept-encoding)$/.test(name)
    )
      headers[name] = value;
  }
  return headers;
}

function contentHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of ['content-type', 'retry-after']) {
    const value = headers[name];
    if (typeof value === 'string') kept[name] = value;
  }
  return kept;
}
