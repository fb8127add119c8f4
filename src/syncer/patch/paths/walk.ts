/** A compiled path, which runs on every object: a chain of steps that collects the matches, and a second pass over the same object
 * that replaces them with the results. Inputs are not modified; unchanged parts are shared with the input.
 */

import type { Segment } from './path-syntax.ts';
import { EndStep, KeyStep, type Step } from './step.ts';
import { WildcardStep, type WildcardRule } from './wildcard-step.ts';
import type { JsonValue } from '../../../base/json.ts';
import type { ConcretePath } from '../../translate/types.ts';

/** The matches of one path in one object, in the order in which results are expected. */
export interface Matches {
  readonly values: JsonValue[];
  /** Printed concrete paths; undefined when they are not needed, because they cost more than the walk. */
  readonly paths: string[] | undefined;
}

/** Members that no wildcard matches, because no patch may change them. */
export interface ProtectedKeys {
  isBookkeepingAnnotation(key: string): boolean;
  isBookkeepingLabel(key: string): boolean;
}

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

export function compileWalker(segments: readonly Segment[], protectedKeys: ProtectedKeys): PathWalker {
  const first = compileStep(segments, 0, 'root', protectedKeys);
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

/** The position of a wildcard in a Kubernetes object, which determines the keys that it must not match. */
type Place = 'root' | 'metadata' | 'annotations' | 'labels' | 'elsewhere';

function compileStep(segments: readonly Segment[], at: number, place: Place, keys: ProtectedKeys): Step {
  const segment = segments[at];
  if (segment === undefined) return new EndStep();
  const isLast = at === segments.length - 1;
  const below = (key: string): Step => compileStep(segments, at + 1, placeBelow(place, key), keys);
  switch (segment.kind) {
    case 'key':
      return new KeyStep(segment.key, segment.index, below(segment.key), isLast);
    case 'index':
      return new KeyStep(undefined, segment.index, below(''), isLast);
    case 'wildcard':
      return new WildcardStep(wildcardRule(place, keys, below), isLast);
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

function wildcardRule(place: Place, keys: ProtectedKeys, below: (key: string) => Step): WildcardRule {
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
