/** One HTTP request on its way through the server, with its response. */

import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { Verb } from '../objects/resource-definition.ts';
import type { RequestRecord } from '../request/audit-event.ts';
import { parseResourcePath, verbOf, type ResourcePath, type ServerPath } from '../request/request-info.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The path of the URL as it was sent. */
  readonly fullPath: string;
  readonly query: URLSearchParams;
  /** Undefined: the path belongs to no prefix of this server. */
  readonly split: ServerPath | undefined;
  /** Undefined for a non-resource request. */
  readonly path: ResourcePath | undefined;
  readonly verb: Verb | undefined;
  readonly record: RequestRecord;
  /** Monotonic. */
  readonly startedMs: number;
}

export interface ExchangeOptions {
  readonly clock: Clock;
  readonly isAudited: boolean;
  splitPath(path: string): ServerPath | undefined;
}

export function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  options: ExchangeOptions,
): Exchange {
  const { clock, isAudited } = options;
  const { method = '', url = '/', headers, socket } = request;
  const at = url.indexOf('?');
  const fullPath = at < 0 ? url : url.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const split = options.splitPath(fullPath);
  const path = split && parseResourcePath(split.path);
  const verb = path && verbOf(method, path, query);
  const record: RequestRecord = {
    id: isAudited ? randomUUID() : '',
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

/** The rest of a rejected body is read up to this size, so that the client can read the response. */
const DISCARDED_BODY_BYTES_MAX = 64 * 1024 * 1024;

/** Whether the connection closes after this response: the client asked for another protocol, or sends a body too large to discard. */
export function closesConnection({ headers, complete }: IncomingMessage): boolean {
  if (headers.upgrade !== undefined) return true;
  return !complete && Number(headers['content-length'] ?? 0) > DISCARDED_BODY_BYTES_MAX;
}

/**
 * Ignoring these headers would give all rights of the credential to a client that gave up rights, such as a proxy with an administrator's
 * credential. Discovery ignores them: its content does not depend on the user, and kubectl does not show why discovery failed.
 */
export function requestsImpersonation(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true;
  return false;
}

/** Without parameters, in lower case; `''` without the header. */
export function mediaType(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
