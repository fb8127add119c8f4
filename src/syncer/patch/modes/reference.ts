/** Reference patches: the value names another object, and the name is rewritten to what that object is called on the other side. */

import { parsePath, printPath, type Segment } from '../paths/path-syntax.ts';
import type {
  Direction,
  ObjectReference,
  PatchContext,
  ReferenceLookup,
  TranslatedReference,
} from '../types.ts';
import { UntranslatableValue } from './untranslatable.ts';
import { compileWalker, type PathWalker } from '../paths/walk.ts';
import type { ReferenceConfig } from '../../../config/types.ts';
import { PatchError } from '../../../base/errors.ts';
import type { NamespacedName } from '../../../kube/object.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../../base/json.ts';
import type { ConcretePath, NameTranslator } from '../../translate/types.ts';

/** A kind as data name it. */
export interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

/** What reference patches depend on. */
export interface ReferenceRules {
  readonly names: NameTranslator;
  readonly lookup: ReferenceLookup;
  /** Makes known what lookups need to know of these kinds. Undefined: nothing has to be waited for. */
  prepare?(kinds: readonly ReferencedGvk[]): Promise<void> | undefined;
  /** May references of this kind be rewritten, although only `kindPath` or `apiVersionPath` led to it? */
  isKindAllowed(apiVersion: string, kind: string): boolean;
  /** The objects are Endpoints whose Pod `targetRef`s the built-in translation rewrites: they are not rewritten again. */
  readonly skipPodTargetRefs: boolean;
}

/** A place below the matched value; undefined: not configured. */
interface SubPath {
  readonly segments: readonly Segment[];
  readonly walker: PathWalker;
}

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

/** Sub-paths are relative: a `metadata` in them is not the object's. They hold no wildcards either. */
const NO_PROTECTED_KEYS = { isBookkeepingAnnotation: () => false, isBookkeepingLabel: () => false };

/** One matched value and where it is. */
export interface ReferenceMatch {
  readonly value: JsonValue;
  readonly path: ConcretePath;
  /** The object as it is when this patch runs. */
  readonly object: JsonObject;
}

/** The parts of a value that names an object; undefined where they are not there. */
interface ReferenceParts {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly apiVersion: string;
  readonly kind: string;
}

/** All references of one object in one direction, collected on the way. */
export class ReferenceTranslation {
  readonly references: TranslatedReference[] = [];
  readonly notAllowed: ObjectReference[] = [];
  readonly #rules: ReferenceRules;
  readonly #direction: Direction;
  readonly #context: PatchContext;

  constructor(rules: ReferenceRules, direction: Direction, context: PatchContext) {
    this.#rules = rules;
    this.#direction = direction;
    this.#context = context;
  }

