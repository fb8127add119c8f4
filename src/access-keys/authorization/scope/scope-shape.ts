/**
 * Whether a JSON value is a scope. Clusters return scopes as text. A list of the wrong type must not count as an empty list, which is no
 * restriction; a scope larger than a key can have is rejected.
 */

import { isJsonObject, ownValue, type JsonValue } from '../../../base/json.ts';
import type { Scope } from '../../types.ts';
import { excessOf } from './scope-size.ts';

type Check = (value: JsonValue) => boolean;

const isText: Check = (value) => typeof value === 'string';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const fieldsOf =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (!isJsonObject(value)) return false;
    return Object.entries(checks).every(([field, check]) => {
      const member = ownValue(value, field);
      return member === undefined || check(member);
    });
  };

const texts = listOf(isText);

const checkScope = fieldsOf({
  roles: listOf(fieldsOf({ role: isText, projects: texts, virtualClusters: texts })),
  projects: listOf(fieldsOf({ project: isText })),
  spaces: listOf(fieldsOf({ project: isText, space: isText })),
  virtualClusters: listOf(fieldsOf({ project: isText, virtualCluster: isText })),
  clusters: listOf(fieldsOf({ cluster: isText })),
  rules: listOf(
    fieldsOf({
      verbs: texts,
      resources: listOf(fieldsOf({ group: isText, resources: texts, resourceNames: texts })),
      resourceNames: texts,
      namespaces: texts,
      nonResourceURLs: texts,
      requestTargets: texts,
      cluster: isText,
      virtualClusters: listOf(fieldsOf({ name: isText, namespace: isText })),
    }),
  ),
  allowPlatformCli: (value) => typeof value === 'boolean',
});

export function isScope(value: unknown): value is Scope {
  return isJsonObject(value) && checkScope(value) && excessOf(value) === undefined;
}
