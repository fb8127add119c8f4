/** Reference patches: the value is the name of another object, and is replaced with the name of that object on the other side. */

import { printPath, parsePath, type Segment } from './path-syntax.ts';
import type {
  Direction,
  ObjectReference,
  PatchContext,
  ReferenceLookup,
  TranslatedReference,
  UnresolvedReference,
} from './types.ts';
import { PatchError } from '../../base/errors.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { groupOf, type NamespacedName } from '../../kube/object.ts';
import type { ConcretePath, NameTranslator } from '../translate/types.ts';
import { compileWalker, type PathWalker } from './walk.ts';
import type { ReferenceConfig } from '../../config/types.ts';

/** The object that a value on the host names may appear later. */
const UNKNOWN_RETRY_MS = 30_000;

/** Dependencies of reference patches. */
export interface ReferenceRules {
  readonly names: NameTranslator;
  readonly lookup: ReferenceLookup;
  /** Loads the data that lookups of these kinds need. Undefined: it is loaded already. */
  prepare?(kinds: readonly ReferencedGvk[]): Promise<void> | undefined;
  /** Whether references to a kind from `kindPath` or `apiVersionPath` may be translated. */
  isKindAllowed(apiVersion: string, kind: string): boolean;
  /** The built-in translation has already translated the Pod `targetRef`s of the objects. */
  readonly skipPodTargetRefs: boolean;
}

/** One matched value and its path. */
interface ReferenceMatch {
  readonly value: JsonValue;
  readonly path: ConcretePath;
  /** The state of the object when this patch runs. */
  readonly object: JsonObject;
}

/** Translates the references of one object in one direction, and collects them. */
export class ReferenceTranslation {
  readonly references: TranslatedReference[] = [];
  readonly notAllowed: ObjectReference[] = [];
  readonly unresolved: UnresolvedReference[] = [];
  readonly #rules: ReferenceRules;
  readonly #direction: Direction;
  readonly #context: PatchContext;

  constructor(rules: ReferenceRules, direction: Direction, context: PatchContext) {
    this.#rules = rules;
    this.#direction = direction;
    this.#context = context;
  }

  /** Kinds that a patch names are loaded at start; kinds that only data contains may have to be loaded first. */
  prepare(reference: CompiledReference, values: () => readonly JsonValue[]): Promise<void> | undefined {
    const isOpen = reference.kindPath !== undefined || reference.apiVersionPath !== undefined;
    if (!isOpen || this.#rules.prepare === undefined) return undefined;
    const kinds = values().flatMap((value) => validPartsOf(reference, value) ?? []);
    return this.#rules.prepare(kinds.filter((kind) => this.#isAllowed(reference, kind)));
  }

  /** The value for the other side; the same value if there is nothing to translate. Throws {@link UntranslatableValue}. */
  translate(configured: CompiledReference, match: ReferenceMatch): JsonValue {
    const isOwn = isOwnNamespace(configured, match);
    if (isNamespaceReference(configured))
      return isOwn ? match.value : this.#translateNamespace(configured.namespacePath, match);
    const reference = isOwn ? { ...configured, namespacePath: undefined } : configured;
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
    if (target === undefined) {
      this.unresolved.push({ path: match.path, error: unknownName(named) });
      return match.value;
    }
    this.references.push({ ...named, written: target });
    return withParts(reference, match.value, target);
  }

  /** The value references a namespace instead of an object, so nothing is imported for it. */
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

  /** Several virtual namespaces may share one on the host. The value of the virtual object at the same path then selects one of them. */
  #virtualNamespace(host: string, path: SubPath, place: ConcretePath): string | undefined {
    const known = this.#rules.names.namespaceToVirtual(host);
    if (known !== undefined) return known;
    const counterpart = valueAt(this.#context.virtualObject, place);
    const [virtual] = counterpart === undefined ? [] : path.walker.values(counterpart);
    if (typeof virtual !== 'string') return undefined;
    return this.#rules.names.namespaceToHost(virtual) === host ? virtual : undefined;
  }

  #isAllowed(reference: CompiledReference, parts: ReferencedGvk): boolean {
    const isConfigured = parts.kind === reference.kind && parts.apiVersion === reference.apiVersion;
    return isConfigured || this.#rules.isKindAllowed(parts.apiVersion, parts.kind);
  }

  /** The namespace of references that contain none. */
  #ownNamespace(): string {
    const { objectNamespace } = this.#context;
    if (this.#direction === 'toHost') return objectNamespace;
    return this.#rules.names.namespaceToHost(objectNamespace) ?? this.#rules.names.hostNamespace;
  }

