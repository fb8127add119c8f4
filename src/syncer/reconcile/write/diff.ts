/** Compares objects with respect to API server defaults, to avoid writes without effect. */

import type { KubeObject, ObjectMeta, StringMap } from '../../../kube/object.ts';
import { jsonEquals, setOwn, type JsonObject, type JsonValue } from '../../../base/json.ts';
import { memberEquals, NO_CONTENT } from '../../translate/content.ts';
import type { ContentRules } from '../../translate/types.ts';

/** True when writing `wanted` over `actual` would change something. Metadata is compared by labels, annotations and owners only. */
export function needsWrite(
  wanted: KubeObject,
  actual: KubeObject,
  rules: ContentRules = NO_CONTENT,
): boolean {
  return !metadataEquals(wanted.metadata, actual.metadata) || !contentEquals(wanted, actual, rules);
}

function metadataEquals(wanted: ObjectMeta, actual: ObjectMeta): boolean {
  return (
    jsonEquals(wanted.labels ?? {}, actual.labels ?? {}) &&
    jsonEquals(wanted.annotations ?? {}, actual.annotations ?? {}) &&
    jsonEquals(wanted['ownerReferences'] ?? [], actual['ownerReferences'] ?? [])
  );
}

/** Everything besides metadata and the type; null, an empty list and a missing member are the same. */
function contentEquals(wanted: KubeObject, actual: KubeObject, rules: ContentRules): boolean {
  const members = new Set([...Object.keys(wanted), ...Object.keys(actual)]);
  for (const member of ['metadata', 'apiVersion', 'kind', ...rules.ownMembers]) members.delete(member);
  for (const member of members) {
    const [a, b] = [contentOf(wanted, member), contentOf(actual, member)];
    const isEqual = rules.members.includes(member) ? memberEquals(rules, member, a, b) : jsonEquals(a, b);
    if (!isEqual) return false;
  }
  return true;
}

function contentOf(object: KubeObject, member: string): JsonValue {
  const value = Object.hasOwn(object, member) ? (object[member] as JsonValue | undefined) : undefined; // metadata is left out above
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0) ? null : value;
}

/** The members of a JSON merge patch that turn one map into another: values to set, null to remove. Undefined: equal. */
export function mapPatch(from: StringMap, to: StringMap): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const [key, value] of Object.entries(to)) {
    if (!Object.hasOwn(from, key) || from[key] !== value) setOwn(patch, key, value);
  }
  for (const key of Object.keys(from)) {
    if (!Object.hasOwn(to, key)) setOwn(patch, key, null);
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
