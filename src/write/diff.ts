/** What of an object has to be written: comparison and patches that know what an API server fills in by itself. */

import type { KubeObject, ObjectMeta, StringMap } from '../kube/object.ts';
import { isJsonObject, jsonEquals, setOwn, type JsonObject, type JsonValue } from '../lib/json.ts';

/** True when writing `wanted` over `actual` would change something. Metadata is compared by labels, annotations and owners only. */
export function needsWrite(wanted: KubeObject, actual: KubeObject): boolean {
  return !metadataEquals(wanted.metadata, actual.metadata) || !contentEquals(wanted, actual);
}

function metadataEquals(wanted: ObjectMeta, actual: ObjectMeta): boolean {
  return (
    jsonEquals(wanted.labels ?? {}, actual.labels ?? {}) &&
    jsonEquals(wanted.annotations ?? {}, actual.annotations ?? {}) &&
    jsonEquals(wanted['ownerReferences'] ?? [], actual['ownerReferences'] ?? [])
  );
}

/** Everything besides metadata and the type; null, an empty list and a missing member are the same. */
function contentEquals(wanted: KubeObject, actual: KubeObject): boolean {
  const members = new Set([...Object.keys(wanted), ...Object.keys(actual)]);
  for (const member of ['metadata', 'apiVersion', 'kind']) members.delete(member);
  for (const member of members) {
    const [a, b] = [contentOf(wanted, member), contentOf(actual, member)];
    const isEqual = member === 'subsets' ? subsetsEqual(a, b) : jsonEquals(a, b);
    if (!isEqual) return false;
  }
  return true;
}

function contentOf(object: KubeObject, member: string): JsonValue {
  const value = Object.hasOwn(object, member) ? (object[member] as JsonValue | undefined) : undefined; // metadata is left out above
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0) ? null : value;
}

/** Equality of `subsets` as an API server sees it: what is empty does not exist, a port without a protocol is TCP. */
export function subsetsEqual(a: JsonValue, b: JsonValue): boolean {
  return jsonEquals(a, b) || jsonEquals(asStored(a), asStored(b));
}

/** As Go writes it: members that are null, empty text or empty lists are left out, at any depth. */
function asStored(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(asStored);
  if (!isJsonObject(value)) return value;
  const stored: JsonObject = {};
  for (const [member, content] of Object.entries(value)) {
    if (content === null || content === '' || (Array.isArray(content) && content.length === 0)) continue;
    setOwn(stored, member, asStored(content));
  }
  const isPort = Object.hasOwn(stored, 'port') && !Object.hasOwn(stored, 'protocol');
  return isPort ? { ...stored, protocol: 'TCP' } : stored;
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
