/** A compiled path, which runs on every object: a chain of steps that collects the matches, and a second pass over the same object
 * that replaces them with the results. Inputs are not modified; unchanged parts are shared with the input.
 */

import { type Segment, joinStep, isForbiddenKey } from './path-syntax.ts';
import {
  type JsonValue,
  type JsonObject,
  isJsonObject,
  ownValue,
  setOwn,
  type JsonArray,
  valueAt,
} from '../../base/json.ts';
import type { ConcretePath } from '../translate/types.ts';

/** The matches of one path in one object, in the order in which results are expected. */
interface Matches {
  /** Undefined: a key that is missing, see {@link MissingPaths}. */
  readonly values: (JsonValue | undefined)[];
  /** Printed concrete paths; undefined when they are not needed, because they cost more than the walk. */
  readonly paths: string[] | undefined;
}

/** Members that no wildcard matches, because no patch may change them. */
interface ProtectedKeys {
  isBookkeepingAnnotation(key: string): boolean;
  isBookkeepingLabel(key: string): boolean;
}

/** For paths that no patch changes anything at. */
export const NO_PROTECTED_KEYS: ProtectedKeys = {
  isBookkeepingAnnotation: () => false,
  isBookkeepingLabel: () => false,
};

export interface PathWalker {
  values(root: JsonValue): JsonValue[];
  /** Like `values`, and the paths of the matches where they are needed. */
  collect(root: JsonValue, matches: Matches): void;
  /** The paths of the matches, in the order of `collect`. */
  locate(root: JsonValue): ConcretePath[];
  /** Replaces each match with its result; null and undefined delete the member or the element. `results` is in the order of `collect` on
   * the same object. Returns undefined only for the empty path.
   */
  replace(root: JsonValue, results: readonly (JsonValue | undefined)[]): JsonValue | undefined;
  /** Sets every match of the path on either side to the value in `other`; values that `other` does not have are deleted. */
  overlay(root: JsonValue, other: JsonValue | undefined): JsonValue | undefined;
}

/** `create`: a last key that an existing map does not have is matched too. Indices and wildcards match what is there. */
export type MissingPaths = 'skip' | 'create';

/** What one filter selects in one object: by list or map, the indices or keys of its members. */
export type Selection = ReadonlyMap<JsonValue, ReadonlySet<string | number>>;

interface WalkerOptions {
  readonly missingPaths?: MissingPaths;
  /** Of the filters in the path, in order. A filter without a selection matches every element and member, as a wildcard does. */
  readonly selections?: readonly Selection[];
}

/** `values` of the walker must not be called with `create`. */
export function compileWalker(
  segments: readonly Segment[],
  protectedKeys: ProtectedKeys,
  { missingPaths = 'skip', selections = [] }: WalkerOptions = {},
): PathWalker {
  const first = compileStep(segments, 0, 'root', { ...protectedKeys, missingPaths, selections });
  return {
    values(root) {
      const found: JsonValue[] = [];
      first.collect(root, found);
      return found;
    },
    collect(root, matches) {
      if (matches.paths === undefined) first.collect(root, matches.values);
      else first.collectPaths(root, '', { values: matches.values, paths: matches.paths });
    },
    locate(root) {
      const found: ConcretePath[] = [];
      first.locate(root, [], found);
      return found;
    },
    replace: (root, results) => first.replace(root, { results, next: 0 }),
    overlay: (root, other) => first.overlay(root, other),
  };
}

type WalkerRules = ProtectedKeys & Required<WalkerOptions>;

/** The position of a wildcard in a Kubernetes object, which determines the keys that it must not match. */
type Place = 'root' | 'metadata' | 'annotations' | 'labels' | 'elsewhere';

