/** The matches of a path in an object, and the object with other values there. One traversal does both: inputs are not modified, and unchanged parts
 * are shared with them. */

import { type Segment, isForbiddenKey } from './path-syntax.ts';
import { copyOf, withMember } from '../translate/paths.ts';
import {
  type JsonArray,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  ownValue,
  setOwn,
} from '../../base/json.ts';
import type { ConcretePath } from '../translate/types.ts';

export interface Path {
  readonly segments: readonly Segment[];
  /** Wildcards and filters do not match these places. */
  readonly isProtected?: (place: ConcretePath) => boolean;
  /** A last key that an existing map does not have is matched, too. Indices and wildcards match what is there. */
  readonly matchesMissing?: boolean;
  /** Of the filters in the path, in order. A filter without a selection matches every element and member, as a wildcard does. */
  readonly selections?: readonly Selection[];
}

/** What one filter selects in one object: by list or map, the indices or keys of its members. */
export type Selection = ReadonlyMap<JsonValue, ReadonlySet<string | number>>;

export function valuesOf(path: Path, root: JsonValue): readonly (JsonValue | undefined)[] {
  const values: (JsonValue | undefined)[] = [];
  new Walk(path, { values }).root(root);
  return values;
}

export function locate(path: Path, root: JsonValue): readonly ConcretePath[] {
  const places: ConcretePath[] = [];
  new Walk(path, { places }).root(root);
  return places;
}

/** null and undefined delete the member or the element. Undefined only for the empty path. */
export function replace(
  path: Path,
  root: JsonValue,
  results: readonly (JsonValue | undefined)[],
): JsonValue | undefined {
  return new Walk(path, { results }).root(root);
}

/** As `replace`, with what `change` returns for each match, in order. Its place is given if it `hasPlaces`. */
export function change(
  path: Path,
  root: JsonValue,
  with_: Change,
  hasPlaces: boolean,
): JsonValue | undefined {
  return new Walk(path, { change: with_, hasPlaces }).root(root);
}

/** The place is valid during the call. */
export type Change = (value: JsonValue | undefined, place: ConcretePath) => JsonValue | undefined;

/** Sets every match of the path on either side to the value in `other`; values that `other` does not have are deleted. */
export function overlay(path: Path, root: JsonValue, other: JsonValue | undefined): JsonValue | undefined {
  return new Walk(path, { isOverlay: true }).root(root, other);
}

/** What a walk does with the matches: one of these. */
interface Use {
  readonly change?: Change;
  readonly hasPlaces?: boolean;
  readonly values?: (JsonValue | undefined)[];
  readonly places?: ConcretePath[];
  readonly results?: readonly (JsonValue | undefined)[];
  /** The values of the other object replace the matches, and what only the other object has is added. */
  readonly isOverlay?: boolean;
}

const NO_PLACE: ConcretePath = [];

type OneStep = Extract<Segment, { readonly index: number | undefined }>;

class Walk {
  readonly #path: Path;
  readonly #values: (JsonValue | undefined)[] | undefined;
  readonly #places: ConcretePath[] | undefined;
  readonly #results: readonly (JsonValue | undefined)[] | undefined;
  readonly #change: Change | undefined;
  readonly #isOverlay: boolean;
  readonly #last: number;
  readonly #place: (string | number)[] | undefined;
  #nextResult = 0;

  constructor(path: Path, { values, places, results, change: with_, hasPlaces, isOverlay = false }: Use) {
    this.#path = path;
    this.#change = with_;
    this.#values = values;
    this.#places = places;
    this.#results = results;
    this.#isOverlay = isOverlay;
    this.#last = path.segments.length - 1;
    const tracks = places !== undefined || hasPlaces === true || path.isProtected !== undefined;
    this.#place = tracks ? [] : undefined;
  }

  root(root: JsonValue, other?: JsonValue): JsonValue | undefined {
    return this.#last < 0 ? this.#replaced(root, other) : this.#below(root, 0, other);
  }

