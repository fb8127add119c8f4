/** Responses of an API server: objects and lists, checked as far as the rest of the program relies on them, and errors as `StatusError`. */

import type { IncomingHttpHeaders } from 'node:http';
import {
  apiVersionOf,
  asObject,
  keyOf,
  metadataOf,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
  withLists,
} from '../object.ts';
import { isPlain } from '../../base/excerpt.ts';
import { isJsonObject, ownValue, text, type JsonObject, type JsonValue } from '../../base/json.ts';
import { MalformedResponseError, type ListOptions, type MalformedItem, type ObjectList } from '../types.ts';
import { NO_STATUS, StatusError, type Status, type StatusDetails } from '../status-error.ts';

/** The object that a request was about. */
interface RequestedObject {
  readonly resource: Resource;
  readonly key: NamespacedName;
  /** False for a dry run: nothing is stored, so that the response has no resourceVersion. */
  readonly isStored: boolean;
}

/**
 * The requested object: of that kind, name and namespace, with uid and resourceVersion. Throws `MalformedResponseError` for anything else, so
 * that the response of a misbehaving server or proxy never replaces what a cache holds.
 */
export function requireObject(value: JsonValue, { resource, key, isStored }: RequestedObject): KubeObject {
  const apiVersion = apiVersionOf(resource);
  const object = asAnyObject(value);
  const { metadata, ...rest } = object;
  const is = (actual: unknown, expected: string): boolean => actual === expected;
  const isIt =
    is(rest.apiVersion, apiVersion) &&
    is(rest.kind, resource.kind) &&
    is(metadata.name, key.name) &&
    is(metadata.namespace ?? '', key.namespace);
  if (!isIt) {
    const wanted = `${apiVersion} ${resource.kind} ${keyOf(key)}`;
    throw new MalformedResponseError(`the response is not the object ${wanted}: ${excerptOf(value)}`);
  }
  if (isStored && !(isText(metadata.uid) && isText(metadata.resourceVersion))) {
    const message = `the response has no uid or no resourceVersion: ${excerptOf(value)}`;
    throw new MalformedResponseError(message);
  }
  return withLists(object);
}

/** Checks the response to a deletion: a `Status` of success, or the deleted object. Throws `MalformedResponseError`. */
export function checkDeletion(value: JsonValue, deleted: RequestedObject): void {
  const isSuccess = isJsonObject(value) && value['kind'] === 'Status' && value['status'] === 'Success';
  if (!isSuccess) requireObject(value, deleted);
}

/**
 * Items of a list come without their type; it is added, so that they equal the same objects from a watch. Throws `MalformedResponseError`, for a
 * malformed item only without `leavesOutMalformed`.
 */
export function asList(
  value: JsonValue,
  resource: Resource,
  { leavesOutMalformed = false }: Pick<ListOptions, 'leavesOutMalformed'> = {},
): ObjectList {
  const metadata = isJsonObject(value) ? value['metadata'] : undefined;
  const items = isJsonObject(value) ? (value['items'] ?? []) : undefined;
  if (!isJsonObject(metadata) || !Array.isArray(items)) {
    throw new MalformedResponseError(`the response is not a list of ${resource.plural}: ${excerptOf(value)}`);
  }
  const apiVersion = apiVersionOf(resource);
  const objects: KubeObject[] = [];
  const malformed: MalformedItem[] = [];
  for (const item of items) {
    const why = problemOf(item);
    if (why !== undefined && !leavesOutMalformed) throw notAnObject(why, item);
    if (why !== undefined) {
      malformed.push({ key: readableKey(item), why });
      continue;
    }
    const object = asObject(item as JsonObject); // checked as far as anything relies on it
    object.apiVersion ??= apiVersion;
    object.kind ??= resource.kind;
    objects.push(withLists(object));
  }
  return {
    resourceVersion: text(metadata, 'resourceVersion'),
    continueToken: text(metadata, 'continue'),
    items: objects,
    ...(leavesOutMalformed ? { malformed } : {}),
  };
}

function asAnyObject(value: JsonValue): KubeObject {
  const why = problemOf(value);
  if (why !== undefined) throw notAnObject(why, value);
  return asObject(value as JsonObject); // checked as far as anything relies on it; the rest is raw JSON
}

function notAnObject(why: string, value: JsonValue): MalformedResponseError {
  return new MalformedResponseError(`the response is not a Kubernetes object: ${why}: ${excerptOf(value)}`);
}

/** What the rest of the program relies on, and an aggregated API server may not return; undefined: nothing is missing. */
export function problemOf(value: JsonValue | undefined): string | undefined {
  const metadata = isJsonObject(value) ? value['metadata'] : undefined;
  if (!isJsonObject(metadata)) return 'it has no metadata';
  if (!isText(metadata['name'])) return 'it has no metadata.name';
  for (const field of ['name', 'namespace', 'uid', 'resourceVersion']) {
    const value = metadata[field] ?? '';
    if (!isPlainText(value)) return `metadata.${field} is not a string, or has control characters`;
    if (value.length > IDENTITY_CHARS_MAX)
      return `metadata.${field} has more than ${IDENTITY_CHARS_MAX} characters`;
  }
  for (const field of ['labels', 'annotations'])
    if (!isTextMap(metadata[field] ?? {})) return `metadata.${field} is not a map of strings`;
  if (isDeeperThan(value, LEVELS_MAX)) return `it is nested deeper than ${LEVELS_MAX} levels`;
  return undefined;
}

