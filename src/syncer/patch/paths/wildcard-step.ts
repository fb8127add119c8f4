/** The wildcard of a compiled path. */

import { copyOf, mapElements, mapMembers } from './copy.ts';
import { isForbiddenKey } from './path-syntax.ts';
import { joinStep } from './print-path.ts';
import type { Cursor, PathMatches, Step } from './step.ts';
import {
  isJsonObject,
  ownValue,
  setOwn,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.ts';
import type { ConcretePath } from '../../translate/types.ts';

/** The steps that follow a wildcard. A member whose step is undefined is not matched, so protected fields are skipped. */
export interface WildcardRule {
  /** The step for the elements of an array, and for members if {@link stepFor} is undefined. */
  readonly usual: Step;
  /** The step for a member by its key; undefined if the step does not depend on the key. */
  readonly stepFor: ((key: string) => Step | undefined) | undefined;
}

/** Every element of an array, every member of an object. */
export class WildcardStep implements Step {
  readonly #usual: Step;
  readonly #stepFor: ((key: string) => Step | undefined) | undefined;
  readonly #isLast: boolean;

  constructor(rule: WildcardRule, isLast: boolean) {
    this.#usual = rule.usual;
    this.#stepFor = rule.stepFor;
    this.#isLast = isLast;
  }

  collect(node: JsonValue, values: JsonValue[]): void {
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
