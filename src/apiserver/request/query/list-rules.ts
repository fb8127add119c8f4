/** Validates the combination of options of a list or a watch. */

import { forbiddenValue, unsupportedValue, type FieldError } from '../../field-error.ts';
import { badRequest, invalid } from '../../status.ts';

const MATCH = 'resourceVersionMatch';

/** Throws 422, which names every problem. */
export function rejectInvalidListOptions(query: URLSearchParams, isWatch: boolean): void {
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
export function rejectVersionWithContinue(resourceVersion: string): void {
  if (Number(resourceVersion) === 0) return;
  throw badRequest('specifying resource version is not allowed when using continue');
}
