/** The matches of a path in an object, and the object with other values there. One traversal does both: inputs are not modified, and unchanged parts
 * are shared with them. */

import { type Segment, isForbiddenKey } from './path-syntax.ts';
import { shallowCopy, withMember } from '../translate/paths.ts';
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
  /** Matches are changed without their places, and only where they exist. */
  readonly #isPlain: boolean;
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
    this.#isPlain = with_ !== undefined && !tracks && path.matchesMissing !== true;
  }

  root(root: JsonValue, other?: JsonValue): JsonValue | undefined {
    return this.#last < 0 ? this.#replaced(root, other) : this.#below(root, 0, other, true);
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

  /** `isElement`: of a list, or the root. */
  #below(node: JsonValue, depth: number, theirs: JsonValue | undefined, isElement: boolean): JsonValue {
    const segment = this.#path.segments[depth];
    if (segment === undefined || typeof node !== 'object' || node === null) return node;
    const isOne = segment.kind === 'key' || segment.kind === 'index';
    if (Array.isArray(node)) {
      if (isOne) return this.#changeElement(node, segment, depth, theirs);
      if (depth === this.#last - 1 && segment.kind === 'wildcard' && this.#isPlain)
        return this.#changeInElements(node, depth);
      return this.#changeElements(node, this.#selection(segment, depth), depth, theirs);
    }
    return isOne
      ? this.#changeMember(node, segment, depth, theirs, isElement)
      : this.#changeMembers(node, this.#selection(segment, depth), depth, theirs);
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
    return child === undefined ? undefined : this.#below(child, depth + 1, theirs, typeof step === 'number');
  }

  #changeMember(
    node: JsonObject,
    segment: OneStep,
    depth: number,
    theirs: JsonValue | undefined,
    isElement: boolean,
  ): JsonObject {
    if (segment.kind === 'index') return node;
    const { key } = segment;
    const child = valueOf(memberAt(depth, node, key));
    if (child === undefined && !this.#canAdd(depth)) return node;
    const result = this.#changed(child, key, depth, memberIn(theirs, segment));
    if (result === child) return node;
    return isElement ? withMemberAt(depth, node, key, result) : withMember(node, key, result);
  }

  #changeElement(
    array: JsonArray,
    segment: OneStep,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonArray {
    const { index } = segment;
    if (index === undefined) return array;
    const child = array[index];
    // An element of the other object can be added only at the end.
    const isAdded = this.#isOverlay && depth === this.#last && index === array.length;
    if (child === undefined && !isAdded) return array;
    const result = this.#changed(child, index, depth, memberIn(theirs, segment));
    return result === child ? array : withElement(array, index, result);
  }

  /**
   * One member of each element, as most paths end: without a call for each step, and with reads and writes of its own, which are fast where one
   * place in the code sees one key. In half the time.
   */
  #changeInElements(array: JsonArray, depth: number): JsonArray {
    const last = this.#path.segments[depth + 1];
    const change = this.#change;
    if (last?.kind !== 'key' || change === undefined)
      return this.#changeElements(array, undefined, depth, undefined);
    const { key } = last;
    let copy: JsonArray | undefined;
    for (let index = 0; index < array.length; index++) {
      const element = array[index];
      if (!isJsonObject(element)) continue;
      const child = valueOf(element[key]);
      if (child === undefined) continue;
      const result = change(child, NO_PLACE) ?? undefined;
      if (result === child) continue;
      copy ??= array.slice();
      copy[index] = withMemberAt(depth + 1, element, key, result);
    }
    return copy ?? array;
  }

  #changeElements(
    array: JsonArray,
    selection: Selection | undefined,
    depth: number,
    theirs: JsonValue | undefined,
  ): JsonArray {
    const other: JsonArray | undefined = Array.isArray(theirs) ? theirs : undefined;
    if (this.#isOverlay && depth === this.#last) {
      const others = array.filter((_, index) => !isSelected(selection, array, index));
      return [...others, ...(other ?? []).filter((_, index) => isSelected(selection, other ?? [], index))];
    }
    let copy: JsonArray | undefined;
    let kept = 0;
    for (let index = 0; index < array.length; index++) {
      const element = array[index] ?? null;
      const result = isSelected(selection, array, index)
        ? this.#changed(element, index, depth, other?.[index])
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
      copy ??= shallowCopy(object);
      if (result === undefined) delete copy[key];
      else setOwn(copy, key, result);
    }
    return copy ?? object;
  }

  /** A member can be added to any object. */
  #canAdd(depth: number): boolean {
    return depth === this.#last && (this.#isOverlay || this.#path.matchesMissing === true);
  }

  #selection({ kind }: Segment, depth: number): Selection | undefined {
    if (kind !== 'filter') return undefined;
    const before = this.#path.segments.slice(0, depth).filter((segment) => segment.kind === 'filter');
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

/** What the other object has there, whose list may be a map. */
function memberIn(node: JsonValue | undefined, segment: OneStep): JsonValue | undefined {
  if (Array.isArray(node)) return segment.index === undefined ? undefined : node[segment.index];
  return segment.kind === 'key' && isJsonObject(node) ? valueOf(node[segment.key]) : undefined;
}

/** Of a member that was read without a search for own properties, which is slow: JSON has no functions, so a function is a property of the prototype. */
function valueOf(member: JsonValue | undefined): JsonValue | undefined {
  return typeof member === 'function' ? undefined : member;
}

/** Objects at one depth, such as the addresses of all Endpoints, have few shapes, and most paths lead through the same keys. A place in the code that sees few
 * of them is several times faster, so each depth has its own. */
function memberAt(depth: number, object: JsonObject, key: string): JsonValue | undefined {
  switch (depth) {
    case 0:
      return object[key];
    case 2:
      return object[key];
    default:
      return object[key];
  }
}

/** By spreading, which is twice as fast as the `Object.assign` of `withMember` for at most four shapes, and slower beyond. No segment is called `__proto__`. */
function withMemberAt(
  depth: number,
  object: JsonObject,
  key: string,
  value: JsonValue | undefined,
): JsonObject {
  if (value === undefined) return withMember(object, key, value);
  let copy: JsonObject;
  switch (depth) {
    case 0:
      copy = { ...object };
      copy[key] = value;
      return copy;
    case 2:
      copy = { ...object };
      copy[key] = value;
      return copy;
    case 4:
      copy = { ...object };
      copy[key] = value;
      return copy;
    default:
      return withMember(object, key, value);
  }
}

function withElement(array: JsonArray, index: number, element: JsonValue | undefined): JsonArray {
  const copy = array.slice();
  if (element === undefined) copy.splice(index, 1);
  else copy[index] = element;
  return copy;
}
