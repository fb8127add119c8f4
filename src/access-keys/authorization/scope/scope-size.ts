/** Limits on the size of a scope: they bound the time of a decision and of the comparison of two scopes. */

import { listField, objectList } from '../../../apiserver/metadata.ts';
import type { JsonObject } from '../../../base/json.ts';

/** List items in a scope without its rules; a role counts each of its virtual clusters in each of its projects. */
export const SCOPE_ENTRIES_MAX = 1_000;
/** List items in all rules of a scope: a comparison is quadratic in the rules. */
export const RULE_ENTRIES_MAX = 200;

export interface ScopeExcess {
  /** `''`: the whole scope, else the list. */
  readonly list: '' | 'rules';
  readonly count: number;
  readonly max: number;
}

/** The limit that the scope exceeds; undefined: none. Accepts scopes that were not validated. */
export function excessOf(scope: JsonObject): ScopeExcess | undefined {
  const entries = countEntries(scope);
  if (entries > SCOPE_ENTRIES_MAX) return { list: '', count: entries, max: SCOPE_ENTRIES_MAX };
  const rules = objectList(scope, 'rules').reduce((count, rule) => count + 1 + countRule(rule), 0);
  return rules > RULE_ENTRIES_MAX ? { list: 'rules', count: rules, max: RULE_ENTRIES_MAX } : undefined;
}

function countEntries(scope: JsonObject): number {
  let count = 0;
  for (const list of ['roles', 'projects', 'spaces', 'virtualClusters', 'clusters']) {
    count += listField(scope, list).length;
  }
  for (const role of objectList(scope, 'roles')) {
    const [projects, names] = [listField(role, 'projects').length, listField(role, 'virtualClusters').length];
    count += Math.max(projects + names, projects * names);
  }
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
