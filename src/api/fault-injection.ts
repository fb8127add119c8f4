/** Does to a request what an interceptor of a test asks for. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { sleep, type Clock } from '../lib/clock.ts';
import type { StatusError } from '../kube/status-error.ts';
import type { Fault, InterceptedRequest } from './faults.ts';
import { verbOf, type ResourcePath } from './request-info.ts';
import { failure } from './status.ts';

export interface Interception {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: ResourcePath | undefined;
  readonly query: URLSearchParams;
  readonly bytes: Buffer;
}

export function intercepted({ request, path, query, bytes }: Interception): InterceptedRequest {
  const { group = '', resource = '', subresource = '', namespace = '', name = '' } = path ?? {};
  const { method = '', url = '/' } = request;
  return {
    method,
    url,
    verb: (path && verbOf(method, path, query)) ?? '',
    group,
    resource,
    subresource,
    namespace,
    name,
    body: bytes.toString('utf8'),
  };
}

/** `ended`: there is nothing more to do. Throws the `StatusError` that the fault wants to be answered. */
export async function suffer(
  fault: Fault,
  { response }: Pick<Interception, 'response'>,
  clock: Clock,
): Promise<'goes on' | 'ended'> {
  if (fault === 'reset-after-commit') return 'goes on';
  if (fault === 'drop') {
    response.destroy();
    return 'ended';
  }
  if ('delayMs' in fault) {
    await sleep(clock, fault.delayMs, new AbortController().signal);
    return 'goes on';
  }
  throw injected(fault);
}

function injected(fault: Extract<Fault, { status: number }>): StatusError {
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
