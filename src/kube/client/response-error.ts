/** Turns an error response into a `StatusError`, from the API server or from a proxy that sent a page of HTML. */

import type { IncomingHttpHeaders } from 'node:http';
import { StatusError, type Status } from '../status-error.ts';
import { isJsonObject } from '../../base/json.ts';

const MESSAGE_CHARS_MAX = 300;
/** The part of a page of HTML that is read. */
const PAGE_CHARS_MAX = 4096;

/** Reasons of HTTP codes, as in `metav1.StatusReason`. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

export interface FailedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** `what` is the request for the message, `GET /api/v1/…`; `nowMs` is the wall clock, for a `Retry-After` that is a date. */
export function responseError(response: FailedResponse, what: string, nowMs: number): StatusError {
  const status = parseStatus(response.text, response.status) ?? describe(response, what);
  return new StatusError(status, { retryAfterMs: retryAfterMs(response.headers['retry-after'], nowMs) });
}

/** A `Status` document from a response or from an ERROR event of a watch; undefined for anything else. */
export function asStatus(value: unknown, code: number): Status | undefined {
  if (!isJsonObject(value) || value['kind'] !== 'Status') return undefined;
  const status = value as unknown as Status; // its kind is checked; all fields are optional
  return typeof status.code === 'number' ? status : { ...status, code };
}

function parseStatus(text: string, code: number): Status | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return asStatus(JSON.parse(text), code);
  } catch {
    return undefined; // not JSON: described like an HTML page
  }
}

function describe({ status, text }: FailedResponse, what: string): Status {
  const plain = text
    .slice(0, PAGE_CHARS_MAX)
    .replace(/<(script|style)[^]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const excerpt = plain.slice(0, MESSAGE_CHARS_MAX);
  // Loaded without an import, see src/base/health.ts.
  const phrase = process.getBuiltinModule('node:http').STATUS_CODES[status] ?? 'an unknown status';
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: REASONS[status] ?? (status >= 500 ? 'InternalError' : 'Unknown'),
    code: status,
    message: `the response to ${what} is ${status} ${phrase} without a Kubernetes Status${excerpt === '' ? '' : `: ${excerpt}`}`,
  };
}

/** `Sun, 06 Nov 1994 08:49:37 GMT` and its two obsolete forms. `Date.parse` alone takes `-5` for a date. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/** Seconds or an HTTP date, see RFC 9110 10.2.3; undefined for anything else. */
function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
