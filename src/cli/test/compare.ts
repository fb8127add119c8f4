/** Compares expectations with actual results. An expectation is a subset: members that it does not contain are not compared. */

import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { printPath } from '../../syncer/patch/path-syntax.ts';
import type { ConcretePath } from '../../syncer/translate/types.ts';

export interface Mismatch {
  /** What was compared: `host Endpoints web-x-shop-x-vc`, `skipped`, `round trip shop/web`. */
  readonly subject: string;
  /** Concrete path below the subject; '' is the subject itself. */
  readonly path: string;
  /** Undefined: expected not to be there. */
  readonly expected: JsonValue | undefined;
  /** Undefined: not there. */
  readonly actual: JsonValue | undefined;
}

/** Where `actual` differs from the members of `expected`. Lists must have the same length; null expects that there is no value. */
export function compareSubset(
  subject: string,
  expected: JsonValue,
  actual: JsonValue | undefined,
  at: ConcretePath = [],
): Mismatch[] {
  if (isJsonObject(expected) && isJsonObject(actual)) {
    return Object.keys(expected).flatMap((key) =>
      compareSubset(subject, expected[key] ?? null, ownValue(actual, key), [...at, key]),
    );
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((element, index) =>
      compareSubset(subject, element, actual[index], [...at, index]),
    );
  }
  if ((actual === undefined || actual === null) && expectsNothing(expected)) return [];
  if (!isJsonObject(expected) && !Array.isArray(expected) && jsonEquals(expected, actual)) return [];
  return [{ subject, path: printPath(at), expected: expected === null ? undefined : expected, actual }];
}

/** Null, or a map of nothing else: `{annotations: {key: null}}` also holds where there are no annotations. */
function expectsNothing(expected: JsonValue): boolean {
  if (!isJsonObject(expected)) return expected === null;
  const members = Object.values(expected);
  return members.length > 0 && members.every((member) => member !== undefined && expectsNothing(member));
}

/** Every difference, in both directions: neither side has anything that the other one lacks. */
export function compareWhole(
  subject: string,
  expected: JsonValue | undefined,
  actual: JsonValue | undefined,
  at: ConcretePath = [],
): Mismatch[] {
  if (isJsonObject(expected) && isJsonObject(actual)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    return [...keys].flatMap((key) =>
      compareWhole(subject, ownValue(expected, key), ownValue(actual, key), [...at, key]),
    );
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((element, index) =>
      compareWhole(subject, element, actual[index], [...at, index]),
    );
  }
  return jsonEquals(expected, actual) ? [] : [{ subject, path: printPath(at), expected, actual }];
}

/**
 * Each expected entry with the actual one that it is about (`isSame`), so that a mismatch names a field and not a whole list. An empty
 * expectation means that there is nothing at all.
 */
export function compareEntries(
  subject: string,
  expected: readonly JsonObject[],
  actual: readonly JsonObject[],
  { isSame, describe }: EntryRules,
): Mismatch[] {
  if (expected.length === 0) {
    return actual.map((entry) => ({
      subject: `${subject} ${describe(entry)}`,
      path: '',
      expected: undefined,
      actual: entry,
    }));
  }
  return expected.flatMap((entry) => {
    const found = actual.find((candidate) => isSame(entry, candidate));
    if (found !== undefined) return compareSubset(`${subject} ${describe(entry)}`, entry, found);
    return [
      {
        subject: `${subject} ${describe(entry)}`,
        path: '',
        expected: entry,
        actual: actual.length === 0 ? undefined : actual.map(describe),
      },
    ];
  });
}

export interface EntryRules {
  readonly isSame: (expected: JsonObject, actual: JsonObject) => boolean;
  readonly describe: (entry: JsonObject) => string;
}
