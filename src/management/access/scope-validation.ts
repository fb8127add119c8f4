/** What a `spec.scope` must be like; its deprecated rules as Kubernetes wants the rules of an audit policy. */

import { requiredValue, unsupportedValue, type FieldError } from '../../api/field-error.ts';
import { listField, objectField, objectList, text } from '../../api/validation/metadata.ts';
import type { JsonObject } from '../../lib/json.ts';
import { ROLE_NAMES } from './roles.ts';
import { validateRule } from './rule-validation.ts';
import { nameErrors, tooMany } from './scope-names.ts';

/** Texts and entries of one scope, all lists together. */
export const SCOPE_ENTRIES_MAX = 1_000;

/** The lists of entries that name a part of the platform, and the fields that an entry must have. */
const ENTRY_LISTS: readonly (readonly [list: string, fields: readonly string[]])[] = [
  ['projects', ['project']],
  ['spaces', ['project', 'space']],
  ['virtualClusters', ['project', 'virtualCluster']],
  ['clusters', ['cluster']],
];

/**
 * Everything that is wrong with a scope. `scope` has been decoded by the kind's schema, so its fields have the right types; `path` is the
 * scope's own, `spec.scope`. Total on any JSON object.
 */
export function validateScope(scope: JsonObject, path: string): FieldError[] {
  const entries = countEntries(scope);
  if (entries > SCOPE_ENTRIES_MAX) return [tooMany(path, entries, SCOPE_ENTRIES_MAX)];
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

/** Every list item anywhere in the scope: what bounds the time that a decision takes. */
function countEntries(scope: JsonObject): number {
  let count = 0;
  const lists = ['roles', 'projects', 'spaces', 'virtualClusters', 'clusters', 'rules'];
  for (const list of lists) count += listField(scope, list).length;
  for (const role of objectList(scope, 'roles')) {
    count += listField(role, 'projects').length + listField(role, 'virtualClusters').length;
  }
  for (const rule of objectList(scope, 'rules')) count += countRule(rule);
  return count;
}

const RULE_LISTS = [
  'verbs',
  'resources',
  'resourceNames',
  'namespaces',
  'nonResourceURLs',
  'requestTargets',
  'virtualClusters',
];

function countRule(rule: JsonObject): number {
  let count = 0;
  for (const list of RULE_LISTS) count += listField(rule, list).length;
  for (const entry of objectList(rule, 'resources')) {
    count += listField(entry, 'resources').length + listField(entry, 'resourceNames').length;
  }
  return count;
}

/** `{}`: the scope of a key that is good for nothing. */
export function isEmptyScope(scope: JsonObject): boolean {
  const lists = ['roles', 'projects', 'spaces', 'virtualClusters', 'clusters', 'rules'];
  return lists.every((list) => listField(scope, list).length === 0) && scope['allowPlatformCli'] !== true;
}

/** The scope of a decoded key or token; undefined where there is none. */
export function scopeField(spec: JsonObject): JsonObject | undefined {
  return Object.hasOwn(spec, 'scope') ? objectField(spec, 'scope') : undefined;
}
