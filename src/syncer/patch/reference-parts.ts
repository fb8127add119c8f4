/** The parts of references in a matched value: where name, namespace, kind and apiVersion are, and the value with other texts there. */

import { parsePath, type Segment } from './path-syntax.ts';
import { PatchError } from '../../base/errors.ts';
import { isJsonObject, valueAt, type JsonValue } from '../../base/json.ts';
import { withValueAt } from '../translate/paths.ts';
import type { ConcretePath } from '../translate/types.ts';
import { JsonText } from './json-text.ts';
import { locate, type Path } from './walk.ts';
import type { ReferenceConfig } from './patch-schema.ts';

/** A value with more references is not translated: each of them may have to be looked up among all objects of its kind. */
const REFERENCES_MAX = 1000;

/** A path relative to the matched value, or to each match of {@link CompiledReference.each} if it begins as that one. */
export interface SubPath extends Path {
  readonly isBelowEach: boolean;
  readonly below: Path;
}

export interface CompiledReference {
  readonly patchIndex: number;
  readonly apiVersion: string;
  readonly kind: string;
  /** The namePath up to its last wildcard: one reference at each match. Undefined without a wildcard. */
  readonly each: Path | undefined;
  readonly apiVersionPath: SubPath | undefined;
  readonly kindPath: SubPath | undefined;
  readonly namePath: SubPath | undefined;
  readonly namespacePath: SubPath | undefined;
  /** Another reference may have its namespace at the same place. */
  readonly sharesNamespace: boolean;
}

/** `isOnlyNamespace`: no other reference of the object has a namespacePath. */
export function compileReference(
  config: ReferenceConfig,
  patchIndex: number,
  isOnlyNamespace: boolean,
): CompiledReference {
  const segmentsOf = (text: string): readonly Segment[] => {
    const parsed = parsePath(text);
    if (parsed.ok) return parsed.segments;
    throw new PatchError(parsed.problem.message, { index: patchIndex, path: text, kind: 'syntax' });
  };
  const each = throughLastWildcard(segmentsOf(leadingPath(config)));
  const subPath = (text: string | undefined): SubPath | undefined => {
    if (text === undefined || text === '') return undefined;
    const segments = segmentsOf(text);
    const isBelowEach = each.length > 0 && startsWith(segments, each);
    const rest = isBelowEach ? segments.slice(each.length) : segments;
    return { segments, isBelowEach, below: { segments: rest } };
  };
  const namespacePath = subPath(config.namespacePath);
  return {
    patchIndex,
    apiVersion: config.apiVersion,
    kind: config.kind,
    each: each.length === 0 ? undefined : { segments: each },
    apiVersionPath: subPath(config.apiVersionPath),
    kindPath: subPath(config.kindPath),
    namePath: subPath(config.namePath),
    namespacePath,
    sharesNamespace: !isOnlyNamespace || (each.length > 0 && namespacePath?.isBelowEach === false),
  };
}

function canBeInList(segment: Segment): boolean {
  return segment.kind !== 'key' || segment.index !== undefined;
}

/** The path that decides how many references a value has; '' if the value itself is the name. */
export function leadingPath({ namePath, namespacePath }: ReferenceConfig): string {
  return [namePath, namespacePath].find((path) => path !== undefined && path !== '') ?? '';
}

export function throughLastWildcard(segments: readonly Segment[]): readonly Segment[] {
  return segments.slice(0, segments.findLastIndex(({ kind }) => kind === 'wildcard') + 1);
}

export function startsWith(segments: readonly Segment[], prefix: readonly Segment[]): boolean {
  return prefix.length <= segments.length && prefix.every((segment, at) => isSame(segment, segments[at]));
}

function isSame(a: Segment, b: Segment | undefined): boolean {
  if (a.kind === 'key') return b?.kind === 'key' && a.key === b.key && a.index === b.index;
  if (a.kind === 'index') return b?.kind === 'index' && a.index === b.index;
  return a.kind === b?.kind;
}

export function isNamespaceReference({ namePath, namespacePath }: CompiledReference): boolean {
  return namePath === undefined && namespacePath !== undefined;
}

/** A matched value cannot be translated by a reference or labels patch; the message is for the user. */
export class UntranslatableValue extends Error {
  override readonly name = 'UntranslatableValue';
  /** The value may be translatable later, although the object and the patches do not change. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: ErrorOptions & { readonly retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

export interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface Part {
  readonly place: ConcretePath;
  readonly text: string;
}

export interface ReferenceParts extends ReferencedGvk {
  readonly name: Part | undefined;
  readonly namespace: Part | undefined;
}

/** A value that a reference patch has matched: a name, or what holds the parts of references, also as JSON text. */
export class ReferenceValue {
  readonly #reference: CompiledReference;
  readonly #content: JsonValue;
  readonly #text: JsonText | undefined;