function compileStep(segments: readonly Segment[], at: number, place: Place, keys: WalkerRules): Step {
  const segment = segments[at];
  if (segment === undefined) return new EndStep();
  const isLast = at === segments.length - 1;
  const below = (key: string): Step => compileStep(segments, at + 1, placeBelow(place, key), keys);
  switch (segment.kind) {
    case 'key':
      return new KeyStep(
        segment.key,
        segment.index,
        below(segment.key),
        isLast,
        isLast && keys.missingPaths === 'create',
      );
    case 'index':
      return new KeyStep(undefined, segment.index, below(''), isLast);
    case 'wildcard':
      return new WildcardStep(wildcardRule(place, keys, below), isLast);
    case 'filter': {
      const filtersBefore = segments.slice(0, at).filter(({ kind }) => kind === 'filter').length;
      const selection = keys.selections[filtersBefore];
      const rule = wildcardRule(place, keys, below);
      return selection === undefined
        ? new WildcardStep(rule, isLast)
        : new FilterStep(rule, isLast, selection);
    }
    default:
      return segment satisfies never;
  }
}

function placeBelow(place: Place, key: string): Place {
  if (place === 'root') return key === 'metadata' ? 'metadata' : 'elsewhere';
  if (place === 'metadata' && (key === 'annotations' || key === 'labels')) return key;
  return 'elsewhere';
}

/** Metadata that identifies an object: no patch may target it. */
export const IDENTITY_KEYS: readonly string[] = ['name', 'namespace', 'uid'];

function wildcardRule(place: Place, keys: WalkerRules, below: (key: string) => Step): WildcardRule {
  const usual = below('');
  switch (place) {
    case 'root': {
      const metadata = below('metadata');
      return { usual, stepFor: (key) => (key === 'metadata' ? metadata : usual) };
    }
    case 'metadata': {
      const special = new Map([
        ['annotations', below('annotations')],
        ['labels', below('labels')],
      ]);
      return {
        usual,
        stepFor: (key) => (IDENTITY_KEYS.includes(key) ? undefined : (special.get(key) ?? usual)),
      };
    }
    case 'annotations':
      return { usual, stepFor: (key) => (keys.isBookkeepingAnnotation(key) ? undefined : usual) };
    case 'labels':
      return { usual, stepFor: (key) => (keys.isBookkeepingLabel(key) ? undefined : usual) };
    case 'elsewhere':
      return { usual, stepFor: undefined };
    default:
      return place satisfies never;
  }
}

interface Cursor {
  readonly results: readonly (JsonValue | undefined)[];
  next: number;
}

type PathMatches = { readonly values: (JsonValue | undefined)[]; readonly paths: string[] };

/** One segment, linked to the next one. `replace` and `overlay` return undefined for a value that the parent has to delete. */
interface Step {
  collect(node: JsonValue, values: (JsonValue | undefined)[]): void;
  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void;
  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void;
  replace(node: JsonValue, cursor: Cursor): JsonValue | undefined;
  overlay(node: JsonValue, other: JsonValue | undefined): JsonValue | undefined;
}

/** The end of the path: the matched value. */
class EndStep implements Step {
  collect(node: JsonValue, values: (JsonValue | undefined)[]): void {
    values.push(node);
  }

  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void {
    matches.values.push(node);
    matches.paths.push(prefix);
  }

  locate(_node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void {
    found.push(prefix);
  }

  replace(_node: JsonValue, cursor: Cursor): JsonValue | undefined {
    return cursor.results[cursor.next++] ?? undefined;
  }

  overlay(_node: JsonValue, other: JsonValue | undefined): JsonValue | undefined {
    return other;
  }
}

/** A key of an object, an index of an array, or a plain number, which is both. */
class KeyStep implements Step {
  readonly #key: string | undefined;
  readonly #index: number | undefined;
  readonly #next: Step;
  readonly #isLast: boolean;
  /** A missing key is matched too. */
  readonly #isCreated: boolean;
  /** Such as `toString`: reading it would find Object.prototype's. */
  readonly #isInherited: boolean;

  constructor(
    key: string | undefined,
    index: number | undefined,
    next: Step,
    isLast: boolean,
    isCreated = false,
  ) {
    this.#key = key;
    this.#index = index;
    this.#next = next;
    this.#isLast = isLast;
    this.#isCreated = isCreated;
    this.#isInherited = key !== undefined && key in Object.prototype;
  }

