/** What the query of a request asks for: lists and watches, writes, and the parsing of integers and booleans as a kube-apiserver does it. */

import { type StringMap, metadataOf } from '../../kube/object.ts';
import { exactInteger, type JsonObject, type JsonValue, objectField, text } from '../../base/json.ts';
import type { StoredEntry, StoreRange } from '../storage/store.ts';
import { currentForm, type Target, type ResourceDefinition } from './resource-definition.ts';
import { type LabelPredicate, parseLabelSelector, SelectorError } from '../../kube/label-selector.ts';
import {
  badRequest,
  invalid,
  type FieldError,
  forbiddenValue,
  unsupportedValue,
  invalidValue,
  requiredValue,
  tooLong,
} from '../status.ts';
import { GRACE_SECONDS_MAX } from '../limits.ts';
import type { FieldValidation } from '../schema/decode.ts';

export interface ListQuery {
  readonly range: StoreRange;
  readonly hasSelector: boolean;
  matches(entry: StoredEntry): boolean;
  /** `''`: the newest; `0`: any. */
  readonly resourceVersion: string;
  /** At exactly this revision, not at a newer one. */
  readonly isExact: boolean;
  /** 0: no limit. */
  readonly limit: number;
  readonly continueToken: string;
}

const BASE_FIELDS = ['metadata.name', 'metadata.namespace'];

export type Collection = Pick<Target, 'definition' | 'namespace' | 'isVisible'>;

export function parseListQuery(
  { definition, namespace, isVisible }: Collection,
  query: URLSearchParams,
  isWatch = false,
): ListQuery {
  rejectInvalidListOptions(query, isWatch);
  integerIn(query, 'timeoutSeconds');
  const labelText = query.get('labelSelector') ?? '';
  const fieldText = query.get('fieldSelector') ?? '';
  const labels = labelPredicate(labelText);
  const fields = parseFieldSelector(fieldText, [...BASE_FIELDS, ...Object.keys(definition.selectableFields)]);
  const limit = Math.max(0, integerIn(query, 'limit') ?? 0);
  const continueToken = query.get('continue') ?? '';
  const resourceVersion = parseVersion(query.get('resourceVersion') ?? '');
  if (continueToken !== '') rejectVersionWithContinue(resourceVersion);
  const match = query.get('resourceVersionMatch') ?? '';
  const isNamespaced = definition.isNamespaced && namespace !== '';
  return {
    range: isNamespaced ? { resource: definition.storage, namespace } : { resource: definition.storage },
    hasSelector: labelText !== '' || fieldText !== '' || isVisible !== undefined,
    matches: (entry) => {
      if (labelText === '' && fieldText === '' && !isVisible) return true;
      const object = currentForm(definition, entry);
      if (isVisible?.(object) === false) return false;
      const labelled = objectField(metadataOf(object), 'labels') as StringMap; // decoded: values are text
      return labels(labelled) && fields((field) => fieldOf(definition, object, field));
    },
    resourceVersion,
    // All pages of a list show one revision: the first page shows exactly the requested one.
    isExact: match === 'Exact' || (match === '' && limit > 0),
    limit,
    continueToken,
  };
}

function labelPredicate(text: string): LabelPredicate {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    throw error instanceof SelectorError ? badRequest(error.message) : error;
  }
}

function fieldOf(definition: ResourceDefinition, object: JsonObject, field: string): string {
  if (field === 'metadata.name') return text(metadataOf(object), 'name');
  if (field === 'metadata.namespace') return text(metadataOf(object), 'namespace');
  return definition.selectableFields[field]?.(object) ?? '';
}

/** Returns a resourceVersion that is a number or empty; throws 400 for any other text. */
export function parseVersion(version: string): string {
  if (version === '' || /^\d{1,15}$/.test(version)) return version;
  throw badRequest(
    `resourceVersion: Invalid value: ${JSON.stringify(version)}: strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`,
  );
}

const MATCH = 'resourceVersionMatch';

/** Throws 422, which names every problem. */
function rejectInvalidListOptions(query: URLSearchParams, isWatch: boolean): void {
  const match = query.get(MATCH) ?? '';
  const errors = isWatch ? watchErrors(query, match) : listErrors(query, match);
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', resource: 'ListOptions' }, '', errors);
}