  #toHost(reference: ObjectReference): NamespacedName {
    const known = this.#rules.lookup(reference, 'toHost');
    const host = known ?? this.#ruleOf(reference, reference);
    if (host === undefined) {
      throw new UntranslatableValue(
        `the referenced ${reference.kind} ${reference.namespace}/${reference.name} is in a namespace that no mapping covers`,
      );
    }
    return host;
  }

  #ruleOf(virtual: NamespacedName, { apiVersion, kind }: ReferencedGvk): NamespacedName | undefined {
    return this.#rules.names.referenceToHost(virtual, { group: groupOf(apiVersion), kind });
  }

  /** A generated name is not reversible, so candidates are translated forward and compared: the value of the virtual object at the same
   * path, the result of the lookup, and the reversed long name. The name of an object that exists only on the host is kept.
   */
  #toVirtual(
    reference: CompiledReference,
    host: ObjectReference,
    match: ReferenceMatch,
  ): NamespacedName | undefined {
    const isForward = (virtual: NamespacedName): boolean => {
      const forward = this.#rules.lookup({ ...host, ...virtual }, 'toHost') ?? this.#ruleOf(virtual, host);
      return forward?.name === host.name && forward.namespace === host.namespace;
    };
    const current = this.#virtualCounterpart(reference, match.path);
    if (current !== undefined && isForward(current)) return current;
    const isWritable = (virtual: NamespacedName): boolean =>
      this.#isWritable(reference, match.value, virtual);
    // Looks through every virtual object of the kind.
    const known = this.#rules.lookup(host, 'toVirtual');
    if (known !== undefined && isWritable(known)) return known;
    const [candidate, ...others] = this.#rules.names.toVirtualCandidates(host).filter(isWritable);
    if (candidate !== undefined && others.length === 0) return candidate;
    const same = { namespace: this.#context.objectNamespace, name: host.name };
    return isForward(same) ? same : undefined;
  }

  /** A value without a namespace can reference only objects in the namespace of the object. */
  #isWritable(reference: CompiledReference, value: JsonValue, { namespace }: NamespacedName): boolean {
    if (namespace === this.#context.objectNamespace || namespace === '') return true;
    return stringAt(reference.namespacePath, value, 'namespacePath') !== undefined;
  }

  /** The reference in the virtual object at the same path. */
  #virtualCounterpart(reference: CompiledReference, path: ConcretePath): NamespacedName | undefined {
    const value = valueAt(this.#context.virtualObject, path);
    if (value === undefined) return undefined;
    // Errors of the virtual value are reported by the translation to the host.
    const parts = validPartsOf(reference, value);
    return parts && { name: parts.name, namespace: parts.namespace ?? this.#context.objectNamespace };
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

function unknownName({ patchIndex, path, kind, name }: ObjectReference): PatchError {
  return new PatchError(
    `no ${kind} of the virtual cluster has the name "${name}" on the host; name one that exists`,
    { index: patchIndex, path, kind: 'runtime', retryAfterMs: UNKNOWN_RETRY_MS },
  );
}

/** The `namespacePath` leads to `metadata.namespace`, which has been translated already: it means the same as none. */
function isOwnNamespace({ namespacePath }: CompiledReference, { path }: ReferenceMatch): boolean {
  if (namespacePath === undefined) return false;
  const [first, second, ...deeper] = [...path, ...keysOf(namespacePath)];
  return first === 'metadata' && second === 'namespace' && deeper.length === 0;
}

function keysOf(path: SubPath | undefined): ConcretePath {
  return (path?.segments ?? []).map((segment) => {
    if (segment.kind === 'key') return segment.key;
    return segment.kind === 'index' ? segment.index : '';
  });
}

/** A kind that the data of an object contains. */
interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

interface ReferenceParts extends ReferencedGvk {
  readonly name: string;
  /** Undefined: the value has none. */
  readonly namespace: string | undefined;
}

/** Undefined for a value without a name, which is not translated. Throws {@link UntranslatableValue}. */
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

/** Like {@link partsOf}, but undefined for an invalid value, for callers whose errors are reported elsewhere. */
function validPartsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
  try {
    return partsOf(reference, value);
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** Undefined without a path, without a value, and for an empty string, which Kubernetes treats as absent. */
function stringAt(path: SubPath | undefined, value: JsonValue, field: string): string | undefined {
  if (path === undefined) return undefined;
  const [found] = path.walker.values(value);
  if (found === undefined || found === '') return undefined;
  if (typeof found === 'string') return found;
  throw new UntranslatableValue(`${field} leads to ${describe(found)}, which must be a string`);
}

/** The value with another name, and with another namespace if the value has one. */
function withParts(reference: CompiledReference, value: JsonValue, target: NamespacedName): JsonValue {
  if (reference.namePath === undefined) return target.name;
  const named = reference.namePath.walker.replace(value, [target.name]) ?? null;
  const { namespacePath } = reference;
  if (namespacePath === undefined || target.namespace === '') return named;
  return stringAt(namespacePath, value, 'namespacePath') === undefined
    ? named
    : (namespacePath.walker.replace(named, [target.namespace]) ?? null);
}

/** Describes a value of the wrong type in a message of limited length. */
function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}

/** A path relative to the matched value. */
interface SubPath {
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
function isNamespaceReference(
  reference: CompiledReference,
): reference is CompiledReference & { readonly namespacePath: SubPath } {
  return reference.namePath === undefined && reference.namespacePath !== undefined;
}

/** A matched value cannot be translated by a reference or labels patch; the message is for the user. */
export class UntranslatableValue extends Error {
  override readonly name = 'UntranslatableValue';
}