  /** Throws {@link UntranslatableValue} for a value of the wrong type. */
  constructor(reference: CompiledReference, value: JsonValue) {
    this.#reference = reference;
    const { namePath, namespacePath } = reference;
    const leading = namePath ?? namespacePath;
    if (leading === undefined) {
      this.#content = value;
      if (typeof value === 'string') return;
      throw new UntranslatableValue(
        `a reference is the name of an object, this is ${describe(value)}; set namePath`,
      );
    }
    const text = typeof value === 'string' ? JsonText.read(value) : undefined;
    if (text !== undefined && 'problem' in text) throw new UntranslatableValue(text.problem);
    this.#text = text;
    this.#content = text?.content ?? value;
    const [first] = leading.segments;
    const isInList = first !== undefined && canBeInList(first);
    if (isJsonObject(this.#content) || (isInList && Array.isArray(this.#content))) return;
    const field = namePath === undefined ? 'namespacePath' : 'namePath';
    throw new UntranslatableValue(
      `a reference with ${field} is an object, this is ${describe(this.#content)}`,
    );
  }

  elements(): readonly ConcretePath[] {
    const { each } = this.#reference;
    const elements = each === undefined ? [[]] : locate(each, this.#content);
    if (elements.length <= REFERENCES_MAX) return elements;
    throw new UntranslatableValue(
      `the value has ${elements.length} references, at most ${REFERENCES_MAX} are possible`,
    );
  }

  /** Throws {@link UntranslatableValue} for a part that is not a string. */
  parts(element: ConcretePath): ReferenceParts {
    const { apiVersionPath, kindPath, namePath, namespacePath } = this.#reference;
    const part = (path: SubPath | undefined, field: string): Part | undefined =>
      path && this.#part(path, path.isBelowEach ? element : [], field);
    const apiVersion = part(apiVersionPath, 'apiVersionPath')?.text ?? this.#reference.apiVersion;
    const kind = part(kindPath, 'kindPath')?.text ?? this.#reference.kind;
    const name =
      namePath === undefined && namespacePath === undefined
        ? this.#partAt([], 'namePath')
        : part(namePath, 'namePath');
    const isNamespaceRead = name !== undefined || isNamespaceReference(this.#reference);
    const namespace = isNamespaceRead ? part(namespacePath, 'namespacePath') : undefined;
    return { apiVersion, kind, name, namespace };
  }

  #part(path: SubPath, above: ConcretePath, field: string): Part | undefined {
    const value = valueAt(this.#content, above);
    const [place] = value === undefined ? [] : locate(path.below, value);
    return place && this.#partAt([...above, ...place], field);
  }

  /** Undefined for an empty string, which Kubernetes treats as absent. */
  #partAt(place: ConcretePath, field: string): Part | undefined {
    const text = valueAt(this.#content, place) ?? null;
    if (typeof text !== 'string')
      throw new UntranslatableValue(`${field} leads to ${describe(text)}, which must be a string`);
    if (text === '') return undefined;
    const literal = this.#text?.literalAt(place);
    if (typeof literal !== 'object') return { place, text };
    const key = JSON.stringify(literal.duplicateKey).slice(0, 40);
    throw new UntranslatableValue(
      `${field} leads to the key ${key}, which the JSON text has twice, so programs may read either value`,
    );
  }

  /** Where in the matched value a comparison of values can tell that this part was changed. */
  placeOf({ place }: Part): ConcretePath {
    return this.#text === undefined ? place : [];
  }

  /** The value with these texts. In a JSON text, those that `written` has at the same place are written as they are there. */
  with(parts: readonly Part[], written?: ReferenceValue): JsonValue {
    if (this.#text === undefined)
      return parts.reduce((value, { place, text }) => withValueAt(value, place, text), this.#content);
    const changed = parts.filter(({ place, text }) => valueAt(this.#content, place) !== text);
    return this.#text.with(
      changed.map(({ place, text }) => ({
        place,
        literal: written?.literalOf({ place, text }) ?? JSON.stringify(text),
      })),
    );
  }

  literalOf({ place, text }: Part): string | undefined {
    if (valueAt(this.#content, place) !== text) return undefined;
    const literal = this.#text?.literalAt(place);
    return typeof literal === 'string' ? literal : undefined;
  }
}

/** For callers whose errors are reported elsewhere. */
export function ifTranslatable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** Empty for an invalid value. */
export function referencesIn(reference: CompiledReference, value: JsonValue): readonly ReferenceParts[] {
  const all = ifTranslatable(() => {
    const opened = new ReferenceValue(reference, value);
    return opened.elements().map((element) => opened.parts(element));
  });
  return all?.filter(({ name, namespace }) => name !== undefined || namespace !== undefined) ?? [];
}

function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}