/** What is written, compared and counted recursively, and `JSON.stringify` is, ends with the stack. Objects of Kubernetes have some ten. */
const LEVELS_MAX = 500;

function isDeeperThan(value: JsonValue | undefined, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const element of value) if (isDeeperThan(element, levels - 1)) return true;
    return false;
  }
  for (const key in value) {
    const member = value[key];
    // No call for each text of a large map.
    if (typeof member === 'object' && isDeeperThan(member, levels - 1)) return true;
  }
  return false;
}

/** Names have at most 253. Caches remember them, and uids longer than the object. */
const IDENTITY_CHARS_MAX = 512;

function isPlainText(value: JsonValue): value is string {
  return typeof value === 'string' && isPlain(value);
}

function isTextMap(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  // Of a large map, Object.values takes three times as long.
  for (const key in value) if (typeof value[key] !== 'string') return false;
  return true;
}

function readableKey(value: JsonValue): ObjectKey | undefined {
  const metadata = isJsonObject(value) ? metadataOf(value) : {};
  const name = text(metadata, 'name');
  return name === '' ? undefined : keyOf({ namespace: text(metadata, 'namespace'), name });
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Its first members, without what is in them: the whole value may be large, or nested too deep for `JSON.stringify`. */
function excerptOf(value: JsonValue): string {
  if (Array.isArray(value)) return '[…]';
  if (!isJsonObject(value)) return JSON.stringify(value).slice(0, EXCERPT_CHARS_MAX);
  const members: string[] = [];
  for (const key in value) {
    const member = value[key] ?? null;
    const isNested = typeof member === 'object' && member !== null;
    const shown = typeof member === 'string' ? member.slice(0, EXCERPT_CHARS_MAX) : member;
    members.push(
      `${JSON.stringify(key.slice(0, EXCERPT_CHARS_MAX))}:${isNested ? '…' : JSON.stringify(shown)}`,
    );
    if (members.length === EXCERPT_MEMBERS_MAX) break;
  }
  return `{${members.join(',')}}`.slice(0, EXCERPT_CHARS_MAX);
}

const EXCERPT_CHARS_MAX = 80;
const EXCERPT_MEMBERS_MAX = 5;

// Turns an error response into a `StatusError`, from the API server or from a proxy that sent a page of HTML.

const MESSAGE_CHARS_MAX = 300;
/** The part of a page of HTML that is read. */
const PAGE_CHARS_MAX = 4096;

/** Reasons of HTTP codes, as in `metav1.StatusReason`, that a proxy may give for an API server. None says anything of an object. */
const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

interface FailedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** `what` is the request for the message, `GET /api/v1/…`; `nowMs` is the wall clock, for a `Retry-After` that is a date. */
export function responseError(response: FailedResponse, what: string, nowMs: number): StatusError {
  const status = parseStatus(response.text, response.status) ?? describe(response, what);
  return new StatusError(status, { retryAfterMs: retryAfterMs(response.headers['retry-after'], nowMs) });
}

/** A `Status` document from a response or from an ERROR event of a watch; undefined for anything else. Texts of the server are cut. */
export function asStatus(value: unknown, code: number): Status | undefined {
  if (!isJsonObject(value) || value['kind'] !== 'Status') return undefined;
  const { message, reason, details, code: own } = value;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: value['status'] === 'Success' ? 'Success' : 'Failure',
    ...(typeof message === 'string' && { message: cut(message, TEXT_CHARS_MAX) }),
    ...(typeof reason === 'string' && { reason: cut(reason, WORD_CHARS_MAX) }),
    ...(isJsonObject(details) && { details: asDetails(details) }),
    code: typeof own === 'number' ? own : code,
  };
}

/** Where texts of servers become errors, which are logged, and reported in Events. */
const TEXT_CHARS_MAX = 2048;
const WORD_CHARS_MAX = 256;
const CAUSES_MAX = 10;

function asDetails(details: JsonObject): StatusDetails {
  const { causes, retryAfterSeconds } = details;
  return {
    ...words(details, ['name', 'group', 'kind', 'uid']),
    ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }),
    ...(Array.isArray(causes) && {
      causes: causes.slice(0, CAUSES_MAX).map((cause) => words(cause, ['reason', 'message', 'field'])),
    }),
  };
}

function words<Field extends string>(
  value: JsonValue,
  fields: readonly Field[],
): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  if (!isJsonObject(value)) return found;
  for (const field of fields) {
    const word = ownValue(value, field);
    if (typeof word === 'string') found[field] = cut(word, WORD_CHARS_MAX);
  }
  return found;
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
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
    reason: REASONS[status] ?? (status >= 500 ? 'InternalError' : NO_STATUS),
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
