/** The contract of this folder: the pipeline that applies the patches of one kind. */

import type { JsonObject } from '../lib/json.ts';
import type { ObjectContext } from '../sandbox/types.ts';

export type Direction = 'toHost' | 'toVirtual';

/** An object that a `reference` patch named, before translation. */
export interface ObjectReference {
  readonly patchIndex: number;
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface PatchedObject {
  /** A copy where anything changed; parts that no patch touched are shared with the input. */
  readonly object: JsonObject;
  readonly references: readonly ObjectReference[];
}

/** Which way a path flows because of the patches on it (design table: order and direction). */
export type Flow = 'both' | 'toHost' | 'toVirtual';

/** All patches of one kind, compiled. Immutable; a reload makes a new one. */
export interface PatchPipeline {
  readonly isEmpty: boolean;
  /**
   * Applies every patch in order, each seeing the result of those before. `objectNamespace` is the virtual namespace of the object.
   * Rejects with the first `PatchError`; the input is never changed.
   */
  apply(
    direction: Direction,
    object: JsonObject,
    context: ObjectContext & { readonly objectNamespace: string },
  ): Promise<PatchedObject>;
  /** How the member at these segments flows, e.g. `['metadata','annotations','example.com/key']`. */
  flowOf(segments: readonly (string | number)[]): Flow;
  /** Concrete paths below `subsets` in this object (host side) that an entry with both expressions makes two-way. */
  twoWayPaths(object: JsonObject): readonly (readonly (string | number)[])[];
  /** Concrete paths in this object that only a `reverseExpression` matches: the host keeps its own value there. */
  hostOwnedPaths(object: JsonObject): readonly (readonly (string | number)[])[];
}
