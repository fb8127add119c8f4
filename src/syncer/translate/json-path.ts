/** Sets a JSON value at a concrete path: copy on write, own properties only. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ConcretePath } from './types.ts';

/** A copy with `value` at `path`; undefined removes the member. The root itself is returned if the parent does not exist, or if an element
 * of a list would be removed, because lists keep their length.
 */
export function withValueAt(root: JsonValue, path: ConcretePath, value: JsonValue | undefined): JsonValue {
  const [segment, ...rest] = path;
  if (segment === undefined) return value ?? null;
  if (typeof segment === 'number') return withElement(root, [segment, ...rest], value);
  if (!isJsonObject(root)) return root;
  const member = ownValue(root, segment);
  if (rest.length === 0)
    return value === undefined ? without(root, segment) : withMember(root, segment, value);
  if (member === undefined) return root;
  const changed = withValueAt(member, rest, value);
  return changed === member ? root : withMember(root, segment, changed);
}

function withElement(
  root: JsonValue,
  [index, ...rest]: readonly [number, ...ConcretePath],
  value: JsonValue | undefined,
): JsonValue {
  const element = Array.isArray(root) ? root[index] : undefined;
  if (!Array.isArray(root) || element === undefined) return root;
  if (rest.length === 0 && value === undefined) return root;
  const changed = withValueAt(element, rest, value);
  return changed === element ? root : root.with(index, changed);
}

function withMember(object: JsonObject, key: string, value: JsonValue): JsonObject {
  const copy = { ...object };
  setOwn(copy, key, value);
  return copy;
}

function without(object: JsonObject, key: string): JsonObject {
  if (!Object.hasOwn(object, key)) return object;
  return Object.fromEntries(Object.entries(object).filter(([member]) => member !== key));
}
