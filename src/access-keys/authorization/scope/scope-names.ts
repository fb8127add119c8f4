/** Names in scopes: of projects, clusters and what is in them. */

import { invalidValue, requiredValue, type FieldError } from '../../../apiserver/field-error.ts';
import { pathSegmentProblem } from '../../../apiserver/validation/names.ts';

/** Every project, every cluster: the whole name, never a part of one. */
export const ANY = '*';

export const NAME_LENGTH_MAX = 253;

/** A name that is a segment of the URLs it is compared with, or {@link ANY}. */
export function nameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [requiredValue(path, 'a name, or "*" for all')];
  if (name === ANY) return [];
  const problem = nameProblem(name);
  return problem === undefined ? [] : [invalidValue(path, name, problem)];
}

export function nameProblem(name: string): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return `must be no more than ${NAME_LENGTH_MAX} characters`;
  if (name.includes(ANY)) return 'a wildcard must be the whole name: "*"';
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(name)) return 'must not contain spaces or control characters';
  return pathSegmentProblem(name);
}

/** In the words of a real server. */
export function tooMany(path: string, count: number, max: number): FieldError {
  const message = `Too many: ${count}: must have at most ${max} items`;
  return { reason: 'FieldValueTooMany', field: path, message };
}
