/** Members of objects besides metadata: normalizes them as an API server does, and compares them, to avoid writes without effect. */

import type { KubeObject, ObjectMeta } from '../../kube/object.ts';
import {
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import type { PathTrie } from './paths.ts';
import type { ContentRules } from './types.ts';

export const NO_CONTENT: ContentRules = {
  members: [],
  ownMembers: [],
  toHost: () => ({}),
  toVirtual: () => ({}),
  ownLabels: () => ({}),
  isOwnLabel: () => false,
  ownLabelsToVirtual: () => ({}),
  stored: () => ({}),
  haveSameShape: () => true,
  elementAt: () => undefined,
};

/** A member of an object; null if it is missing. */
export function memberOf(object: KubeObject, member: string): JsonValue {
  const value = Object.hasOwn(object, member) ? object[member] : undefined;
  return (value as JsonValue | undefined) ?? null; // every member but metadata is JSON
}

/** The object with these members; one that is null is missing. */
export function withMembers(object: KubeObject, members: JsonObject): KubeObject {
  const changed = Object.keys(members).filter((name) => !jsonEquals(memberOf(object, name), members[name]));
  if (changed.length === 0) return object;
  const result: KubeObject = { ...object };
  for (const name of changed) {
    const value = members[name] ?? null;
    if (value === null) delete result[name];
    else result[name] = value;
  }
  return result;
}

export function memberEquals(rules: ContentRules, member: string, a: JsonValue, b: JsonValue): boolean {
  if (jsonEquals(a, b)) return true;
  return jsonEquals(rules.stored({ [member]: a })[member], rules.stored({ [member]: b })[member]);
}

/** What needs no change, which is nearly everything, is not copied: it was a quarter of all memory that an update allocated. */
export function asStored(value: JsonValue, isOmitted: (value: JsonValue) => boolean = isEmpty): JsonValue {
  if (Array.isArray(value)) {
    let elements = value;
    for (let i = 0; i < value.length; i++) {
      const element = value[i] ?? null;
      const kept = asStored(element, isOmitted);
      if (kept === element) continue;
      if (elements === value) elements = [...value];
      elements[i] = kept;
    }
    return elements;
  }
  if (!isJsonObject(value)) return value;
  let stored = value;
  for (const member in value) {
    const content = value[member] ?? null;
    const kept = asStored(content, isOmitted);
    const isKept = !isOmitted(kept);
    if (isKept && kept === content) continue;
    if (stored === value) stored = { ...value };
    if (isKept) setOwn(stored, member, kept);
    else delete stored[member];
  }
  const isPort = Object.hasOwn(stored, 'port') && !Object.hasOwn(stored, 'protocol');
  return isPort ? { ...stored, protocol: 'TCP' } : stored;
}

export function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

export function equalsExcept(a: JsonValue | undefined, b: JsonValue | undefined, except: PathTrie): boolean {
  if (except.size === 0) return jsonEquals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => sameBut(element, b[i], [except, i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return jsonEquals(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => sameBut(ownValue(a, key), ownValue(b, key), [except, key]));
}

function sameBut(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  [except, segment]: readonly [PathTrie, string | number],
): boolean {
  if (!except.has(segment)) return jsonEquals(a, b);
  const below = except.get(segment);
  return below === undefined || equalsExcept(a, b, below);
}

export function listAt(value: JsonValue | undefined, key: string): readonly JsonValue[] {
  const list = isJsonObject(value) ? ownValue(value, key) : undefined;
  return Array.isArray(list) ? list : [];
}

export function needsWrite(
  wanted: KubeObject,
  actual: KubeObject,
  rules: ContentRules = NO_CONTENT,
): boolean {
  return !metadataEquals(wanted.metadata, actual.metadata) || !contentEquals(wanted, actual, rules);
}

export function metadataEquals(wanted: ObjectMeta, actual: ObjectMeta): boolean {
  return (
    jsonEquals(wanted.labels ?? {}, actual.labels ?? {}) &&
    jsonEquals(wanted.annotations ?? {}, actual.annotations ?? {}) &&
    jsonEquals(wanted['ownerReferences'] ?? [], actual['ownerReferences'] ?? [])
  );
}

/** Everything besides metadata and the type; null, an empty list and a missing member are the same. */
export function contentEquals(wanted: KubeObject, actual: KubeObject, rules: ContentRules): boolean {
  const isSame = (member: string): boolean => {
    if (NO_CONTENT_MEMBERS.has(member) || rules.ownMembers.includes(member)) return true;
    const [a, b] = [contentOf(wanted, member), contentOf(actual, member)];
    return rules.members.includes(member) ? memberEquals(rules, member, a, b) : jsonEquals(a, b);
  };
  return (
    Object.keys(wanted).every(isSame) &&
    Object.keys(actual).every((member) => Object.hasOwn(wanted, member) || isSame(member))
  );
}

const NO_CONTENT_MEMBERS: ReadonlySet<string> = new Set(['metadata', 'apiVersion', 'kind']);

function contentOf(object: KubeObject, member: string): JsonValue {
  const value = memberOf(object, member);
  return Array.isArray(value) && value.length === 0 ? null : value;
}
