/** Fields of typed objects: enumerating, comparing, merging and removing them. */

import {
  canonicalJson,
  cloneJson,
  isJsonObject,
  type JsonArray,
  jsonEquals,
  type JsonObject,
  type JsonValue,
  ownValue,
  setOwn,
} from '../../base/json.ts';
import { isLeaf, type ListSchema, memberSchema, type Schema } from '../schema/object-schema.ts';
import { type FieldSet, FieldSetBuilder } from './field-set.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly removed: FieldSet;
  readonly modified: FieldSet;
}

type Path = readonly string[];

/** Whether members merge individually; false for an unknown schema. */
function isStructured(schema: Schema | undefined): schema is Schema {
  return schema !== undefined && !isLeaf(schema);
}

/** Every field that `value` sets, as owned by the manager that applies it. */
export function fieldsOf(schema: Schema, value: JsonValue): FieldSet {
  const set = new FieldSetBuilder();
  walk(schema, value, [], set);
  return set.build();
}

function walk(schema: Schema | undefined, value: JsonValue, path: Path, set: FieldSetBuilder): void {
  if (!isStructured(schema) || typeof value !== 'object' || value === null) {
    set.insert(path);
    return;
  }
  for (const [edge, member] of members(schema, value)) {
    const at = [...path, edge];
    walk(member.schema, member.value, at, set);
    const isEmptyMap = isJsonObject(member.value) && Object.keys(member.value).length === 0;
    // Items and map entries are owned themselves; a field of an object only through its members.
    if (isEmptyMap || schema.type !== 'object') set.insert(at);
  }
}

interface Member {
  readonly schema: Schema | undefined;
  readonly value: JsonValue;
}

/** The members of a map, an object or a keyed list, by their edge in a field set. */
function members(schema: Schema, value: JsonValue | undefined): Map<string, Member> {
  const found = new Map<string, Member>();
  if (schema.type === 'list') {
    if (!Array.isArray(value)) return found;
    for (const item of value) found.set(itemEdge(schema, item), { schema: schema.items, value: item });
  } else if (schema.type !== 'scalar' && isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      found.set(`f:${key}`, { schema: memberSchema(schema, key), value: value[key] ?? null });
    }
  }
  return found;
}

function itemEdge(schema: ListSchema, item: JsonValue): string {
  if (schema.listType === 'set') return `v:${canonicalJson(item)}`;
  const key: JsonObject = {};
  if (isJsonObject(item)) {
    for (const name of schema.keys) {
      const value = ownValue(item, name) ?? schema.keyDefaults[name];
      if (value !== undefined) key[name] = value;
    }
  }
  return `k:${canonicalJson(key)}`;
}

export function compare(schema: Schema, before: JsonValue, after: JsonValue): Comparison {
  const sets = {
    added: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
  };
  compareAt(schema, { before, after }, [], sets);
  return { added: sets.added.build(), removed: sets.removed.build(), modified: sets.modified.build() };
}

interface Pair {
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

function compareAt(
  schema: Schema | undefined,
  pair: Pair,
  path: Path,
  sets: Record<keyof Comparison, FieldSetBuilder>,
): void {
  const { before, after } = pair;
  if (before === undefined) sets.added.insert(path);
  else if (after === undefined) sets.removed.insert(path);
  if (!isStructured(schema) || (hasNoMembers(before) && hasNoMembers(after))) {
    const isBoth = before !== undefined && after !== undefined;
    if (isBoth && !jsonEquals(before, after)) sets.modified.insert(path);
    return;
  }
  const left = members(schema, before);
  const right = members(schema, after);
  for (const edge of new Set([...left.keys(), ...right.keys()])) {
    const [was, is] = [left.get(edge), right.get(edge)];
    compareAt((was ?? is)?.schema, { before: was?.value, after: is?.value }, [...path, edge], sets);
  }
}

function hasNoMembers(value: JsonValue | undefined): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** A copy of `live` with everything that `config` sets. */
export function mergeApplied(schema: Schema, live: JsonValue | undefined, config: JsonValue): JsonValue {
  if (!isStructured(schema)) return cloneJson(config);
  if (schema.type === 'list') return mergeItems(schema, Array.isArray(live) ? live : [], config);
  if (schema.type === 'scalar' || !isJsonObject(config)) return cloneJson(config);
  const result: JsonObject = isJsonObject(live) ? cloneJson(live) : {};
  for (const key of Object.keys(config)) {
    const inner = memberSchema(schema, key);
    const value = config[key] ?? null;
    setOwn(result, key, inner ? mergeApplied(inner, ownValue(result, key), value) : cloneJson(value));
  }
  return result;
}

function byEdge(schema: ListSchema, items: JsonArray): Map<string, JsonValue> {
  return new Map(items.map((item) => [itemEdge(schema, item), item]));
}

function mergeItems(schema: ListSchema, live: JsonArray, config: JsonValue): JsonArray {
  const before = byEdge(schema, live);
  const applied = byEdge(schema, Array.isArray(config) ? config : []);
  return mergedOrder([...before.keys()], [...applied.keys()]).map((edge) => {
    const item = applied.get(edge);
    return item === undefined
      ? cloneJson(before.get(edge) ?? null)
      : mergeApplied(schema.items, before.get(edge), item);
  });
}

/**
 * `value` without the fields of `removed`, unless they, or fields below them, are in `kept`. A container that was owned and is empty now is
 * removed too.
 */
export function removeFields(schema: Schema, value: JsonValue, removed: FieldSet, kept: FieldSet): JsonValue {
  if (schema.type === 'list' && Array.isArray(value)) {
    return value.flatMap((item) => {
      const edge = itemEdge(schema, item);
      const left = removeMember({ schema: schema.items, value: item }, edge, removed, kept);
      return left === undefined ? [] : [left];
    });
  }
  if (schema.type === 'scalar' || schema.type === 'list' || !isJsonObject(value)) return value;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = { schema: memberSchema(schema, key), value: value[key] ?? null };
    const left = removeMember(member, `f:${key}`, removed, kept);
    if (left !== undefined) setOwn(result, key, left);
  }
  return result;
}

function removeMember(
  member: Member,
  edge: string,
  removed: FieldSet,
  kept: FieldSet,
): JsonValue | undefined {
  const minus = removed.children.get(edge);
  if (!minus) return member.value;
  const keep = kept.children.get(edge);
  const isKept = keep !== undefined && !keep.isEmpty;
  if (minus.isMember && !isKept) return undefined;
  if (!isStructured(member.schema)) return member.value;
  const left = removeFields(member.schema, member.value, minus, keep ?? new FieldSetBuilder().build());
  return hasNoMembers(left) && !isKept ? undefined : left;
}

/**
 * The items of both lists, each once: those of `applied` in their order, the others of `live` next to their former neighbours. This is the
 * order of structured-merge-diff, which a kube-apiserver uses.
 */
function mergedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const isLive = new Set(live);
  const isApplied = new Set(applied);
  const shared = applied.filter((item) => isLive.has(item));
  /** Index in `shared` of the next item to add. */
  let nextShared = 0;
  const merged = new Set<string>();
  let at = 0;
  for (const next of applied) {
    // An item of both lists is skipped until it is the next shared one.
    for (; at < live.length && live[at] !== next; at++) {
      const item = live[at] ?? '';
      if (!isApplied.has(item)) merged.add(item);
      else if (nextShared === shared.length || shared[nextShared] === item) break;
    }
    if (nextShared === shared.length || live[at] === next) at++;
    merged.add(next);
    if (shared[nextShared] === next) nextShared++;
  }
  for (const item of live.slice(at)) merged.add(item);
  return [...merged];
}
