/** `/healthz`, `/readyz[?verbose]` and `/metrics` over plain HTTP. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseBindAddress } from './bind-address.ts';
import { TerminalError, messageOf } from './errors.ts';
import type { Logger } from './logger.ts';

/** Current result of one check. */
export interface CheckResult {
  readonly isOk: boolean;
  /** One line: why the check failed, or details. */
  readonly detail?: string;
}

/** Checks by name, in the order in which they are shown. They run per request and must be cheap. */
export type Checks = Readonly<Record<string, () => CheckResult>>;

export interface HealthServerOptions {
  /** `host:port`; port 0 takes a free one. An IPv6 host stands in brackets. */
  bindAddress: string;
  /** Whether the process is alive, that is, need not be restarted. */
  healthChecks: Checks;
  /** Whether the process is ready. Called for each request, because checks are added after the start. */
  readyChecks: () => Checks;
  metrics: { text(): Promise<string>; readonly contentType: string };
  logger: Logger;
}

export interface HealthServer extends AsyncDisposable {
  /** `http://host:port`, as bound. */
  readonly url: string;
}

const REQUEST_TIMEOUT_MS = 5000;
const CONNECTIONS_MAX = 64;

/** Listens. Rejects with a `TerminalError` when the address is taken or not ours. */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  // Importing node:http by name evaluates all that it exports, fetch included: 5 MiB that this does not need.
  const { createServer } = process.getBuiltinModule('node:http');
  const server = createServer((request, response) => {
    respond(options, request, response).catch((error: unknown) => {
      options.logger.error({ err: error, url: request.url }, 'health request failed');
      send(response, 500, 'internal error\n');
    });
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = CONNECTIONS_MAX;
  const address = parseBindAddress(options.bindAddress);
  if (address === undefined)
    throw new TerminalError(`http.bindAddress ${options.bindAddress} is not HOST:PORT`);
  const { host, port } = address;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const message = `cannot listen on http.bindAddress ${options.bindAddress}: ${error.message}; choose a free address`;
      reject(new TerminalError(message, { cause: error }));
    });
    // Without a host Node listens on IPv6 and IPv4, or on IPv4 alone where the machine has no IPv6.
    server.listen(host === '' ? { port } : { host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
  server.on('error', (error) => options.logger.error({ err: error }, 'health server failed'));
  server.unref(); // the health server alone does not keep the process alive
  const bound = server.address() as AddressInfo; // a TCP server that listens has one
  const shownHost = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${shownHost}:${bound.port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function respond(
  options: HealthServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    send(response, 405, 'method not allowed\n');
    return;
  }
  // `//` is a target that clients may send, and no URL.
  const [path, query] = (request.url ?? '/').split('?', 2);
  const isVerbose = new URLSearchParams(query).has('verbose');
  switch (path) {
    case '/healthz':
    case '/livez':
      sendChecks(response, 'healthz', options.healthChecks, isVerbose);
      return;
    case '/readyz':
      sendChecks(response, 'readyz', options.readyChecks(), isVerbose);
      return;
    case '/metrics':
      response.setHeader('content-type', options.metrics.contentType);
      send(response, 200, await options.metrics.text());
      return;
    default:
      send(response, 404, 'not found; there are /healthz, /readyz and /metrics\n');
  }
}

/** Kubernetes' own form: `[+]name ok`, `[-]name failed: why`. A failed check shows all of them. */
function sendChecks(response: ServerResponse, name: string, checks: Checks, isVerbose: boolean): void {
  const results = Object.entries(checks).map(([check, run]) => ({ check, ...runCheck(run) }));
  const isOk = results.every((result) => result.isOk);
  if (isOk && !isVerbose) {
    send(response, 200, 'ok\n');
    return;
  }
  const lines = results.map(({ check, isOk: isGood, detail }) => {
    const verdict = isGood ? `[+]${check} ok` : `[-]${check} failed`;
    return detail === undefined ? verdict : `${verdict}: ${detail}`;
  });
  lines.push(`${name} check ${isOk ? 'passed' : 'failed'}`);
  send(response, isOk ? 200 : 503, `${lines.join('\n')}\n`);
}

function runCheck(run: () => CheckResult): CheckResult {
  try {
    return run();
  } catch (error) {
    return { isOk: false, detail: messageOf(error) };
  }
}

function send(response: ServerResponse, status: number, body: string): void {
  if (response.headersSent) return;
  if (!response.hasHeader('content-type')) response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.setHeader('x-content-type-options', 'nosniff');
  response.writeHead(status).end(body);
}