  /** Kinds that a patch names are known from the start; those that data lead to may have to be waited for. */
  prepare(reference: CompiledReference, values: () => readonly JsonValue[]): Promise<void> | undefined {
    const isOpen = reference.kindPath !== undefined || reference.apiVersionPath !== undefined;
    if (this.#direction === 'toVirtual' || !isOpen || this.#rules.prepare === undefined) return undefined;
    const kinds = values().flatMap((value) => namedKind(reference, value) ?? []);
    return this.#rules.prepare(kinds.filter((kind) => this.#isAllowed(reference, kind)));
  }

  /** The value as the other side has it; the same value where there is nothing to rewrite. Throws {@link UntranslatableValue}. */
  translate(reference: CompiledReference, match: ReferenceMatch): JsonValue {
    if (isNamespaceAlone(reference)) return this.#translateNamespace(reference.namespacePath, match);
    const parts = partsOf(reference, match.value);
    if (parts === undefined || this.#isTranslatedAlready(reference, match)) return match.value;
    const named: ObjectReference = {
      patchIndex: reference.patchIndex,
      path: printPath(match.path),
      apiVersion: parts.apiVersion,
      kind: parts.kind,
      namespace: parts.namespace ?? this.#ownNamespace(),
      name: parts.name,
    };
    if (!this.#isAllowed(reference, parts)) {
      this.notAllowed.push(named);
      return match.value;
    }
    const target =
      this.#direction === 'toHost' ? this.#toHost(named) : this.#toVirtual(reference, named, match);
    this.references.push({ ...named, written: target });
    return target === undefined ? match.value : withParts(reference, match.value, target);
  }

  /** The value names a namespace and no object, so nothing is imported for it. */
  #translateNamespace(path: SubPath, { value, path: place }: ReferenceMatch): JsonValue {
    if (!isJsonObject(value)) {
      throw new UntranslatableValue(
        `a reference with namespacePath is an object, this is ${describe(value)}`,
      );
    }
    const namespace = stringAt(path, value, 'namespacePath');
    if (namespace === undefined) return value;
    const written =
      this.#direction === 'toHost'
        ? this.#rules.names.namespaceToHost(namespace)
        : this.#virtualNamespace(namespace, path, place);
    if (written === undefined && this.#direction === 'toHost') {
      throw new UntranslatableValue(`no mapping covers the namespace ${namespace}`);
    }
    return written === undefined ? value : (path.walker.replace(value, [written]) ?? null);
  }

  /** Many virtual namespaces may share one on the host: then what the virtual object has at this place decides. */
  #virtualNamespace(host: string, path: SubPath, place: ConcretePath): string | undefined {
    const known = this.#rules.names.namespaceToVirtual(host);
    if (known !== undefined) return known;
    const counterpart = valueAt(this.#context.virtualObject, place);
    const current = counterpart === undefined ? [] : valuesAt(path, counterpart);
    const [virtual] = current;
    if (typeof virtual !== 'string') return undefined;
    return this.#rules.names.namespaceToHost(virtual) === host ? virtual : undefined;
  }

  #isAllowed(reference: CompiledReference, parts: ReferencedGvk): boolean {
    const isConfigured = parts.kind === reference.kind && parts.apiVersion === reference.apiVersion;
    return isConfigured || this.#rules.isKindAllowed(parts.apiVersion, parts.kind);
  }

  /** What a reference without a namespace of its own means. */
  #ownNamespace(): string {
    const { objectNamespace } = this.#context;
    if (this.#direction === 'toHost') return objectNamespace;
    return this.#rules.names.namespaceToHost(objectNamespace) ?? this.#rules.names.hostNamespace;
  }

