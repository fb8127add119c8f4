/** Sets of fields as in `managedFields` (`FieldsV1`): a tree whose edges are `f:name`, `k:{"key":…}` and `v:value`. */

import {
  isJsonObject,
  setOwn,
  type JsonObject,
  type JsonValue,
  canonicalJson,
  cloneJson,
  type JsonArray,
  jsonEquals,
  ownValue,
} from '../../base/json.ts';
import { isLeaf, type ListSchema, memberSchema, type Schema } from '../schema/object-schema.ts';

export class FieldSet {
  /** The field itself is in the set, not only fields below it. */
  isMember: boolean;
  readonly children: Map<string, FieldSet>;

  constructor(isMember = false, children = new Map<string, FieldSet>()) {
    this.isMember = isMember;
    this.children = children;
  }

  /** Only while the set is built: later it may be shared. */
  insert(path: readonly string[], from = 0): this {
    const edge = path[from];
    if (edge === undefined) this.isMember = true;
    else this.#child(edge).insert(path, from + 1);
    return this;
  }

  /** Only while the set is built. Linear in the size of `set`; a union would copy the intermediate result each time. */
  insertAll(set: FieldSet): void {
    if (set.isMember) this.isMember = true;
    for (const [edge, child] of set.children) this.#child(edge).insertAll(child);
  }

  #child(edge: string): FieldSet {
    const child = this.children.get(edge) ?? new FieldSet();
    this.children.set(edge, child);
    return child;
  }

  get isEmpty(): boolean {
    return !this.isMember && this.children.size === 0;
  }

  /** Number of fields below this one, members or not. */
  get size(): number {
    let size = this.children.size;
    for (const child of this.children.values()) size += child.size;
    return size;
  }

  union(other: FieldSet): FieldSet {
    return unionOf([this, other]);
  }

  difference(other: FieldSet): FieldSet {
    return new FieldSet(
      this.isMember && !other.isMember,
      mapChildren(this, (edge, set) => {
        const minus = other.children.get(edge);
        return minus ? set.difference(minus) : set;
      }),
    );
  }

  intersection(other: FieldSet): FieldSet {
    return new FieldSet(
      this.isMember && other.isMember,
      mapChildren(this, (edge, set) => {
        const both = other.children.get(edge);
        return both ? set.intersection(both) : EMPTY;
      }),
    );
  }

  without(edge: string): FieldSet {
    return new FieldSet(
      this.isMember,
      mapChildren(this, (at, set) => (at === edge ? EMPTY : set)),
    );
  }

  equals(other: FieldSet): boolean {
    return this.difference(other).isEmpty && other.difference(this).isEmpty;
  }

  /**
   * Every member, in the notation of error messages: `.spec.ports[port=80,protocol="TCP"].name`. At each level the members come before
   * the fields below them.
   */
  paths(): string[] {
    const found: string[] = [];
    collect(this, '', found);
    return found;
  }
}

const EMPTY = new FieldSet();

export function unionOf(sets: readonly FieldSet[]): FieldSet {
  const all = new FieldSet();
  for (const set of sets) all.insertAll(set);
  return all;
}

function mapChildren(
  set: FieldSet,
  change: (edge: string, set: FieldSet) => FieldSet,
): Map<string, FieldSet> {
  const children = new Map<string, FieldSet>();
  for (const [edge, child] of set.children) {
    const changed = change(edge, child);
    if (!changed.isEmpty) children.set(edge, changed);
  }
  return children;
}

function collect(set: FieldSet, path: string, found: string[]): void {
  const children = [...set.children].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [edge, child] of children) if (child.isMember) found.push(path + edgeText(edge));
  for (const [edge, child] of children) collect(child, path + edgeText(edge), found);
}

function edgeText(edge: string): string {
  const rest = edge.slice(2);
  if (edge.startsWith('f:')) return `.${rest}`;
  if (edge.startsWith('v:')) return `[=${rest}]`;
  const key = JSON.parse(rest) as JsonObject; // written by keyEdge
  const parts = Object.keys(key).map((name) => `${name}=${JSON.stringify(key[name])}`);
  return `[${parts.join(',')}]`;
}

export function toFieldsV1(set: FieldSet): JsonObject {
  const json: JsonObject = {};
  if (set.isMember && set.children.size > 0) json['.'] = {};
  for (const edge of [...set.children.keys()].sort()) {
    const child = set.children.get(edge);
    if (child) setOwn(json, edge, toFieldsV1(child));
  }
  return json;
}

export function fromFieldsV1(json: JsonValue | undefined): FieldSet | undefined {
  if (!isJsonObject(json)) return undefined;
  const root = parseNode(json);
  return root && new FieldSet(false, new Map(root.children));
}

function parseNode(json: JsonObject): FieldSet | undefined {
  const children = new Map<string, FieldSet>();
  const edges = Object.keys(json);
  for (const edge of edges) {
    const value = json[edge];
    if (!isJsonObject(value)) return undefined;
    if (edge === '.') continue;
    const child = isEdge(edge) ? parseNode(value) : undefined;
    if (!child) return undefined;
    children.set(edge, child);
  }
  return new FieldSet(edges.length === 0 || Object.hasOwn(json, '.'), children);
}

function isEdge(edge: string): boolean {
  if (/^f:./s.test(edge) || /^i:\d+$/.test(edge)) return true;
  if (!/^[kv]:/.test(edge)) return false;
  try {
    const value: unknown = JSON.parse(edge.slice(2));
    return edge.startsWith('v:') || isJsonObject(value);
  } catch {
    return false;
  }
}

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
  const set = new FieldSet();
  walk(schema, value, [], set);
  return set;
}

function walk(schema: Schema | undefined, value: JsonValue, path: Path, set: FieldSet): void {
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
  const sets = { added: new FieldSet(), removed: new FieldSet(), modified: new FieldSet() };
  compareAt(schema, { before, after }, [], sets);
  return sets;
}

interface Pair {
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

function compareAt(schema: Schema | undefined, pair: Pair, path: Path, sets: Comparison): void {
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
  const left = removeFields(member.schema, member.value, minus, keep ?? EMPTY);
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