  /** What replaces a match; undefined deletes it. `theirs`: what the other object has there. */
  #replaced(value: JsonValue | undefined, theirs: JsonValue | undefined): JsonValue | undefined {
    if (this.#change !== undefined) return this.#change(value, this.#place ?? NO_PLACE) ?? undefined;
    if (this.#isOverlay) return theirs;
    if (this.#results !== undefined) return this.#results[this.#nextResult++] ?? undefined;
    this.#values?.push(value);
    this.#places?.push(this.#place?.slice() ?? []);
    return value;
  }

  #below(node: JsonValue, depth: number, theirs: JsonValue | undefined): JsonValue {
    const segment = this.#path.segments[depth];
    if (segment === undefined || typeof node !== 'object' || node === null) return node;
    if (segment.kind === 'key' || segment.kind === 'index')
      return this.#changeOne(node, segment, depth, theirs);
    const selection = segment.kind === 'filter' ? this.#selection(depth) : undefined;
    return Array.isArray(node)
      ? this.#changeElements(node, selection, depth, theirs)
      : this.#changeMembers(node, selection, depth, theirs);
  }

  /** What becomes of a member or element that the segment at `depth` matches; undefined: it is deleted. */
  #changed(
    child: JsonValue | undefined,
    step: string | number,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonValue | undefined {
    if (this.#place !== undefined) this.#place[depth] = step;
    if (depth === this.#last) return this.#replaced(child, theirs);
    return child === undefined ? undefined : this.#below(child, depth + 1, theirs);
  }

  #changeOne(
    node: JsonArray | JsonObject,
    segment: OneStep,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonValue {
    const step = stepIn(node, segment);
    const child = memberOf(node, step);
    if (step === undefined || (child === undefined && !this.#canAdd(node, step, depth))) return node;
    const other = theirs === undefined ? undefined : memberOf(theirs, stepIn(theirs, segment));
    const result = this.#changed(child, step, depth, other);
    if (result === child) return node;
    if (Array.isArray(node)) return withElement(node, Number(step), result);
    if (result === undefined) return withMember(node, String(step), result);
    const copy = copyOf(node);
    copy[step] = result; // no segment is called `__proto__`
    return copy;
  }

  #changeElements(
    array: JsonArray,
    selection: Selection | undefined,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonArray {
    const other = Array.isArray(theirs) ? theirs : [];
    if (this.#isOverlay && depth === this.#last) {
      const others = array.filter((_, index) => !isSelected(selection, array, index));
      return [...others, ...other.filter((_, index) => isSelected(selection, other, index))];
    }
    let copy: JsonArray | undefined;
    let kept = 0;
    for (let index = 0; index < array.length; index++) {
      const element = array[index] ?? null;
      const result = isSelected(selection, array, index)
        ? this.#changed(element, index, depth, theirs === undefined ? undefined : other[index])
        : element;
      if (copy === undefined && result !== element) copy = array.slice();
      if (result === undefined) continue;
      if (copy !== undefined) copy[kept] = result;
      kept++;
    }
    if (copy === undefined) return array;
    if (kept < copy.length) copy.length = kept;
    return copy;
  }

  #changeMembers(
    object: JsonObject,
    selection: Selection | undefined,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonObject {
    const other = isJsonObject(theirs) ? theirs : {};
    const adds = this.#isOverlay && depth === this.#last;
    const keys = adds ? Object.keys({ ...object, ...other }) : Object.keys(object);
    let copy: JsonObject | undefined;
    for (const key of keys) {
      if (!isSelected(selection, object, key) && !isSelected(selection, other, key)) continue;
      if (isForbiddenKey(key) || this.#isProtected(key, depth)) continue;
      const member = ownValue(object, key);
      const result = this.#changed(member, key, depth, ownValue(other, key));
      if (result === member) continue;
      copy ??= copyOf(object);
      if (result === undefined) delete copy[key];
      else setOwn(copy, key, result);
    }
    return copy ?? object;
  }

  /** A member can be added to any object, an element of the other object only at the end of an array. */
  #canAdd(node: JsonArray | JsonObject, step: string | number, depth: number): boolean {
    if (depth !== this.#last) return false;
    if (Array.isArray(node)) return this.#isOverlay && step === node.length;
    return this.#isOverlay || this.#path.matchesMissing === true;
  }

  #selection(depth: number): Selection | undefined {
    const before = this.#path.segments.slice(0, depth).filter(({ kind }) => kind === 'filter');
    return this.#path.selections?.[before.length];
  }

  #isProtected(key: string, depth: number): boolean {
    const { isProtected } = this.#path;
    return isProtected !== undefined && isProtected([...(this.#place?.slice(0, depth) ?? []), key]);
  }
}

function isSelected(selection: Selection | undefined, node: JsonValue, step: string | number): boolean {
  return selection === undefined || selection.get(node)?.has(step) === true;
}

function stepIn(node: JsonValue | undefined, segment: OneStep): string | number | undefined {
  if (Array.isArray(node)) return segment.index;
  return segment.kind === 'key' ? segment.key : undefined;
}

/** Reads without a search for own properties, which is slow: JSON has no functions, so a function is a property of the prototype. */
function memberOf(node: JsonValue | undefined, step: string | number | undefined): JsonValue | undefined {
  if (typeof step === 'number') return Array.isArray(node) ? node[step] : undefined;
  if (step === undefined || !isJsonObject(node)) return undefined;
  const member = node[step];
  return typeof member === 'function' ? undefined : member;
}

function withElement(array: JsonArray, index: number, element: JsonValue | undefined): JsonArray {
  const copy = array.slice();
  if (element === undefined) copy.splice(index, 1);
  else copy[index] = element;
  return copy;
}
