/**
 * Strategic merge patch: a merge patch that knows the schema. Lists with a merge key merge item by item, lists of scalars that merge are
 * sets, and directives (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`) say the rest.
 */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../../lib/json.ts';
import { memberSchema, type Field, type ObjectSchema, type Schema } from '../schema/schema.ts';
import { badRequest } from '../status.ts';

const DELETE_FROM = '$deleteFromPrimitiveList/';
const ORDER = '$setElementOrder/';

/** The merged object; shares nothing with `patch`. Throws a 400 `StatusError` on a directive that cannot be followed. */
export function strategicMerge(schema: ObjectSchema, target: JsonObject, patch: JsonObject): JsonObject {
  return mergeObject(schema, target, patch);
}

function mergeObject(schema: Schema | undefined, target: JsonObject, patch: JsonObject): JsonObject {
  switch (directive(patch)) {
    case 'replace':
      return withoutDirectives(patch);
    case 'delete':
      return {};
    case '':
    case 'merge':
      break;
    default:
      throw badRequest(`Unknown patch type: ${directive(patch)}`);
  }
  const result: JsonObject = {};
  const retained = ownValue(patch, '$retainKeys');
  for (const key of Object.keys(target)) {
    if (Array.isArray(retained) && !retained.includes(key)) continue;
    setOwn(result, key, target[key] ?? null);
  }
  for (const key of memberKeys(patch)) {
    const change = ownValue(patch, key);
    const before = ownValue(result, key);
    const after = mergeMember({ schema, key }, before, patch, change);
    if (after === undefined) delete result[key];
    else setOwn(result, key, after);
  }
  return result;
}

interface Member {
  readonly schema: Schema | undefined;
  readonly key: string;
}

/** The member after the patch, or undefined when it goes. */
function mergeMember(
  { schema, key }: Member,
  before: JsonValue | undefined,
  patch: JsonObject,
  change: JsonValue | undefined,
): JsonValue | undefined {
  if (change === null) return undefined;
  const isStructured = schema?.type === 'object' || schema?.type === 'map';
  const field = schema?.type === 'object' ? schema.fields.get(key) : undefined;
  const inner = isStructured ? memberSchema(schema, key) : undefined;
  const isList = change === undefined || Array.isArray(change);
  if (isList && field && inner?.type === 'list' && field.patchStrategies.includes('merge')) {
    return mergeList(field, inner.items, Array.isArray(before) ? before : [], listChange(patch, key));
  }
  if (change === undefined) return before;
  if (isJsonObject(change)) return mergeObject(inner, isJsonObject(before) ? before : {}, change);
  return cloneJson(change);
}

interface ListChange {
  readonly items: JsonArray;
  readonly removed: JsonArray;
  readonly order: JsonArray | undefined;
}

function listChange(patch: JsonObject, key: string): ListChange {
  const list = (name: string): JsonArray | undefined => {
    const value = ownValue(patch, name);
    return Array.isArray(value) ? value : undefined;
  };
  return {
    items: list(key) ?? [],
    removed: list(`${DELETE_FROM}${key}`) ?? [],
    order: list(`${ORDER}${key}`),
  };
}

function mergeList(field: Field, items: Schema, before: JsonArray, change: ListChange): JsonArray {
  if (field.mergeKey === '') {
    const kept = [...before, ...change.items].filter((item) => !includes(change.removed, item));
    const merged = kept.filter((item, index) => kept.findIndex((other) => jsonEquals(other, item)) === index);
    return ordered(merged, { before, order: change.order ?? change.items }, jsonEquals);
  }
  const isSame = (a: JsonValue, b: JsonValue): boolean => isSameItem(a, b, field.mergeKey);
  let result = [...before];
  if (change.items.some((item) => isJsonObject(item) && isReplaceMark(item))) result = [];
  for (const item of change.items) {
    if (!isJsonObject(item)) throw badRequest(`list item of ${field.name} in the patch is not an object`);
    if (isReplaceMark(item)) continue;
    if (ownValue(item, field.mergeKey) === undefined) {
      throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${field.mergeKey}`);
    }
    const at = result.findIndex((existing) => isSame(existing, item));
    if (directive(item) === 'delete') {
      result = result.filter((existing) => !isSame(existing, item));
    } else if (at < 0) {
      result.push(withoutDirectives(item));
    } else {
      const existing = result[at];
      result[at] = mergeObject(items, isJsonObject(existing) ? existing : {}, item);
    }
  }
  return ordered(result, { before, order: change.order ?? change.items }, isSame);
}

/**
 * The items that the patch speaks of in its order, the others in theirs, each of these before the first of those that it preceded
 * until now.
 */
function ordered(
  items: JsonArray,
  { before, order }: { before: JsonArray; order: JsonArray },
  isSame: (a: JsonValue, b: JsonValue) => boolean,
): JsonArray {
  const rankIn = (list: JsonArray, item: JsonValue): number => list.findIndex((other) => isSame(item, other));
  const named = items
    .filter((item) => rankIn(order, item) >= 0)
    .sort((a, b) => rankIn(order, a) - rankIn(order, b));
  const others = items.filter((item) => rankIn(order, item) < 0);
  const result: JsonArray = [];
  for (;;) {
    const [next, other] = [named[0], others[0]];
    if (next === undefined || other === undefined) return [...result, ...named, ...others];
    const [nextRank, otherRank] = [rankIn(before, next), rankIn(before, other)];
    const isOtherFirst = nextRank >= 0 && otherRank >= 0 && otherRank < nextRank;
    result.push((isOtherFirst ? others.shift() : named.shift()) ?? null);
  }
}

/** `{"$patch": "replace"}` alone in a list: the list is replaced by the other items. */
function isReplaceMark(item: JsonObject): boolean {
  return directive(item) === 'replace' && Object.keys(item).length === 1;
}

function isSameItem(a: JsonValue, b: JsonValue, key: string): boolean {
  return isJsonObject(a) && isJsonObject(b) && jsonEquals(ownValue(a, key), ownValue(b, key));
}

function includes(list: JsonArray, value: JsonValue): boolean {
  return list.some((item) => jsonEquals(item, value));
}

function directive(patch: JsonObject): string {
  const value = ownValue(patch, '$patch');
  return typeof value === 'string' ? value : '';
}

/** The members that a patch speaks of, those of list directives included. */
function memberKeys(patch: JsonObject): Set<string> {
  const keys = new Set<string>();
  for (const key of Object.keys(patch)) {
    if (key.startsWith(DELETE_FROM)) keys.add(key.slice(DELETE_FROM.length));
    else if (key.startsWith(ORDER)) keys.add(key.slice(ORDER.length));
    else if (!key.startsWith('$')) keys.add(key);
  }
  return keys;
}

/** A copy of what a patch adds: nulls delete nothing that is not there, directives are no data. */
function withoutDirectives(patch: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const key of Object.keys(patch)) {
    const value = patch[key] ?? null;
    if (value === null || key.startsWith('$')) continue;
    setOwn(copy, key, cleaned(value));
  }
  return copy;
}

function cleaned(value: JsonValue): JsonValue {
  if (isJsonObject(value)) return withoutDirectives(value);
  if (!Array.isArray(value)) return value;
  return value
    .filter((item) => !isJsonObject(item) || directive(item) === '')
    .map((item) => (isJsonObject(item) ? withoutDirectives(item) : item));
}
