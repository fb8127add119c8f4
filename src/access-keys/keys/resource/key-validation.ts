/** What the spec of a key must be like, on create and when it changes. */

import {
  invalidValue,
  requiredValue,
  tooLong,
  unsupportedValue,
  type FieldError,
} from '../../../apiserver/field-error.ts';
import { listField, objectField, text } from '../../../apiserver/validation/metadata.ts';
import { isJsonObject, jsonEquals, type JsonObject } from '../../../base/json.ts';
import { validateScope } from '../../authorization/scope/scope-validation.ts';
import { suppliedKeyProblem } from '../../credentials/access-key.ts';

/** The first is what empty text stands for. */
export const KEY_TYPES_ALLOWED = [
  'User',
  'Login',
  'Other',
  'Reset',
  'OIDCRefreshToken',
  'NetworkPeer',
  'Workspace',
];

const SUBJECT_FIELDS = ['user', 'team', 'subject'] as const;
const SUBJECT_LENGTH_MAX = 253;
export const DISPLAY_NAME_BYTES_MAX = 1024;
export const DESCRIPTION_BYTES_MAX = 16 * 1024;
export const GROUPS_MAX = 256;

export interface KeyLimits {
  /** Longest `spec.ttl` in seconds; 0: no maximum. */
  readonly maxTtlSeconds: number;
}

export interface KeyWrite {
  readonly next: JsonObject;
  readonly previous: JsonObject | undefined;
  readonly nowMs: number;
}

export function validateKey({ next, previous, nowMs }: KeyWrite, limits: KeyLimits): FieldError[] {
  const spec = objectField(next, 'spec');
  const before = previous && objectField(previous, 'spec');
  return [
    ...(before ? changeErrors(spec, before) : missingErrors(spec)),
    ...subjectErrors(spec),
    ...ttlErrors(spec, before, limits),
    ...typeErrors(spec),
    ...textErrors(spec),
    ...groupErrors(spec),
    ...scopeErrors(spec),
    ...activityErrors(next, previous, nowMs),
  ];
}

/** Also the key itself, which the server has made by now if the client brought none. */
function missingErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  if (text(spec, 'displayName') === '') errors.push(requiredValue('spec.displayName'));
  if (spec['ttl'] === undefined) {
    errors.push(requiredValue('spec.ttl', 'seconds that the key lives; 0 means that it never expires'));
  }
  if (spec['type'] === undefined)
    errors.push(requiredValue('spec.type', 'User for a key that a person manages'));
  if (subjectsOf(spec).length === 0) {
    errors.push(requiredValue('spec.user', 'one of user, team and subject must say who the key speaks for'));
  }
  const problem = suppliedKeyProblem(text(spec, 'key'));
  return problem === undefined ? errors : [...errors, keyError(problem)];
}

function changeErrors(spec: JsonObject, before: JsonObject): FieldError[] {
  const errors = [...SUBJECT_FIELDS, 'type']
    .filter((field) => !jsonEquals(spec[field], before[field]))
    .map((field) => invalidValue(`spec.${field}`, spec[field] ?? '', 'field is immutable'));
  if (spec['key'] === undefined) return errors;
  return [...errors, keyError('field is immutable: POST to the subresource rotate for a new secret')];
}

/** Never says the value, as other messages do. */
export function keyError(problem: string): FieldError {
  return { reason: 'FieldValueInvalid', field: 'spec.key', message: `Invalid value: ${problem}` };
}

function subjectsOf(spec: JsonObject): string[] {
  return SUBJECT_FIELDS.filter((field) => text(spec, field) !== '');
}

function subjectErrors(spec: JsonObject): FieldError[] {
  const given = subjectsOf(spec);
  const errors = given.flatMap((field) => nameErrors(text(spec, field), `spec.${field}`));
  if (given.length < 2) return errors;
  const detail = 'only one of user, team and subject may be set';
  return [invalidValue('spec', given.join(', '), detail), ...errors];
}

/** Names of users and groups: anything that can be printed, as `system:node:a` or `a@example.com`. */
function nameErrors(name: string, field: string): FieldError[] {
  if (name === '') return [invalidValue(field, name, 'must not be empty')];
  if (name.length > SUBJECT_LENGTH_MAX) return [tooLong(field, SUBJECT_LENGTH_MAX)];
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name)) {
    return [invalidValue(field, name, 'must not contain control characters or line breaks')];
  }
  if (name.trim() !== name) return [invalidValue(field, name, 'must not begin or end with a space')];
  return [];
}

/** A key that was made under a larger maximum may stay as it is. */
function ttlErrors(
  spec: JsonObject,
  before: JsonObject | undefined,
  { maxTtlSeconds }: KeyLimits,
): FieldError[] {
  const ttl = spec['ttl'];
  if (ttl === undefined && !before) return [];
  if (before && jsonEquals(ttl, before['ttl'])) return [];
  const seconds = typeof ttl === 'number' ? ttl : 0;
  if (seconds < 0) return [invalidValue('spec.ttl', ttl, 'must be greater than or equal to 0')];
  if (maxTtlSeconds === 0 || (seconds > 0 && seconds <= maxTtlSeconds)) return [];
  const detail = `must be from 1 to ${maxTtlSeconds} (seconds), the longest that this server allows`;
  return [invalidValue('spec.ttl', seconds, detail)];
}

function typeErrors(spec: JsonObject): FieldError[] {
  const { type } = spec;
  if (typeof type !== 'string' || KEY_TYPES_ALLOWED.includes(type)) return [];
  return [unsupportedValue('spec.type', type, KEY_TYPES_ALLOWED)];
}

function textErrors(spec: JsonObject): FieldError[] {
  const limits = { displayName: DISPLAY_NAME_BYTES_MAX, description: DESCRIPTION_BYTES_MAX };
  return Object.entries(limits)
    .filter(([field, bytesMax]) => Buffer.byteLength(text(spec, field)) > bytesMax)
    .map(([field, bytesMax]) => tooLong(`spec.${field}`, bytesMax));
}

function groupErrors(spec: JsonObject): FieldError[] {
  const groups = listField(spec, 'groups');
  if (groups.length > GROUPS_MAX) {
    const message = `Too many: ${groups.length}: must have at most ${GROUPS_MAX} items`;
    return [{ reason: 'FieldValueTooMany', field: 'spec.groups', message }];
  }
  return groups.flatMap((group, index) =>
    nameErrors(typeof group === 'string' ? group : '', `spec.groups[${index}]`),
  );
}

function scopeErrors(spec: JsonObject): FieldError[] {
  const { scope } = spec;
  return isJsonObject(scope) ? validateScope(scope, 'spec.scope') : [];
}

/** A use that has not happened yet would keep a key alive for ever. */
function activityErrors(next: JsonObject, previous: JsonObject | undefined, nowMs: number): FieldError[] {
  const field = 'lastActivity';
  const time = text(objectField(next, 'status'), field);
  if (time === '' || time === text(objectField(previous ?? {}, 'status'), field)) return [];
  if (Date.parse(time) <= nowMs) return [];
  return [invalidValue(`status.${field}`, time, 'must not be in the future')];
}
