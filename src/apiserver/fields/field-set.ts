/** Sets of fields as in `managedFields` (`FieldsV1`): a tree whose edges are `f:name`, `k:{"key":…}` and `v:value`. */

import { isJsonObject, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';

export class FieldSet {
  /** The field itself is in the set, not only fields below it. */
  readonly isMember: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;

  constructor(isMember: boolean, children: ReadonlyMap<string, FieldSet> = new Map()) {
    this.isMember = isMember;
    this.children = children;
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
    const children = new Map(this.children);
    for (const [edge, set] of other.children) children.set(edge, children.get(edge)?.union(set) ?? set);
    return new FieldSet(this.isMember || other.isMember, children);
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

  /** Without the field `edge` and everything below it. */
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

const EMPTY = new FieldSet(false);

export function emptySet(): FieldSet {
  return EMPTY;
}

/** Linear in the size of all sets; repeated unions would copy the intermediate result each time. */
export function unionOf(sets: readonly FieldSet[]): FieldSet {
  const all = new FieldSetBuilder();
  for (const set of sets) all.insertAll(set);
  return all.build();
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

/** Collects members one by one. */
export class FieldSetBuilder {
  readonly #children = new Map<string, FieldSetBuilder>();
  #isMember = false;

  insert(path: readonly string[], from = 0): void {
    const edge = path[from];
    if (edge === undefined) this.#isMember = true;
    else this.#child(edge).insert(path, from + 1);
  }

  insertAll(set: FieldSet): void {
    if (set.isMember) this.#isMember = true;
    for (const [edge, child] of set.children) this.#child(edge).insertAll(child);
  }

  #child(edge: string): FieldSetBuilder {
    let child = this.#children.get(edge);
    if (!child) {
      child = new FieldSetBuilder();
      this.#children.set(edge, child);
    }
    return child;
  }

  build(): FieldSet {
    const children = new Map<string, FieldSet>();
    for (const [edge, builder] of this.#children) children.set(edge, builder.build());
    return new FieldSet(this.#isMember, children);
  }
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

/** Undefined when `json` is not a `FieldsV1`. */
export function fromFieldsV1(json: JsonValue | undefined): FieldSet | undefined {
  if (!isJsonObject(json)) return undefined;
  const root = parseNode(json);
  return root && new FieldSet(false, root.children);
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
