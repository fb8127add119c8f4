/** One segment of a compiled path, linked to the next one. */

import { joinStep } from './print-path.ts';
import { copyOf, withMember } from './copy.ts';
import type { JsonObject, JsonValue } from '../../../base/json.ts';
import type { ConcretePath } from '../../translate/types.ts';

export interface Cursor {
  readonly results: readonly (JsonValue | undefined)[];
  next: number;
}

export type PathMatches = { readonly values: JsonValue[]; readonly paths: string[] };

/** One segment, linked to the next one. `replace` and `overlay` return undefined for a value that the parent has to delete. */
export interface Step {
  collect(node: JsonValue, values: JsonValue[]): void;
  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void;
  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void;
  replace(node: JsonValue, cursor: Cursor): JsonValue | undefined;
  overlay(node: JsonValue, other: JsonValue | undefined): JsonValue | undefined;
}

/** The end of the path: the matched value. */
export class EndStep implements Step {
  collect(node: JsonValue, values: JsonValue[]): void {
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
export class KeyStep implements Step {
  readonly #key: string | undefined;
  readonly #index: number | undefined;
  readonly #next: Step;
  readonly #isLast: boolean;
  /** Such as `toString`: reading it would find Object.prototype's. */
  readonly #isInherited: boolean;

  constructor(key: string | undefined, index: number | undefined, next: Step, isLast: boolean) {
    this.#key = key;
    this.#index = index;
    this.#next = next;
    this.#isLast = isLast;
    this.#isInherited = key !== undefined && key in Object.prototype;
  }

  collect(node: JsonValue, values: JsonValue[]): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.collect(child, values);
  }

  collectPaths(node: JsonValue, prefix: string, matches: PathMatches): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.collectPaths(child, joinStep(prefix, this.#stepIn(node)), matches);
  }

  locate(node: JsonValue, prefix: ConcretePath, found: ConcretePath[]): void {
    const child = this.#child(node);
    if (child !== undefined) this.#next.locate(child, [...prefix, this.#stepIn(node)], found);
  }

  replace(node: JsonValue, cursor: Cursor): JsonValue {
    const child = this.#child(node);
    if (child === undefined) return node;
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
