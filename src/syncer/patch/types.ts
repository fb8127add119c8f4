/** The contract of this folder: the pipeline that applies the patches of one kind. */

import type { NamespacedName } from '../../kube/object.ts';
import type { PatchError } from '../../base/errors.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { Budget } from '../../expressions/local/budget.ts';
import type { ObjectContext } from '../../expressions/types.ts';
import type { ConcretePath, FlowRules, KeptPaths, LabelTranslator } from '../translate/types.ts';

export type Direction = 'toHost' | 'toVirtual';

/** A mode that makes one value of another, and needs nothing of the object around it. */
export interface ValueMode {
  readonly kind: 'value';
  /** Its member of an entry of `patches`, by which traces name it. */
  readonly mode: string;
  /** Throws `UntranslatableValue`. */
  translate(
    value: JsonValue,
    place: { readonly direction: Direction; readonly labels: LabelTranslator },
  ): JsonValue;
}

/** An object that a `reference` patch named, before translation: virtual names toHost, host names toVirtual. */
export interface ObjectReference {
  readonly patchIndex: number;
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface TranslatedReference extends ObjectReference {
  /** The name on the other side; undefined: unknown, so the value was not changed. */
  readonly written: NamespacedName | undefined;
}

/** A name on the host that no virtual object has there. */
export interface UnresolvedReference {
  readonly path: ConcretePath;
  readonly error: PatchError;
}

export interface PatchedObject {
  /** The input, or a changed copy; parts that no patch touched are shared with the input. */
  readonly object: JsonObject;
  /** How the members of this object flow, where filters have decided; undefined: as the pipeline says. */
  readonly flows?: FlowRules;
  /** What the paths with filters matched, by the index of the patch. */
  readonly matched?: ReadonlyMap<number, readonly ConcretePath[]>;
  /** The patches that were left out because they fail, in that order; undefined: none. */
  readonly failed?: FailedPatches;
  /** References that may be imported, in the order of the patches. */
  readonly references: readonly TranslatedReference[];
  /** References to a kind that was read from `kindPath` or `apiVersionPath` and is not allowed by the configuration; left unchanged. */
  readonly notAllowed: readonly ObjectReference[];
  readonly unresolved: readonly UnresolvedReference[];
}

export interface FailedPatches {
  readonly errors: readonly [PatchError, ...PatchError[]];
  readonly kept: KeptPaths;
}

export interface PatchContext extends ObjectContext {
  /** The virtual namespace of the object, in both directions. */
  readonly objectNamespace: string;
  /** What evaluations in the daemon may still cost, shared by all of one reconcile; default: this application has all of it. */
  readonly budget?: Budget | undefined;
}

/** Immutable; a reload creates a new one. */
export interface PatchPipeline extends FlowRules {
  readonly isEmpty: boolean;
  /** An expression towards the host reads `context.hostObject`, so its result can change with the host copy. */
  readonly readsHostObject: boolean;
  /** `patches[2], path metadata.labels.tier`: patches of which no object had a match yet, once there was an object. Nothing else tells of a mistyped
   * key. */
  neverMatched(): readonly string[];
  /** In order (toVirtual: reversed), each on the result of those before. A promise if a patch waits for the sandbox or fails; it rejects with the
   * first `PatchError` that `onError` does not leave out, which has those of other patches. */
  apply(
    direction: Direction,
    object: JsonObject,
    context: PatchContext,
  ): PatchedObject | Promise<PatchedObject>;
}

/** Looks up names that differ from the naming rule. toHost: the host object that already holds the copy of this virtual object, or the unchanged
 * name if the object exists only on the host. toVirtual: the virtual object of this host object. Undefined: the naming rule applies. `onHost`: what
 * the host copy references at the same place. */
export type ReferenceLookup = (
  reference: ObjectReference,
  direction: Direction,
  onHost?: () => NamespacedName | undefined,
) => NamespacedName | NameConflict | undefined;

export interface NameConflict {
  readonly holder: NamespacedName;
}

export interface ResultProblem {
  readonly path: ConcretePath;
  readonly message: string;
}

/** Which places count. */
export type Concerns = (path: ConcretePath) => boolean;

export interface ValidateOptions {
  /** Default: all. */
  readonly concerns?: Concerns;
  /** Which API server has to accept the object. Default: any of a supported version, as only the host knows its own. */
  readonly by?: 'any version' | 'newest version';
}

/** The first error in the object that patches have changed, and that it did not have before. */
export type ValidateResult = (
  before: JsonObject,
  after: JsonObject,
  options?: ValidateOptions,
) => ResultProblem | undefined;
