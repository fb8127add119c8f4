/** Injects faults of networks and overloaded servers at the HTTP boundary, for tests. */

import { IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { sleep, type Clock } from '../base/clock.ts';
import { plainHeaders, statusResponse } from '../apiserver/request/api-response.ts';
import type { RequestListener } from '../apiserver/http/http-server.ts';
import type { Verb } from '../apiserver/objects/resource-definition.ts';
import { parseResourcePath, verbOf } from '../apiserver/request/request-info.ts';
import { failure } from '../kube/status-error.ts';

export interface InterceptedRequest {
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

/** A listener that calls `interceptor` before `serve`. */
export function withFaults(
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
    sendStatus(response, fault);
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

export function sendStatus(response: ServerResponse, fault: Extract<Fault, { status: number }>): void {
  const { status, reason, message, retryAfterSeconds } = fault;
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const body = statusResponse(
    failure(status, reason ?? reasonOf(status), message ?? 'an injected fault', details),
  );
  const bytes = Buffer.byteLength(body.body);
  response.writeHead(body.code, { ...plainHeaders(body.headers), 'content-length': bytes });
  response.end(body.body);
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