function listErrors(query: URLSearchParams, match: string): FieldError[] {
  const errors: FieldError[] = [];
  if (match !== '') {
    if (!query.get('resourceVersion'))
      errors.push(forbidden('is forbidden unless resourceVersion is provided'));
    if (query.get('continue')) errors.push(forbidden('is forbidden when continue is provided'));
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(unsupportedValue(MATCH, match, ['Exact', 'NotOlderThan', '']));
    }
    if (match === 'Exact' && query.get('resourceVersion') === '0') {
      errors.push(forbidden('"exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (query.has('sendInitialEvents')) {
    errors.push(forbiddenValue('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function watchErrors(query: URLSearchParams, match: string): FieldError[] {
  const errors: FieldError[] = [];
  const hasInitialEvents = query.has('sendInitialEvents');
  if (hasInitialEvents && match !== 'NotOlderThan') {
    const detail = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    errors.push(forbiddenValue(MATCH, detail));
  }
  if (match !== '' && !hasInitialEvents) {
    errors.push(forbidden('is forbidden for watch unless sendInitialEvents is provided'));
  }
  if (match !== '' && match !== 'NotOlderThan') errors.push(unsupportedValue(MATCH, match, ['NotOlderThan']));
  if (query.get('continue')) errors.push(forbidden('is forbidden when continue is provided'));
  return errors;
}

function forbidden(detail: string): FieldError {
  return forbiddenValue(MATCH, `${MATCH} ${detail}`);
}

/** All pages show the revision of the first page. Throws 400. */
function rejectVersionWithContinue(resourceVersion: string): void {
  if (Number(resourceVersion) === 0) return;
  throw badRequest('specifying resource version is not allowed when using continue');
}

interface Term {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** Throws a 400 `StatusError` when the text does not parse or names a field that is not selectable. */
export function parseFieldSelector(
  text: string,
  selectable: readonly string[],
): (read: (field: string) => string) => boolean {
  const terms = splitTerms(text).map(parseTerm);
  for (const { field } of terms) {
    if (selectable.includes(field)) continue;
    const known = selectable.map((name) => JSON.stringify(name)).join(', ');
    throw badRequest(`${JSON.stringify(field)} is not a known field selector: only ${known}`);
  }
  return (read) => terms.every(({ field, isEqual, value }) => (read(field) === value) === isEqual);
}

/** The value that the selector requires of `field`, if any. Throws a 400 `StatusError` when the text does not parse. */
export function exactValue(text: string, field: string): string | undefined {
  return splitTerms(text)
    .map(parseTerm)
    .find((term) => term.field === field && term.isEqual)?.value;
}

function splitTerms(text: string): string[] {
  return text.split(/(?<!\\),/).filter((term) => term !== '');
}

function parseTerm(term: string): Term {
  const match = /^([^=!]*)(!=|==|=)(.*)$/s.exec(term);
  if (!match) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const [, field = '', operator, value = ''] = match;
  return { field, isEqual: operator !== '!=', value: unescaped(value) };
}

function unescaped(value: string): string {
  const bare = value.replaceAll(/\\[\\,=]/g, '');
  const invalidEscape = /\\.?/s.exec(bare);
  if (invalidEscape) {
    throw badRequest(`invalid field selector: invalid escape sequence: ${invalidEscape[0]}`);
  }
  if (bare.includes('=')) throw badRequest('invalid field selector: unescaped character in value: 61');
  return value.replaceAll(/\\(.)/gs, '$1');
}

export interface WriteOptions {
  readonly isDryRun: boolean;
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
  /** Apply only: take fields over from other managers. */
  readonly isForced: boolean;
}

const FIELD_MANAGER_BYTES_MAX = 128;

/** `kind` is the options' type in error messages: `CreateOptions`, `UpdateOptions`, `PatchOptions`. */
export function parseWriteOptions(query: URLSearchParams, kind: string, patch?: string): WriteOptions {
  const errors: FieldError[] = [];
  const fieldManager = query.get('fieldManager') ?? '';
  if (Buffer.byteLength(fieldManager) > FIELD_MANAGER_BYTES_MAX) {
    errors.push(tooLong('fieldManager', FIELD_MANAGER_BYTES_MAX));
  }
  const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u.exec(fieldManager);
  if (unprintable) {
    const code = unprintable[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0') ?? '';
    const detail = `invalid character U+${code} (at position ${unprintable.index})`;
    errors.push(invalidValue('fieldManager', fieldManager, detail));
  }
  errors.push(...dryRunErrors(query.getAll('dryRun')));
  const validation = query.get('fieldValidation') ?? '';
  if (!['', 'Ignore', 'Strict', 'Warn'].includes(validation)) {
    errors.push(unsupportedValue('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  const isApply = patch === 'apply';
  if (isApply && fieldManager === '') {
    errors.push(requiredValue('fieldManager', 'is required for apply patch'));
  }
  if (patch !== undefined && !isApply && query.has('force')) {
    errors.push(forbiddenValue('force', 'may not be specified for non-apply patch'));
  }
  throwInvalid(errors, kind);
  return {
    isDryRun: query.getAll('dryRun').length > 0,
    fieldManager,
    fieldValidation: validation === 'Ignore' || validation === 'Strict' ? validation : 'Warn',
    isForced: isTrue(query.get('force')),
  };
}

export type PropagationPolicy = 'Background' | 'Foreground' | 'Orphan';

export interface DeleteOptions {
  readonly isDryRun?: boolean;
  /** Absent: the kind's default. */
  readonly gracePeriodSeconds?: number | undefined;
  /** Absent: any. No object has an empty uid. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: PropagationPolicy | undefined;
}

/** Values in the body, which is decoded, take precedence over the query. Throws 422 for an invalid value. */
export function parseDeleteOptions(query: URLSearchParams, body: JsonObject | undefined): DeleteOptions {
  const errors: FieldError[] = [];
  const policy = body?.['propagationPolicy'] ?? query.get('propagationPolicy');
  const inQuery = query.has('orphanDependents') ? isTrue(query.get('orphanDependents')) : undefined;
  const orphan = body?.['orphanDependents'] ?? inQuery;
  const isKnown = policy === 'Background' || policy === 'Foreground' || policy === 'Orphan';
  if (policy !== null && !isKnown) {
    const supported = ['Foreground', 'Background', 'Orphan', 'nil'];
    errors.push(unsupportedValue('propagationPolicy', policy, supported));
  }
  if (policy !== null && typeof orphan === 'boolean') {
    const detail = 'orphanDependents and deletionPropagation cannot be both set';
    errors.push(invalidValue('propagationPolicy', policy, detail));
  }
  const dryRun = body?.['dryRun'] ?? query.getAll('dryRun');
  const dryRuns = Array.isArray(dryRun) ? dryRun.map(String) : [];
  errors.push(...dryRunErrors(dryRuns));
  const gracePeriodSeconds = graceOf(body, query);
  errors.push(...graceErrors(gracePeriodSeconds));
  throwInvalid(errors, 'DeleteOptions');
  const { uid, resourceVersion } = objectField(body ?? {}, 'preconditions');
  return {
    isDryRun: dryRuns.length > 0,
    gracePeriodSeconds,
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : undefined,
    propagationPolicy: isKnown ? policy : policyOf(orphan),
  };
}

/** The policy that the deprecated `orphanDependents` stands for. */
function policyOf(orphanDependents: JsonValue | undefined): PropagationPolicy | undefined {
  if (typeof orphanDependents !== 'boolean') return undefined;
  return orphanDependents ? 'Orphan' : 'Background';
}

function graceOf(body: JsonObject | undefined, query: URLSearchParams): number | undefined {
  // A BigInt is one that `graceErrors` refuses, with all its digits.
  const seconds = (body?.['gracePeriodSeconds'] ?? graceIn(query)) as number | undefined; // decoded as int64
  if (seconds === undefined) return undefined;
  return seconds < 0 ? 1 : seconds; // as a kube-apiserver treats a negative value
}

function graceIn(query: URLSearchParams): number | undefined {
  const seconds = integerIn(query, 'gracePeriodSeconds');
  const sent = query.get('gracePeriodSeconds') ?? '';
  return seconds === undefined ? undefined : exactInteger(seconds, sent.replace('+', ''));
}

function graceErrors(seconds: number | undefined): FieldError[] {
  if (seconds === undefined || seconds <= GRACE_SECONDS_MAX) return [];
  const detail = `must be less than or equal to ${GRACE_SECONDS_MAX}`;
  return [invalidValue('gracePeriodSeconds', seconds, detail)];
}

function dryRunErrors(values: readonly string[]): FieldError[] {
  return values.every((value) => value === 'All') ? [] : [unsupportedValue('dryRun', values, ['All'])];
}

function throwInvalid(errors: readonly FieldError[], kind: string): void {
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', resource: kind }, '', errors);
}

const INT64_MAX = 2n ** 63n - 1n;

/** Undefined without the parameter; throws 400 for anything but an int64. Not exact beyond 2^53. */
export function integerIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const isInteger = /^[+-]?\d+$/.test(text);
  if (isInteger && isInt64(BigInt(text.replace('+', '')))) return Number(text);
  const why = isInteger ? 'value out of range' : 'invalid syntax';
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
}

function isInt64(value: bigint): boolean {
  return value <= INT64_MAX && value >= -INT64_MAX - 1n;
}

/** A boolean query parameter as Go parses it: present and empty is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0';
}
