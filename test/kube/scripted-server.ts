/** An API server whose response to each request is scripted by the test. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listen } from '../support/listen.ts';

export interface SeenRequest {
  /** `version`: a list of one object, which shows the server's version. */
  readonly kind: 'list' | 'version' | 'watch' | 'other';
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
}

export type Step = (response: ServerResponse, request: SeenRequest) => void;

/** Answers lists and watches from two queues of steps; a request without a step waits until there is one. */
export class ScriptedServer implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly #server: Server;
  readonly #steps: Record<SeenRequest['kind'], Step[]> = { list: [], version: [], watch: [], other: [] };
  readonly #waiting: Record<SeenRequest['kind'], (() => void)[]> = {
    list: [],
    version: [],
    watch: [],
    other: [],
  };

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<ScriptedServer> {
    const scripted = new ScriptedServer();
    await listen(scripted.#server);
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  on(kind: SeenRequest['kind'], ...steps: Step[]): this {
    this.#steps[kind].push(...steps);
    this.#waiting[kind].splice(0).forEach((resume) => resume());
    return this;
  }

  /** False: a list of one object needs a step. */
  tellsNoVersion = true;

  count(kind: SeenRequest['kind']): number {
    return this.seen.filter((request) => request.kind === kind).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://scripted');
    const isCollection = url.pathname.endsWith('/endpoints') && request.method === 'GET';
    const kind = isCollection ? collectionRequest(url.searchParams) : 'other';
    const seen: SeenRequest = { kind, url, headers: request.headers };
    this.seen.push(seen);
    request.resume();
    if (kind === 'version' && this.tellsNoVersion) return list('', [])(response, seen);
    const attempt = (): void => {
      const step = this.#steps[kind].shift();
      if (step === undefined) this.#waiting[kind].push(attempt);
      else step(response, seen);
    };
    attempt();
  }
}

function collectionRequest(parameters: URLSearchParams): SeenRequest['kind'] {
  if (parameters.has('watch')) return 'watch';
  return parameters.get('limit') === '1' ? 'version' : 'list';
}

export interface Item {
  name: string;
  uid?: string;
  version: number | string;
  annotations?: Record<string, string>;
}

export function objectOf(item: Item): object {
  return {
    // In the order of a kube-apiserver.
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: {
      name: item.name,
      namespace: 'default',
      uid: item.uid ?? `uid-${item.name}`,
      resourceVersion: String(item.version),
      ...(item.annotations === undefined ? {} : { annotations: item.annotations }),
    },
  };
}

export function eventLine(type: string, item: Item): string {
  return `${JSON.stringify({ type, object: objectOf(item) })}\n`;
}

export function bookmarkLine(version: number | string): string {
  return `${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Endpoints', metadata: { resourceVersion: String(version) } } })}\n`;
}

export function errorLine(code: number, reason: string): string {
  return `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', status: 'Failure', code, reason, message: reason } })}\n`;
}

/** A complete list, or one page of it. */
export function list(version: number | string, items: readonly Item[], continueToken = ''): Step {
  return (response) => {
    const metadata = {
      resourceVersion: String(version),
      ...(continueToken === '' ? {} : { continue: continueToken }),
    };
    const stripped = items.map((item) => {
      const { metadata: own } = objectOf(item) as { metadata: object };
      return { metadata: own };
    });
    json(response, 200, { kind: 'EndpointsList', apiVersion: 'v1', metadata, items: stripped });
  };
}

/** A watch that sends these lines and stays open. */
export function watch(...lines: readonly string[]): Step {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const line of lines) response.write(line);
  };
}

/** A watch that sends these lines and then ends as announced. */
export function endedWatch(...lines: readonly string[]): Step {
  return (response, request) => {
    watch(...lines)(response, request);
    response.end();
  };
}

/** A watch whose connection is reset after these bytes. */
export function cutWatch(...lines: readonly string[]): Step {
  return (response, request) => {
    watch(...lines)(response, request);
    setImmediate(() => response.socket?.resetAndDestroy());
  };
}

export function refuse(
  code: number,
  reason: string,
  headers: Record<string, string> = {},
  details: object = {},
): Step {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason };
  return (response) => json(response, code, { ...status, message: reason, details }, headers);
}

/** The page of a proxy when the API server is away. */
export function htmlPage(code: number): Step {
  return (response) =>
    response
      .writeHead(code, { 'content-type': 'text/html' })
      .end('<html><head><style>b{}</style></head><body><h1>Bad gateway</h1><p>try later</p></body></html>');
}

export function raw(code: number, body: string): Step {
  return (response) => response.writeHead(code, { 'content-type': 'application/json' }).end(body);
}

export const hangUp: Step = (response) => response.socket?.resetAndDestroy();

function json(
  response: ServerResponse,
  code: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