  #toHost(reference: ObjectReference): NamespacedName {
    const known = this.#rules.lookup(reference, 'toHost');
    const host = known ?? this.#rules.names.referenceToHost(reference);
    if (host === undefined) {
      throw new UntranslatableValue(
        `the referenced ${reference.kind} ${reference.namespace}/${reference.name} is in a namespace that no mapping covers`,
      );
    }
    return host;
  }

  /**
   * A generated name cannot be computed back, so candidates are tried forward: what a lookup knows, what the virtual object has at this
   * place, what the long rule gives. An unknown name belongs to the host and stays.
   */
  #toVirtual(
    reference: CompiledReference,
    host: ObjectReference,
    match: ReferenceMatch,
  ): NamespacedName | undefined {
    const known = this.#rules.lookup(host, 'toVirtual');
    if (known !== undefined) return this.#writable(reference, match.value, known);
    const isForward = (virtual: NamespacedName): boolean => {
      const forward =
        this.#rules.lookup({ ...host, ...virtual }, 'toHost') ?? this.#rules.names.referenceToHost(virtual);
      return forward?.name === host.name && forward.namespace === host.namespace;
    };
    const current = this.#virtualCounterpart(reference, match.path);
    if (current !== undefined && isForward(current)) return current;
    const candidates = this.#rules.names
      .toVirtualCandidates(host)
      .filter((virtual) => this.#writable(reference, match.value, virtual) !== undefined);
    return candidates.length === 1 ? candidates[0] : undefined;
  }

  /** A value without a namespace of its own can only name objects of the object's namespace. */
  #writable(
    reference: CompiledReference,
    value: JsonValue,
    virtual: NamespacedName,
  ): NamespacedName | undefined {
    if (virtual.namespace === this.#context.objectNamespace || virtual.namespace === '') return virtual;
    return stringAt(reference.namespacePath, value, 'namespacePath') === undefined ? undefined : virtual;
  }

  /** What the virtual object names at the same place. */
  #virtualCounterpart(reference: CompiledReference, path: ConcretePath): NamespacedName | undefined {
    const value = valueAt(this.#context.virtualObject, path);
    if (value === undefined) return undefined;
    try {
      const parts = partsOf(reference, value);
      return parts && { name: parts.name, namespace: parts.namespace ?? this.#context.objectNamespace };
    } catch (error) {
      // The virtual side's value is only a hint here; its own errors are reported on the way to the host.
      if (error instanceof UntranslatableValue) return undefined;
      throw error;
    }
  }

  #isTranslatedAlready(reference: CompiledReference, { path, object }: ReferenceMatch): boolean {
    if (!this.#rules.skipPodTargetRefs) return false;
    const [subsets, , list, , targetRef] = [...path, ...keysOf(reference.namePath)];
    if (subsets !== 'subsets' || targetRef !== 'targetRef') return false;
    if (list !== 'addresses' && list !== 'notReadyAddresses') return false;
    const whole = [...path, ...keysOf(reference.namePath)].slice(0, 5);
    const target = valueAt(object, whole);
    return isJsonObject(target) && Object.hasOwn(target, 'kind') && target['kind'] === 'Pod';
  }
}

/** What is wrong with a value is reported when it is translated. */
function namedKind(reference: CompiledReference, value: JsonValue): ReferencedGvk | undefined {
  try {
    return partsOf(reference, value);
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** Undefined: there is no name, nothing to translate. */
function partsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
  const apiVersion = stringAt(reference.apiVersionPath, value, 'apiVersionPath') ?? reference.apiVersion;
  const kind = stringAt(reference.kindPath, value, 'kindPath') ?? reference.kind;
  if (reference.namePath === undefined) {
    if (typeof value !== 'string') {
      throw new UntranslatableValue(
        `a reference is the name of an object, this is ${describe(value)}; set namePath`,
      );
    }
    return value === '' ? undefined : { name: value, namespace: undefined, apiVersion, kind };
  }
  if (!isJsonObject(value)) {
    throw new UntranslatableValue(`a reference with namePath is an object, this is ${describe(value)}`);
  }
  const name = stringAt(reference.namePath, value, 'namePath');
  if (name === undefined) return undefined;
  return { name, namespace: stringAt(reference.namespacePath, value, 'namespacePath'), apiVersion, kind };
}

type NamespaceReference = CompiledReference & { readonly namespacePath: SubPath };

function isNamespaceAlone(reference: CompiledReference): reference is NamespaceReference {
  return reference.namePath === undefined && reference.namespacePath !== undefined;
}

function valuesAt(path: SubPath, value: JsonValue): readonly JsonValue[] {
  const values: JsonValue[] = [];
  path.walker.collect(value, { values, paths: undefined });
  return values;
}

/** Undefined: no such path, nothing there, or an empty string, which Kubernetes takes for absent. */
function stringAt(path: SubPath | undefined, value: JsonValue, field: string): string | undefined {
  if (path === undefined) return undefined;
  const [found] = valuesAt(path, value);
  if (found === undefined || found === '') return undefined;
  if (typeof found === 'string') return found;
  throw new UntranslatableValue(`${field} leads to ${describe(found)}, it has to be a string`);
}

function withParts(reference: CompiledReference, value: JsonValue, target: NamespacedName): JsonValue {
  if (reference.namePath === undefined) return target.name;
  const named = reference.namePath.walker.replace(value, [target.name]) ?? null;
  const { namespacePath } = reference;
  if (namespacePath === undefined || target.namespace === '') return named;
  return stringAt(namespacePath, value, 'namespacePath') === undefined
    ? named
    : (namespacePath.walker.replace(named, [target.namespace]) ?? null);
}

function keysOf(path: SubPath | undefined): ConcretePath {
  return (path?.segments ?? []).map((segment) => {
    if (segment.kind === 'key') return segment.key;
    return segment.kind === 'index' ? segment.index : '';
  });
}

function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}
