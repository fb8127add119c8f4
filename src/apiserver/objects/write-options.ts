/** Parses the options of writes from the query, and rejects invalid ones. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  forbiddenValue,
  invalidValue,
  requiredValue,
  tooLong,
  unsupportedValue,
  type FieldError,
} from '../field-error.ts';
import { integerIn, isTrue } from './query-parameters.ts';
import { GRACE_SECONDS_MAX } from '../limits.ts';
import { badRequest, invalid } from '../status.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

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

export type PropagationPolicy = 'Background' | 'Foreground' | 'Orphan' | '';

export interface DeleteOptions {
  readonly isDryRun: boolean;
  /** Absent: the kind's default. */
  readonly gracePeriodSeconds: number | undefined;
  /** Absent: any. No object has an empty uid. */
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly propagationPolicy: PropagationPolicy;
}

/** Values in the body take precedence over the query. Throws 400 for a field of the wrong type, 422 for an invalid value. */
export function parseDeleteOptions(query: URLSearchParams, body: JsonObject | undefined): DeleteOptions {
  if (body) rejectOtherTypes(body, DELETE_FIELDS, '');
  const errors: FieldError[] = [];
  const kind = body?.['kind'];
  if (kind !== undefined && kind !== 'DeleteOptions') {
    throw badRequest(`no kind ${JSON.stringify(kind)} is registered for delete options: use DeleteOptions`);
  }
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
  const preconditions = body?.['preconditions'];
  const condition = (name: string): string | undefined => {
    const value = isJsonObject(preconditions) ? preconditions[name] : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  return {
    isDryRun: dryRuns.length > 0,
    gracePeriodSeconds,
    uid: condition('uid'),
    resourceVersion: condition('resourceVersion'),
    propagationPolicy: isKnown ? policy : policyOf(orphan),
  };
}

/** The policy that the deprecated `orphanDependents` stands for. */
function policyOf(orphanDependents: JsonValue | undefined): PropagationPolicy {
  if (typeof orphanDependents !== 'boolean') return '';
  return orphanDependents ? 'Orphan' : 'Background';
}

type FieldTypes = Readonly<
  Record<string, readonly [goType: string, isOfType: (value: JsonValue) => boolean]>
>;

const isText = (value: JsonValue): boolean => typeof value === 'string';

const DELETE_FIELDS: FieldTypes = {
  dryRun: ['[]string', (value) => Array.isArray(value) && value.every(isText)],
  preconditions: ['v1.Preconditions', isJsonObject],
  propagationPolicy: ['v1.DeletionPropagation', isText],
  orphanDependents: ['bool', (value) => typeof value === 'boolean'],
  gracePeriodSeconds: ['int64', Number.isInteger],
};
const PRECONDITION_FIELDS: FieldTypes = { uid: ['types.UID', isText], resourceVersion: ['string', isText] };

/** A precondition of the wrong type must not be ignored: the object would be deleted without it. */
function rejectOtherTypes(object: JsonObject, types: FieldTypes, path: string): void {
  for (const [field, [goType, isOfType]] of Object.entries(types)) {
    const value = object[field];
    if (value === undefined || value === null) continue;
    if (!isOfType(value)) {
      const sent = Array.isArray(value) ? 'array' : typeof value;
      const where = `Go struct field DeleteOptions.${path}${field} of type ${goType}`;
      throw badRequest(`json: cannot unmarshal ${sent} into ${where}`);
    }
    if (field === 'preconditions' && isJsonObject(value)) {
      rejectOtherTypes(value, PRECONDITION_FIELDS, 'preconditions.');
    }
  }
}

function graceOf(body: JsonObject | undefined, query: URLSearchParams): number | undefined {
  const seconds = body?.['gracePeriodSeconds'] ?? integerIn(query, 'gracePeriodSeconds');
  if (typeof seconds !== 'number') return undefined;
  return seconds < 0 ? 1 : seconds; // as a kube-apiserver treats a negative value
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
