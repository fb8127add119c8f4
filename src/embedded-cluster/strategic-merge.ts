/**
 * Strategic merge patch: a merge patch that uses the schema. Lists with a merge key merge item by item, merging lists of scalars are sets;
 * directives (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`) change this.
 */

import {
  canonicalJson,
  cloneJson,
  isJsonObject,
  ownValue,
  setOwn,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import { memberSchema, type Field, type Schema } from '../apiserver/schema/object-schema.ts';
import { badRequest } from '../apiserver/status.ts';

const DELETE_FROM = '$deleteFromPrimitiveList/';
const ORDER = '$setElementOrder/';

/** The merged object, which shares nothing with `patch`. Throws a 400 `StatusError` for an invalid directive. */
export function strategicMerge(
  schema: Schema | undefined,
  target: JsonObject,
  patch: JsonObject,
): JsonObject {
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
  const isRetained = Array.isArray(retained) ? new Set(retained) : undefined;
  for (const key of Object.keys(target)) {
    if (isRetained?.has(key) === false) continue;
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

/** The member after the patch; undefined when it is removed. */
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
  if (isJsonObject(change)) return strategicMerge(inner, isJsonObject(before) ? before : {}, change);
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

/** The identity of an item: its value, or that of its merge key. */
type Identity = (item: JsonValue) => string;

function mergeList(field: Field, items: Schema, before: JsonArray, change: ListChange): JsonArray {
  const order = change.order ?? change.items;
  if (field.mergeKey === '') {
    const removed = new Set(change.removed.map(canonicalJson));
    const kept = new Map<string, JsonValue>();
    for (const item of [...before, ...change.items]) {
      const identity = canonicalJson(item);
      if (!removed.has(identity) && !kept.has(identity)) kept.set(identity, item);
    }
    return ordered([...kept.values()], before, order, canonicalJson);
  }
  const identityOf: Identity = (item) =>
    isJsonObject(item) ? canonicalJson(ownValue(item, field.mergeKey) ?? null) : '';
  const isReplaced = change.items.some((item) => isJsonObject(item) && isReplaceMark(item));
  const result = new KeyedItems(isReplaced ? [] : before, identityOf);
  for (const item of change.items) {
    if (!isJsonObject(item)) throw badRequest(`list item of ${field.name} in the patch is not an object`);
    if (isReplaceMark(item)) continue;
    if (ownValue(item, field.mergeKey) === undefined) {
      throw badRequest(`a list item of ${field.name} does not contain declared merge key: ${field.mergeKey}`);
    }
    if (directive(item) === 'delete') result.delete(item);
    else result.merge(item, items);
  }
  return ordered(result.items(), before, order, identityOf);
}

/** List items by identity; several may have the same one. */
class KeyedItems {
  readonly #identityOf: Identity;
  readonly #items: (JsonValue | undefined)[] = [];
  readonly #positions = new Map<string, number[]>();

  constructor(items: JsonArray, identityOf: Identity) {
    this.#identityOf = identityOf;
    for (const item of items) this.#push(item);
  }

  /** Merges into the first item of the same identity, or appends. */
  merge(item: JsonObject, schema: Schema): void {
    const at = this.#positions.get(this.#identityOf(item))?.[0];
    if (at === undefined) {
      this.#push(withoutDirectives(item));
      return;
    }
    const existing = this.#items[at];
    this.#items[at] = strategicMerge(schema, isJsonObject(existing) ? existing : {}, item);
  }

  delete(item: JsonValue): void {
    const identity = this.#identityOf(item);
    for (const at of this.#positions.get(identity) ?? []) this.#items[at] = undefined;
    this.#positions.delete(identity);
  }

  items(): JsonArray {
    return this.#items.filter((item) => item !== undefined);
  }

  #push(item: JsonValue): void {
    const identity = this.#identityOf(item);
    const positions = this.#positions.get(identity);
    if (positions) positions.push(this.#items.length);
    else this.#positions.set(identity, [this.#items.length]);
    this.#items.push(item);
  }
}

/** The rank of an item: the index of the first item with the same identity; -1 without one. */
function rankIn(list: JsonArray, identityOf: Identity): (item: JsonValue) => number {
  const ranks = new Map<string, number>();
  for (const [index, item] of list.entries()) {
    const identity = identityOf(item);
    if (!ranks.has(identity)) ranks.set(identity, index);
  }
  return (item) => ranks.get(identityOf(item)) ?? -1;
}

/**
 * Items that the patch names are in the order of the patch, the others in their own, each before the first named item that it preceded.
 */
function ordered(items: JsonArray, before: JsonArray, order: JsonArray, identityOf: Identity): JsonArray {
  const rankInOrder = rankIn(order, identityOf);
  const rankBefore = rankIn(before, identityOf);
  const ranked = items.map((item) => ({ item, order: rankInOrder(item), before: rankBefore(item) }));
  const named = ranked.filter(({ order: rank }) => rank >= 0).sort((a, b) => a.order - b.order);
  const others = ranked.filter(({ order: rank }) => rank < 0);
  const result: JsonArray = [];
  let [nextAt, otherAt] = [0, 0];
  for (;;) {
    const [next, other] = [named[nextAt], others[otherAt]];
    if (next === undefined || other === undefined) break;
    const isOtherFirst = next.before >= 0 && other.before >= 0 && other.before < next.before;
    result.push(isOtherFirst ? other.item : next.item);
    if (isOtherFirst) otherAt++;
    else nextAt++;
  }
  for (const { item } of [...named.slice(nextAt), ...others.slice(otherAt)]) result.push(item);
  return result;
}

/** `{"$patch": "replace"}` as an item: the other items replace the list. */
function isReplaceMark(item: JsonObject): boolean {
  return directive(item) === 'replace' && Object.keys(item).length === 1;
}

function directive(patch: JsonObject): string {
  const value = ownValue(patch, '$patch');
  return typeof value === 'string' ? value : '';
}

/** The members that a patch names, including those of list directives. */
function memberKeys(patch: JsonObject): Set<string> {
  const keys = new Set<string>();
  for (const key of Object.keys(patch)) {
    if (key.startsWith(DELETE_FROM)) keys.add(key.slice(DELETE_FROM.length));
    else if (key.startsWith(ORDER)) keys.add(key.slice(ORDER.length));
    else if (!key.startsWith('$')) keys.add(key);
  }
  return keys;
}

/** A copy of a value that a patch adds, without nulls and directives. */
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