  collect(node: JsonValue, values: (JsonValue | undefined)[]): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.collect(child, values);
    else if (this.#isMissingIn(node)) values.push(undefined);
  }

  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.collectPaths(child, joinStep(prefix, this.#stepIn(node)), matches);
    else if (this.#isMissingIn(node)) {
      matches.values.push(undefined);
      matches.paths.push(joinStep(prefix, this.#stepIn(node)));
    }
  }

  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.locate(child, [...prefix, this.#stepIn(node)], found);
    else if (this.#isMissingIn(node)) found.push([...prefix, this.#stepIn(node)]);
  }

  replace(node: JsonValue, cursor: Cursor): JsonValue {
    const child = this.#child(node);
    if (child === undefined) return this.#isMissingIn(node) ? this.#created(node, cursor) : node;
    const result = this.#next.replace(child, cursor);
    return result === child ? node : this.#with(node, result);
  }

  overlay(node: JsonValue, other: JsonValue | undefined): JsonValue {
    const child = this.#child(node);
    const theirs = other === undefined ? undefined : this.#child(other);
    if (child === undefined) {
      return this.#isLast && theirs !== undefined && this.#canAdd(node) ? this.#with(node, theirs) : node;
    }
    const result = this.#next.overlay(child, theirs);
    return result === child ? node : this.#with(node, result);
  }

  /** Undefined: absent. JSON has no undefined, so a read is sufficient except for inherited properties. */
  #child(node: JsonValue): JsonValue | undefined {
    if (typeof node !== 'object' || node === null) return undefined;
    if (Array.isArray(node)) return this.#index === undefined ? undefined : node[this.#index];
    if (this.#key === undefined) return undefined;
    if (this.#isInherited && !Object.hasOwn(node, this.#key)) return undefined;
    return node[this.#key];
  }

  #isMissingIn(node: JsonValue): boolean {
    return this.#isCreated && isJsonObject(node);
  }

  /** No result creates nothing. */
  #created(node: JsonValue, cursor: Cursor): JsonValue {
    const result = cursor.results[cursor.next++] ?? undefined;
    return result === undefined ? node : this.#with(node, result);
  }

  #stepIn(node: JsonValue): string | number {
    return Array.isArray(node) ? (this.#index ?? 0) : (this.#key ?? '');
  }

  /** A member can always be added to an object, an element only at the end of an array. */
  #canAdd(node: JsonValue): boolean {
    if (typeof node !== 'object' || node === null) return false;
    return Array.isArray(node) ? this.#index === node.length : this.#key !== undefined;
  }

  #with(node: JsonValue, result: JsonValue | undefined): JsonValue {
    if (Array.isArray(node)) {
      const copy = node.slice();
      if (result === undefined) copy.splice(this.#index ?? 0, 1);
      else copy[this.#index ?? 0] = result;
      return copy;
    }
    const object = node as JsonObject; // only reached when it has children
    const key = this.#key ?? '';
    if (result === undefined) return withMember(object, key, result);
    const copy = copyOf(object);
    copy[key] = result; // no segment is called `__proto__`
    return copy;
  }
}

/** The steps that follow a wildcard. A member whose step is undefined is not matched, so protected fields are skipped. */
interface WildcardRule {
  /** The step for the elements of an array, and for members if {@link stepFor} is undefined. */
  readonly usual: Step;
  /** The step for a member by its key; undefined if the step does not depend on the key. */
  readonly stepFor: ((key: string) => Step | undefined) | undefined;
}

/** Every element of an array, every member of an object. */
class WildcardStep implements Step {
  readonly #usual: Step;
  readonly #stepFor: ((key: string) => Step | undefined) | undefined;
  readonly #isLast: boolean;

  constructor(rule: WildcardRule, isLast: boolean) {
    this.#usual = rule.usual;
    this.#stepFor = rule.stepFor;
    this.#isLast = isLast;
  }

  collect(node: JsonValue, values: (JsonValue | undefined)[]): void {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) {
      for (const element of node) this.#usual.collect(element, values);
      return;
    }
    for (const key of Object.keys(node)) this.#step(key)?.collect(node[key] ?? null, values);
  }

  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) {
      const dotted = prefix === '' ? '' : `${prefix}.`;
      for (const [index, element] of node.entries()) {
        this.#usual.collectPaths(element, dotted + index, matches);
      }
      return;
    }
    for (const key of Object.keys(node)) {
      this.#step(key)?.collectPaths(node[key] ?? null, joinStep(prefix, key), matches);
    }
  }

  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) {
      for (const [index, element] of node.entries()) this.#usual.locate(element, [...prefix, index], found);
      return;
    }
    for (const key of Object.keys(node)) this.#step(key)?.locate(node[key] ?? null, [...prefix, key], found);
  }

