/** The part of both objects that a program reads, extracted once per request, so that only this part is sent and used as cache key. If
 * possible, it is a list of the values at the ends of the read paths, from which the realm builds objects of the same shape; otherwise the
 * pruned objects.
 */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ObjectContext, ReadSet } from './types.ts';

export interface Projected {
  /** The value at the end of each path, in the projection's order; undefined if an object lacks one of them. */
  readonly leaves: readonly JsonValue[] | undefined;
  /** The pruned objects if there are no leaves; null if there is no object or it is not read. */
  readonly hostObject: JsonValue;
  readonly virtualObject: JsonValue;
}

type Path = readonly string[];

export const NOTHING: Projected = { leaves: undefined, hostObject: null, virtualObject: null };

export class Projection {
  /** Neither object is read. */
  readonly isEmpty: boolean;
  /** Sources of functions `(leaves, at)` that build an object from columns of leaves; null if the object is not read. Undefined if a whole
   * object is read.
   */
  readonly builders: { readonly host: string | null; readonly virtual: string | null } | undefined;
  readonly #host: readonly Path[];
  readonly #virtual: readonly Path[];

  constructor({ hostObject, virtualObject }: ReadSet) {
    this.#host = hostObject;
    this.#virtual = virtualObject;
    this.isEmpty = hostObject.length === 0 && virtualObject.length === 0;
    const isWhole = [...hostObject, ...virtualObject].some((path) => path.length === 0);
    if (!this.isEmpty && !isWhole) {
      this.builders = {
        host: builderSource(hostObject, 0),
        virtual: builderSource(virtualObject, hostObject.length),
      };
    }
  }

  cut({ hostObject, virtualObject }: ObjectContext): Projected {
    if (this.isEmpty) return NOTHING;
    const leaves: JsonValue[] = [];
    if (
      this.builders !== undefined &&
      pick(hostObject, this.#host, leaves) &&
      pick(virtualObject, this.#virtual, leaves)
    ) {
      return { leaves, hostObject: null, virtualObject: null };
    }
    return {
      leaves: undefined,
      hostObject: prune(hostObject, this.#host),
      virtualObject: prune(virtualObject, this.#virtual),
    };
  }

  /** The part as objects, built from leaves if necessary. */
  pruned({ leaves, hostObject, virtualObject }: Projected): {
    hostObject: JsonValue;
    virtualObject: JsonValue;
  } {
    if (leaves === undefined) return { hostObject, virtualObject };
    const virtualLeaves = leaves.slice(this.#host.length);
    return {
      hostObject: objectFromLeaves(this.#host, leaves),
      virtualObject: objectFromLeaves(this.#virtual, virtualLeaves),
    };
  }

  /** True if the program can keep a reference to one of these objects, which then must be frozen. Only values at the ends of paths can be
   * referenced, because the read set contains every use.
   */
  escapes({ leaves, hostObject, virtualObject }: Projected): boolean {
    if (leaves !== undefined) return leaves.some((leaf) => typeof leaf === 'object' && leaf !== null);
    return endsInObject(hostObject, this.#host) || endsInObject(virtualObject, this.#virtual);
  }
}

/** Appends the value at the end of each path; false when there is none. */
function pick(object: JsonObject | null, paths: readonly Path[], leaves: JsonValue[]): boolean {
  for (let i = 0; i < paths.length; i++) {
    const path = paths[i] ?? [];
    let at: JsonValue | undefined = object;
    for (let k = 0; k < path.length; k++) {
      // Lists are sent as a whole, because their members such as `length` cannot be extracted.
      if (!isJsonObject(at)) return false;
      at = ownValue(at, path[k] ?? '');
    }
    if (at === undefined) return false;
    leaves.push(at);
  }
  return true;
}

function prune(object: JsonObject | null, paths: readonly Path[]): JsonValue {
  if (object === null || paths.length === 0) return null;
  if (paths.some((path) => path.length === 0)) return object;
  const part: JsonObject = {};
  for (const [key, below] of byFirstKey(paths)) {
    const value = ownValue(object, key);
    if (value === undefined) continue;
    setOwn(part, key, isJsonObject(value) ? prune(value, below) : value);
  }
  return part;
}

/** Builds the object with these values at the ends of these paths; null without paths. */
function objectFromLeaves(paths: readonly Path[], leaves: readonly JsonValue[]): JsonValue {
  if (paths.length === 0) return null;
  const root: JsonObject = {};
  for (const [i, path] of paths.entries()) {
    let at = root;
    for (const key of path.slice(0, -1)) {
      const known = ownValue(at, key);
      const next: JsonObject = isJsonObject(known) ? known : {};
      setOwn(at, key, next);
      at = next;
    }
    setOwn(at, path.at(-1) ?? '', leaves[i] ?? null);
  }
  return root;
}

/** Groups the paths by their first key. */
function byFirstKey(paths: readonly Path[]): Map<string, Path[]> {
  const tree = new Map<string, Path[]>();
  for (const [key = '', ...rest] of paths) {
    const known = tree.get(key);
    if (known === undefined) tree.set(key, [rest]);
    else known.push(rest);
  }
  return tree;
}

function endsInObject(part: JsonValue, paths: readonly Path[]): boolean {
  return paths.some((path) => {
    let at: JsonValue | undefined = part;
    for (const key of path) {
      if (!isJsonObject(at)) break;
      at = ownValue(at, key);
    }
    return typeof at === 'object' && at !== null;
  });
}

function builderSource(paths: readonly Path[], firstLeaf: number): string | null {
  if (paths.length === 0) return null;
  const leaves = paths.map((path, i) => [path, `leaves[${firstLeaf + i}][at]`] as const);
  return `function (leaves, at) { return ${literalSource(leaves)}; }`;
}

function literalSource(leaves: readonly (readonly [path: Path, source: string])[]): string {
  const members = new Map<string, (readonly [Path, string])[]>();
  for (const [[key = '', ...rest], source] of leaves) {
    const known = members.get(key) ?? [];
    members.set(key, [...known, [rest, source]]);
  }
  const parts = [...members].map(([key, below]) => {
    const [first] = below;
    const value = first?.[0].length === 0 ? first[1] : literalSource(below);
    // In brackets, because an unbracketed `__proto__` would set the prototype.
    return `[${JSON.stringify(key)}]: ${value}`;
  });
  return `{ ${parts.join(', ')} }`;
}
