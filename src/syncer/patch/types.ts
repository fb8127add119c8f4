/** The contract of this folder: the pipeline that applies the patches of one kind. */

import type { NamespacedName } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ObjectContext } from '../sandbox/types.ts';
import type { ConcretePath, Flow } from '../translate/types.ts';

export type Direction = 'toHost' | 'toVirtual';

/** An object that a `reference` patch named, before translation: virtual names toHost, host names toVirtual. */
export interface ObjectReference {
  readonly patchIndex: number;
  /** The concrete path of the matched value. */
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A reference that was translated. */
export interface TranslatedReference extends ObjectReference {
  /** What the other side's object is called there; undefined: unknown, and the value stayed. */
  readonly written: NamespacedName | undefined;
}

export interface PatchedObject {
  /** A copy where anything changed; parts that no patch touched are shared with the input. */
  readonly object: JsonObject;
  /** What reference patches named and may be imported, in the order of the patches. */
  readonly references: readonly TranslatedReference[];
  /** References of a kind that `kindPath` or `apiVersionPath` led to and the configuration does not allow; left untouched. */
  readonly notAllowed: readonly ObjectReference[];
}

/** One object's part of what patches see. */
export interface PatchContext extends ObjectContext {
  /** The virtual namespace of the object, whichever way it goes. */
  readonly objectNamespace: string;
}

/** All patches of one kind, compiled. Immutable; a reload makes a new one. */
export interface PatchPipeline {
  readonly isEmpty: boolean;
  /** Some expression on the way to the host reads `context.hostObject`, so its result may change with the host copy. */
  readonly readsHostObject: boolean;
  /**
   * Applies every patch in order (toVirtual: in reverse order), each seeing the result of those before; the input is never changed.
   * Synchronous where the sandbox is not needed or remembers all results, else a promise; the caller may await both.
   * Throws or rejects with the first `PatchError`.
   */
  apply(
    direction: Direction,
    object: JsonObject,
    context: PatchContext,
  ): PatchedObject | Promise<PatchedObject>;
  /**
   * How the member at these segments flows, e.g. `['metadata','annotations','example.com/key']`. `none`: one entry keeps the host's own
   * value there, another one keeps it from flowing back.
   */
  flowOf(segments: ConcretePath): Flow;
  /** Concrete paths at or below `subsets` in this object (host side) that an entry with both expressions makes two-way. */
  twoWayPaths(object: JsonObject): readonly ConcretePath[];
  /** Concrete paths in this object that only a `reverseExpression` matches: the host keeps its own value there. */
  hostOwnedPaths(object: JsonObject): readonly ConcretePath[];
}

/**
 * Where a referenced object is known by another name than the rule gives: toHost, the host object that already holds the copy of this
 * virtual object (or the very same name, where only the host has it); toVirtual, the virtual object of this host object.
 * Undefined: the rule decides.
 */
export type ReferenceLookup = (
  reference: ObjectReference,
  direction: Direction,
) => NamespacedName | undefined;
