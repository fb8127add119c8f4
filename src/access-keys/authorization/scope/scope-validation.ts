/** Validation of `spec.scope`; its deprecated rules as Kubernetes validates the rules of an audit policy. */

import { requiredValue, unsupportedValue, type FieldError } from '../../../apiserver/field-error.ts';
import { listField, objectList, text } from '../../../apiserver/metadata.ts';
import type { JsonObject } from '../../../base/json.ts';
import { ROLE_NAMES } from '../roles.ts';
import { validateRule } from './rule-validation.ts';
import { nameErrors, tooMany } from './scope-names.ts';
import { excessOf } from './scope-size.ts';

/** The lists of a scope and the required fields of their entries. */
const ENTRY_LISTS: readonly (readonly [list: string, fields: readonly string[]])[] = [
  ['projects', ['project']],
  ['spaces', ['project', 'space']],
  ['virtualClusters', ['project', 'virtualCluster']],
  ['clusters', ['cluster']],
];

/**
 * All errors of a scope. `scope` was decoded by the schema of the kind, so its fields have the right types; `path` is that of the scope,
 * `spec.scope`.
 */
export function validateScope(scope: JsonObject, path: string): FieldError[] {
  const excess = excessOf(scope);
  if (excess)
    return [tooMany(excess.list === '' ? path : `${path}.${excess.list}`, excess.count, excess.max)];
  return [
    ...objectList(scope, 'roles').flatMap((role, index) => roleErrors(role, `${path}.roles[${index}]`)),
    ...ENTRY_LISTS.flatMap(([list, fields]) =>
      objectList(scope, list).flatMap((entry, index) =>
        fields.flatMap((field) => nameErrors(text(entry, field), `${path}.${list}[${index}].${field}`)),
      ),
    ),
    ...objectList(scope, 'rules').flatMap((rule, index) => validateRule(rule, `${path}.rules[${index}]`)),
  ];
}

function roleErrors(role: JsonObject, path: string): FieldError[] {
  const name = text(role, 'role');
  const errors: FieldError[] = [];
  if (name === '') errors.push(requiredValue(`${path}.role`));
  else if (!ROLE_NAMES.includes(name)) errors.push(unsupportedValue(`${path}.role`, name, ROLE_NAMES));
  for (const list of ['projects', 'virtualClusters']) {
    for (const [index, item] of listField(role, list).entries()) {
      const given = typeof item === 'string' ? item : '';
      errors.push(...nameErrors(given, `${path}.${list}[${index}]`));
    }
  }
  return errors;
}
