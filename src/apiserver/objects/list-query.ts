/** The query of a list, a watch or a deletion of a collection: the selected objects and the revision. */

import type { StringMap } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry, StoreRange } from '../storage/store.ts';
import { integerIn } from './query-parameters.ts';
import { currentForm, type Target } from './target.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import { type LabelPredicate, parseLabelSelector, SelectorError } from '../../kube/label-selector.ts';
import { badRequest, invalid } from '../status.ts';
import { metadataOf, objectField, text } from '../metadata.ts';
import { type FieldError, forbiddenValue, unsupportedValue } from '../field-error.ts';

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
      return labels(labelled) && fields.matches((field) => fieldOf(definition, object, field));
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

/** Returns one selectable field of an object; empty when it is not set. */
export type FieldReader = (field: string) => string;

export interface FieldSelector {
  matches(read: FieldReader): boolean;
}

interface Term {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** Throws a 400 `StatusError` when the text does not parse or names a field that is not selectable. */
export function parseFieldSelector(text: string, selectable: readonly string[]): FieldSelector {
  const terms = splitTerms(text).map(parseTerm);
  for (const { field } of terms) {
    if (selectable.includes(field)) continue;
    const known = selectable.map((name) => JSON.stringify(name)).join(', ');
    throw badRequest(`${JSON.stringify(field)} is not a known field selector: only ${known}`);
  }
  return {
    matches: (read) => terms.every(({ field, isEqual, value }) => (read(field) === value) === isEqual),
  };
}

/** The value that the selector requires of `field`, if any. Throws a 400 `StatusError` when the text does not parse. */
export function exactValue(text: string, field: string): string | undefined {
  return splitTerms(text)
    .map(parseTerm)
    .find((term) => term.field === field && term.isEqual)?.value;
}

/** Splits at commas that are not escaped by a backslash. */
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
