/** Error responses in the words of a kube-apiserver. */

import { failure, type StatusDetails, type StatusError } from '../kube/status-error.ts';
import { FIELD_PROBLEMS_MAX } from './limits.ts';

/** The group and resource that a Status names; some errors name the kind instead of the plural resource, as in a kube-apiserver. */
export interface GroupName {
  readonly group: string;
  readonly resource: string;
}

/** `endpoints`, `leases.coordination.k8s.io`. */
export function qualified({ group, resource }: GroupName): string {
  return group === '' ? resource : `${resource}.${group}`;
}

function detailsOf(of: GroupName, name: string): StatusDetails {
  const details: StatusDetails = {};
  if (name !== '') details.name = name;
  if (of.group !== '') details.group = of.group;
  details.kind = of.resource;
  return details;
}

export function badRequest(message: string): StatusError {
  return failure(400, 'BadRequest', message);
}

export function notFound(of: GroupName, name: string): StatusError {
  return failure(404, 'NotFound', `${qualified(of)} "${name}" not found`, detailsOf(of, name));
}

/** This server serves nothing at the URL. */
export function noSuchResource(): StatusError {
  return failure(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function alreadyExists(of: GroupName, name: string): StatusError {
  return failure(409, 'AlreadyExists', `${qualified(of)} "${name}" already exists`, detailsOf(of, name));
}

export function nameExhausted(of: GroupName, name: string): StatusError {
  return failure(
    409,
    'AlreadyExists',
    `${qualified(of)} "${name}" already exists, the server was not able to generate a unique name for the object`,
    { ...detailsOf(of, name), retryAfterSeconds: 1 },
  );
}

export function stillDeleting(of: GroupName, name: string): StatusError {
  return failure(
    409,
    'AlreadyExists',
    `object is being deleted: ${qualified(of)} "${name}" already exists`,
    detailsOf(of, name),
  );
}

export const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(of: GroupName, name: string, why: string): StatusError {
  return failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(of)} "${name}": ${why}`,
    detailsOf(of, name),
  );
}

export function methodNotAllowed(): StatusError {
  return failure(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  );
}

export function forbidden(of: GroupName, name: string, why: string): StatusError {
  const named = name === '' ? '' : ` "${name}"`;
  return failure(403, 'Forbidden', `${qualified(of)}${named} is forbidden: ${why}`, detailsOf(of, name));
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  return failure(
    406,
    'NotAcceptable',
    `only the following media types are accepted: ${accepted.join(', ')}`,
    {},
  );
}

export function entityTooLarge(why: string): StatusError {
  return failure(413, 'RequestEntityTooLarge', `Request entity too large: ${why}`);
}

export function tooLarge(limitBytes: number): StatusError {
  return entityTooLarge(`limit is ${limitBytes}`);
}

export function urlTooLong(limitBytes: number): StatusError {
  return failure(
    414,
    'RequestURITooLong',
    `the URL of the request is too long: limit is ${limitBytes} bytes`,
  );
}

export function headersTooLarge(limit: string): StatusError {
  return failure(
    431,
    'RequestHeaderFieldsTooLarge',
    `the headers of the request are too large: limit is ${limit}`,
  );
}

export function requestTimeout(): StatusError {
  return failure(408, 'Timeout', 'the request was not sent in time');
}

export function expectationFailed(): StatusError {
  return failure(417, 'ExpectationFailed', 'the server supports no expectation except 100-continue');
}

export function tooManyRequests(message: string, retryAfterSeconds = 1): StatusError {
  return failure(429, 'TooManyRequests', message, { retryAfterSeconds });
}

/** The history no longer contains the revision: the client must list again. */
export function expired(message: string): StatusError {
  return failure(410, 'Expired', message);
}

export function tooLargeResourceVersion(asked: number, current: number): StatusError {
  return failure(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    retryAfterSeconds: 1,
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
  });
}

/** The store is not available: nothing was done, and a retry may succeed. */
export function storeUnavailable(message: string): StatusError {
  return failure(503, 'ServiceUnavailable', message, { retryAfterSeconds: 1 });
}

/** An error of this server: the cause is in the log, not in the response. */
export function internalError(): StatusError {
  return failure(500, 'InternalError', 'Internal error occurred: see the server log', {
    causes: [{ message: 'see the server log' }],
  });
}

/** 422 with one cause per field; `of.resource` is the kind here. */
export function invalid(of: GroupName, name: string, errors: readonly FieldError[]): StatusError {
  const shown = errors.slice(0, FIELD_PROBLEMS_MAX);
  const texts = [...new Set(shown.map((error) => `${error.field}: ${error.message}`))];
  if (shown.length < errors.length) texts.push(`and ${errors.length - shown.length} more`);
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  return failure(422, 'Invalid', `${qualified(of)} "${name}" is invalid: ${list}`, {
    ...detailsOf(of, name),
    causes: shown.map(({ reason, message, field }) => ({ reason, message, field })),
  });
}

// Validation errors of single fields, in the words of a kube-apiserver.

export interface FieldError {
  readonly reason:
    | 'FieldValueInvalid'
    | 'FieldValueRequired'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueDuplicate'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany';
  /** `subsets[0].ports[1].name` */
  readonly field: string;
  readonly message: string;
  /** Of the entry of a map, where `field` is the map. Not part of a `Status`. */
  readonly key?: string;
}

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${shown(value)}: ${detail}` };
}

export function problemErrors(field: string, value: unknown, problem: string | undefined): FieldError[] {
  return problem === undefined ? [] : [invalidValue(field, value, problem)];
}

/** The errors of the items of a list, each with its path. */
export function itemErrors<Item>(
  items: readonly Item[],
  path: string,
  errorsOf: (item: Item, path: string) => FieldError[],
): FieldError[] {
  return items.flatMap((item, index) => errorsOf(item, `${path}[${index}]`));
}

export function requiredValue(field: string, detail = ''): FieldError {
  const message = detail === '' ? 'Required value' : `Required value: ${detail}`;
  return { reason: 'FieldValueRequired', field, message };
}

export function unsupportedValue(field: string, value: unknown, supported: readonly string[]): FieldError {
  const values = supported.map((text) => JSON.stringify(text)).join(', ');
  return {
    reason: 'FieldValueNotSupported',
    field,
    message: `Unsupported value: ${shown(value)}: supported values: ${values}`,
  };
}

export function forbiddenValue(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${detail}` };
}

export function duplicateValue(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${shown(value)}` };
}

export function tooLong(field: string, bytesMax: number): FieldError {
  return {
    reason: 'FieldValueTooLong',
    field,
    message: `Too long: may not be more than ${bytesMax} bytes`,
  };
}

export function tooManyItems(field: string, count: number, max: number): FieldError {
  const message = `Too many: ${count}: must have at most ${max} items`;
  return { reason: 'FieldValueTooMany', field, message };
}

/** Characters of a value or a path that a message quotes. */
const SHOWN_MAX = 1024;

function shown(value: unknown): string {
  if (typeof value !== 'string') return shortened(JSON.stringify(value) ?? 'null');
  // Go quotes control characters as \x01 where JSON has \u0001.
  return JSON.stringify(shortened(value)).replaceAll(/\\u00([0-9a-f]{2})/g, '\\x$1');
}

export function shortened(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
}
