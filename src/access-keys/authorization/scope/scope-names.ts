/** Validation of the names in scopes: projects, spaces, virtual clusters, clusters. */

import { invalidValue, requiredValue, type FieldError } from '../../../apiserver/field-error.ts';
import { NAME_LENGTH_MAX, pathSegmentProblem } from '../../../kube/names.ts';

/** Matches every name; never part of a name. */
export const ANY = '*';

/** A name that can be a segment of a URL, or {@link ANY}. */
export function nameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [requiredValue(path, 'a name, or * for all')];
  if (name === ANY) return [];
  const problem = nameProblem(name);
  return problem === undefined ? [] : [invalidValue(path, name, problem)];
}

export function nameProblem(name: string): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return `must be no more than ${NAME_LENGTH_MAX} characters`;
  if (name.includes(ANY)) return 'a wildcard must be the whole name: *';
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(name)) return 'must not contain spaces or control characters';
  return pathSegmentProblem(name);
}

/** The message is that of a kube-apiserver. */
export function tooMany(path: string, count: number, max: number): FieldError {
  const message = `Too many: ${count}: must have at most ${max} items`;
  return { reason: 'FieldValueTooMany', field: path, message };
}
