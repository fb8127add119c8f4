/** The parts of a reference in a matched value: where its name, namespace, kind and apiVersion are, and the value with other texts there. */

import { parsePath, type Segment } from './path-syntax.ts';
import { PatchError } from '../../base/errors.ts';
import { isJsonObject, setOwn, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ConcretePath } from '../translate/types.ts';
import { compileWalker, type PathWalker } from './walk.ts';
import type { ReferenceConfig } from '../../config/types.ts';

/** A path relative to the matched value. */
export interface SubPath {
  readonly segments: readonly Segment[];
  readonly walker: PathWalker;
}

/** An undefined path is not configured. */
export interface CompiledReference {
  readonly patchIndex: number;
  readonly apiVersion: string;
  readonly kind: string;
  readonly apiVersionPath: SubPath | undefined;
  readonly kindPath: SubPath | undefined;
  readonly namePath: SubPath | undefined;
  readonly namespacePath: SubPath | undefined;
}

export function compileReference(config: ReferenceConfig, patchIndex: number): CompiledReference {
  const subPath = (text: string | undefined): SubPath | undefined => {
    if (text === undefined || text === '') return undefined;
    const parsed = parsePath(text);
    if (!parsed.ok)
      throw new PatchError(parsed.problem.message, { index: patchIndex, path: text, kind: 'syntax' });
    const { segments } = parsed;
    return { segments, walker: compileWalker(segments, NO_PROTECTED_KEYS) };
  };
  return {
    patchIndex,
    apiVersion: config.apiVersion,
    kind: config.kind,
    apiVersionPath: subPath(config.apiVersionPath),
    kindPath: subPath(config.kindPath),
    namePath: subPath(config.namePath),
    namespacePath: subPath(config.namespacePath),
  };
}

/** Sub-paths are relative, so a `metadata` in them is not that of the object, and they contain no wildcards. */
const NO_PROTECTED_KEYS = { isBookkeepingAnnotation: () => false, isBookkeepingLabel: () => false };

/** The value names a namespace, not an object in one. */
export function isNamespaceReference({ namePath, namespacePath }: CompiledReference): boolean {
  return namePath === undefined && namespacePath !== undefined;
}

/** A matched value cannot be translated by a reference or labels patch; the message is for the user. */
export class UntranslatableValue extends Error {
  override readonly name = 'UntranslatableValue';
}

/** A kind that the data of an object contains. */
export interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

/** A text in the value, and its path there. */
export interface Part {
  readonly place: ConcretePath;
  readonly text: string;
}

/** What a value references; undefined: the value does not contain this part. */
export interface ReferenceParts extends ReferencedGvk {
  readonly name: Part | undefined;
  readonly namespace: Part | undefined;
}

/** A value that a reference patch has matched. */
export class ReferenceValue {
  readonly #reference: CompiledReference;
  readonly #value: JsonValue;

  /** Throws {@link UntranslatableValue} for a value of the wrong type. */
  constructor(reference: CompiledReference, value: JsonValue) {
    this.#reference = reference;
    this.#value = value;
    const { namePath, namespacePath } = reference;
    if (namePath === undefined && namespacePath === undefined) {
      if (typeof value === 'string') return;
      throw new UntranslatableValue(
        `a reference is the name of an object, this is ${describe(value)}; set namePath`,
      );
    }
    if (isJsonObject(value)) return;
    const field = namePath === undefined ? 'namespacePath' : 'namePath';
    throw new UntranslatableValue(`a reference with ${field} is an object, this is ${describe(value)}`);
  }

  /** Throws {@link UntranslatableValue} for a part that is not a string. */
  parts(): ReferenceParts {
    const { apiVersionPath, kindPath, namePath, namespacePath } = this.#reference;
    const apiVersion = this.#part(apiVersionPath, 'apiVersionPath')?.text ?? this.#reference.apiVersion;
    const kind = this.#part(kindPath, 'kindPath')?.text ?? this.#reference.kind;
    const name =
      namePath === undefined && namespacePath === undefined
        ? this.#partAt([], 'namePath')
        : this.#part(namePath, 'namePath');
    const isNamespaceRead = name !== undefined || isNamespaceReference(this.#reference);
    const namespace = isNamespaceRead ? this.#part(namespacePath, 'namespacePath') : undefined;
    return { apiVersion, kind, name, namespace };
  }

  #part(path: SubPath | undefined, field: string): Part | undefined {
    const [place] = path?.walker.locate(this.#value) ?? [];
    return place && this.#partAt(place, field);
  }

  /** Undefined for an empty string, which Kubernetes treats as absent. */
  #partAt(place: ConcretePath, field: string): Part | undefined {
    const text = valueAt(this.#value, place) ?? null;
    if (typeof text === 'string') return text === '' ? undefined : { place, text };
    throw new UntranslatableValue(`${field} leads to ${describe(text)}, which must be a string`);
  }

  /** The value with these texts, the last one of each place. */
  with(parts: readonly Part[]): JsonValue {
    return withTexts(this.#value, treeOf(parts));
  }
}

/** Like `new ReferenceValue(…)` and `parts()`, but undefined for an invalid value, for callers whose errors are reported elsewhere. */
export function validPartsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
  try {
    return new ReferenceValue(reference, value).parts();
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** The value, if there is one, contains a name or a namespace that the reference translates. */
export function isReferenceIn(reference: CompiledReference, value: JsonValue | undefined): boolean {
  const parts = value === undefined ? undefined : validPartsOf(reference, value);
  return parts?.name !== undefined || parts?.namespace !== undefined;
}

/** Texts by their path: a text, or what is below each step. */
type TextTree = string | Map<string | number, TextTree>;

function treeOf(parts: readonly Part[]): TextTree {
  const root: Map<string | number, TextTree> = new Map();
  for (const { place, text } of parts) {
    if (place.length === 0) return text;
    let node = root;
    for (const step of place.slice(0, -1)) {
      const below = node.get(step);
      const next = below instanceof Map ? below : new Map<string | number, TextTree>();
      node.set(step, next);
      node = next;
    }
    node.set(place.at(-1) ?? '', text);
  }
  return root;
}

/** Shares what is not changed with the value. */
function withTexts(value: JsonValue, texts: TextTree): JsonValue {
  if (typeof texts === 'string') return texts;
  if (texts.size === 0 || typeof value !== 'object' || value === null) return value;
  const copy = Array.isArray(value) ? value.slice() : { ...value };
  for (const [step, below] of texts)
    setOwn(copy as JsonObject, String(step), withTexts(valueAt(value, [step]) ?? null, below)); // an index is a key
  return copy;
}

/** Describes a value of the wrong type in a message of limited length. */
function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}
