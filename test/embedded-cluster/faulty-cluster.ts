/** An embedded cluster with faults of networks and overloaded servers, injected at the HTTP boundary. */

import { IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { sleep, systemClock, type Clock } from '../../src/base/clock.ts';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
  type EmbeddedClusterOptions,
} from '../../src/embedded-cluster/embedded-cluster.ts';
import { sendStatus, type RequestListener } from '../../src/apiserver/http/http-server.ts';
import type { Verb } from '../../src/apiserver/objects/resource-definition.ts';
import { parseResourcePath, verbOf } from '../../src/apiserver/request/request-info.ts';
import { failure, type StatusError } from '../../src/kube/status-error.ts';

interface InterceptedRequest {
  readonly method: string;
  /** Path and query as the client sent them. */
  readonly url: string;
  /** Empty for a non-resource request. */
  readonly verb: Verb | '';
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly body: string;
}

export type Fault =
  /** Responds immediately with a Status; the request is not served. */
  | {
      readonly status: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
    }
  /** Closes the connection; the request is not served. */
  | 'drop'
  /** Serves the request, then resets the connection: the response is lost. */
  | 'reset-after-commit'
  /** Waits, then serves the request. */
  | { readonly delayMs: number };

/** Called before every request; undefined serves it. */
export type Interceptor = (request: InterceptedRequest) => Fault | undefined;

export interface FaultyCluster extends EmbeddedCluster {
  /** Replaces the faults; undefined: no faults. */
  intercept(interceptor: Interceptor | undefined): void;
}

export async function startFaultyCluster(options: EmbeddedClusterOptions): Promise<FaultyCluster> {
  let interceptor: Interceptor | undefined;
  const clock = options.clock ?? systemClock;
  const cluster = await startEmbeddedCluster({
    ...options,
    wrapListener: (serve) => withFaults(serve, () => interceptor, clock),
  });
  return { ...cluster, intercept: (next) => (interceptor = next) };
}

/** A listener that calls `interceptor` before `serve`. */
function withFaults(
  serve: RequestListener,
  interceptor: () => Interceptor | undefined,
  clock: Clock,
): RequestListener {
  return (request, response) => {
    const intercept = interceptor();
    if (!intercept) serve(request, response);
    else void interceptOne({ request, response }, intercept, serve, clock);
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function interceptOne(
  { request, response }: Exchange,
  intercept: Interceptor,
  serve: RequestListener,
  clock: Clock,
): Promise<void> {
  const body = await buffer(request).catch(() => undefined);
  // The client has gone.
  if (body === undefined) return;
  const fault = intercept(intercepted(request, body));
  if (fault === 'drop') {
    response.destroy();
    return;
  }
  if (fault !== undefined && typeof fault !== 'string' && 'status' in fault) {
    sendStatus(response, errorOf(fault));
    return;
  }
  if (fault === 'reset-after-commit') resetInsteadOfResponse(request, response);
  else if (fault) await sleep(clock, fault.delayMs, new AbortController().signal);
  serve(withBody(request, body), response);
}

function intercepted({ method = '', url = '/' }: IncomingMessage, body: Buffer): InterceptedRequest {
  const at = url.indexOf('?');
  const path = parseResourcePath(at < 0 ? url : url.slice(0, at));
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const { group = '', resource = '', subresource = '', namespace = '', name = '' } = path ?? {};
  const verb = (path && verbOf(method, path, query)) ?? '';
  return { method, url, verb, group, resource, subresource, namespace, name, body: body.toString('utf8') };
}

/** The request again, with the body that was read from it. */
function withBody(request: IncomingMessage, body: Buffer): IncomingMessage {
  const { method, url, httpVersion, rawHeaders, headers, complete } = request;
  const again = new IncomingMessage(request.socket);
  Object.assign(again, { method, url, httpVersion, rawHeaders, headers, complete });
  again.push(body);
  again.push(null);
  return again;
}

/** The first byte of a response becomes a reset of the connection. */
function resetInsteadOfResponse(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead = () => {
    request.socket.resetAndDestroy();
    return response;
  };
}

function errorOf(fault: Extract<Fault, { status: number }>): StatusError {
  const { status, reason, message, retryAfterSeconds } = fault;
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return failure(status, reason ?? reasonOf(status), message ?? 'an injected fault', details);
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