  replace(node: JsonValue, cursor: Cursor): JsonValue {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) return this.#replaceElements(node, cursor);
    return mapMembers(node, (key, member) => {
      const step = this.#step(key);
      return step === undefined ? member : step.replace(member, cursor);
    });
  }

  /** Like {@link mapElements}, inlined because this is the hot loop. */
  #replaceElements(array: JsonArray, cursor: Cursor): JsonArray {
    let copy: JsonArray | undefined;
    let kept = 0;
    for (let index = 0; index < array.length; index++) {
      const element = array[index] ?? null;
      const result = this.#usual.replace(element, cursor);
      if (copy === undefined && result !== element) copy = array.slice();
      if (result === undefined) continue;
      if (copy !== undefined) copy[kept] = result;
      kept++;
    }
    if (copy === undefined) return array;
    if (kept < copy.length) copy.length = kept;
    return copy;
  }

  overlay(node: JsonValue, other: JsonValue | undefined): JsonValue {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) {
      const theirs = Array.isArray(other) ? other : [];
      if (this.#isLast) return theirs.slice();
      return mapElements(node, (element, index) => this.#usual.overlay(element, theirs[index]));
    }
    const theirs = isJsonObject(other) ? other : {};
    const mapped = mapMembers(node, (key, member) => {
      const step = this.#step(key);
      return step === undefined ? member : step.overlay(member, ownValue(theirs, key));
    });
    return this.#isLast ? this.#withAdded(mapped, theirs) : mapped;
  }

  /** Members that only the other side has. */
  #withAdded(node: JsonObject, theirs: JsonObject): JsonObject {
    const added = Object.keys(theirs).filter((key) => !Object.hasOwn(node, key) && this.#step(key));
    if (added.length === 0) return node;
    const copy = copyOf(node);
    for (const key of added) setOwn(copy, key, theirs[key] ?? null);
    return copy;
  }

  #step(key: string): Step | undefined {
    if (isForbiddenKey(key)) return undefined;
    return this.#stepFor === undefined ? this.#usual : this.#stepFor(key);
  }
}

/** The elements of an array and the members of an object that a filter has selected. */
class FilterStep implements Step {
  readonly #rule: WildcardRule;
  readonly #isLast: boolean;
  readonly #selection: Selection;

  constructor(rule: WildcardRule, isLast: boolean, selection: Selection) {
    this.#rule = rule;
    this.#isLast = isLast;
    this.#selection = selection;
  }

  collect(node: JsonValue, values: (JsonValue | undefined)[]): void {
    for (const [, child, step] of this.#selected(node)) step.collect(child, values);
  }

  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void {
    for (const [key, child, step] of this.#selected(node))
      step.collectPaths(child, joinStep(prefix, key), matches);
  }

  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void {
    for (const [key, child, step] of this.#selected(node)) step.locate(child, [...prefix, key], found);
  }

  replace(node: JsonValue, cursor: Cursor): JsonValue {
    return this.#map(node, node, (child, step) => step.replace(child, cursor));
  }

  /** As the last step, of an array: its other elements, and then the selected ones of the other side. */
  overlay(node: JsonValue, other: JsonValue | undefined): JsonValue {
    if (Array.isArray(node)) {
      if (!this.#isLast)
        return this.#map(node, node, (child, step, key) => step.overlay(child, valueAt(other, [key])));
      const theirs = Array.isArray(other) ? other.filter((_, index) => this.#step(other, index)) : [];
      const others = node.filter((_, index) => this.#step(node, index) === undefined);
      return [...others, ...theirs];
    }
    if (!isJsonObject(node)) return node;
    const theirs = isJsonObject(other) ? other : {};
    const both = this.#map(node, theirs, (child, step, key) => step.overlay(child, valueAt(theirs, [key])));
    if (!this.#isLast || !isJsonObject(both)) return both;
    const added = Object.keys(theirs).filter((key) => !Object.hasOwn(node, key) && this.#step(theirs, key));
    return added.reduce((object, key) => withMember(object, key, theirs[key]), both);
  }

  *#selected(node: JsonValue): Generator<readonly [string | number, JsonValue, Step]> {
    for (const key of this.#selection.get(node) ?? []) {
      const step = this.#step(node, key);
      if (step !== undefined) yield [key, valueAt(node, [key]) ?? null, step];
    }
  }

  /** Maps the members that are selected in one of both nodes. */
  #map(
    node: JsonValue,
    other: JsonValue,
    map: (child: JsonValue, step: Step, key: string | number) => JsonValue | undefined,
  ): JsonValue {
    const mapped = (child: JsonValue, key: string | number): JsonValue | undefined => {
      const step = this.#step(node, key) ?? this.#step(other, key);
      return step === undefined ? child : map(child, step, key);
    };
    if (Array.isArray(node)) return mapElements(node, mapped);
    return isJsonObject(node) ? mapMembers(node, (key, child) => mapped(child, key)) : node;
  }

  #step(node: JsonValue, key: string | number): Step | undefined {
    if (this.#selection.get(node)?.has(key) !== true) return undefined;
    const { usual, stepFor } = this.#rule;
    return typeof key === 'number' || stepFor === undefined ? usual : stepFor(key);
  }
}

/**
 * `Object.assign` copies objects of any number of shapes at the same speed, spreading slows down threefold from the fifth shape on. But
 * it assigns, so an own `__proto__`, which is plain data here, would be lost.
 */
function copyOf(object: JsonObject): JsonObject {
  return Object.hasOwn(object, '__proto__') ? { ...object } : Object.assign({}, object);
}

/** A copy with this member set, or without it. */
export function withMember(object: JsonObject, key: string, value: JsonValue | undefined): JsonObject {
  if (value === undefined) {
    const { [key]: _removed, ...rest } = object;
    return rest;
  }
  const copy = copyOf(object);
  setOwn(copy, key, value);
  return copy;
}

/** Maps every element; undefined removes it. Returns the same array if nothing changed. */
function mapElements(
  array: JsonArray,
  map: (element: JsonValue, index: number) => JsonValue | undefined,
): JsonArray {
  let copy: JsonArray | undefined;
  let kept = 0;
  for (let index = 0; index < array.length; index++) {
    const element = array[index] ?? null;
    const mapped = map(element, index);
    if (copy === undefined && mapped !== element) copy = array.slice();
    if (mapped === undefined) continue;
    if (copy !== undefined) copy[kept] = mapped;
    kept++;
  }
  if (copy === undefined) return array;
  if (kept < copy.length) copy.length = kept;
  return copy;
}

/** Maps every member; undefined removes it. Returns the same object if nothing changed. */
function mapMembers(
  object: JsonObject,
  map: (key: string, member: JsonValue) => JsonValue | undefined,
): JsonObject {
  let copy: JsonObject | undefined;
  for (const key of Object.keys(object)) {
    const member = object[key] ?? null;
    const mapped = map(key, member);
    if (mapped === member) continue;
    copy ??= copyOf(object);
    if (mapped === undefined) delete copy[key];
    else setOwn(copy, key, mapped);
  }
  return copy ?? object;
}
