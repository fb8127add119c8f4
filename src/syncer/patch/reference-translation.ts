/** Reference patches: the value is the name of another object, and is replaced with the name of that object on the other side. */

import { printPath } from './path-syntax.ts';
import type {
  Direction,
  NameConflict,
  ObjectReference,
  PatchContext,
  ReferenceLookup,
  TranslatedReference,
  UnresolvedReference,
} from './types.ts';
import { PatchError } from '../../base/errors.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  type CompiledReference,
  isNamespaceReference,
  ifTranslatable,
  type Part,
  referencesIn,
  type ReferencedGvk,
  type ReferenceParts,
  ReferenceValue,
  type SubPath,
  UntranslatableValue,
} from './reference-parts.ts';
import { groupOf, type NamespacedName } from '../../kube/object.ts';
import { isProtected } from './protect.ts';
import type { ConcretePath, NameTranslator } from '../translate/types.ts';

/** The object that a value on the host names may appear later. */
const UNKNOWN_RETRY_MS = 30_000;

export interface ReferenceRules {
  readonly names: NameTranslator;
  readonly lookup: ReferenceLookup;
  /** Throws `Postponed` while the data that lookups of these kinds need is being loaded. */
  prepare?(kinds: readonly ReferencedGvk[]): void;
  /** Whether references to a kind from `kindPath` or `apiVersionPath` may be translated. */
  isKindAllowed(apiVersion: string, kind: string): boolean;
  /** The built-in translation has already translated the Pod `targetRef`s of the objects. */
  readonly skipPodTargetRefs: boolean;
  /** Shared by the runs of a trace, each of which applies one patch to an object. Undefined: one run applies all of them. */
  readonly translatedNamespaces?: TranslatedNamespaces;
}

/** Namespaces in one object that references have translated, by {@link placeKey}. Several references may have theirs at the same place. */
type TranslatedNamespaces = Map<string, { readonly from: string; readonly to: string }>;

interface ReferenceMatch {
  readonly value: JsonValue;
  readonly path: ConcretePath;
  /** The state of the object when this patch runs. */
  readonly object: JsonObject;
}

interface FoundReference {
  readonly reference: CompiledReference;
  readonly match: ReferenceMatch;
  readonly value: ReferenceValue;
  readonly parts: ReferenceParts;
  /** What the object of the other side has at the same place: towards the host, the copy. */
  readonly other: () => ReferenceParts | undefined;
}

type Texts = readonly Part[];

export class ReferenceTranslation {
  readonly references: TranslatedReference[] = [];
  readonly notAllowed: ObjectReference[] = [];
  readonly unresolved: UnresolvedReference[] = [];
  readonly #rules: ReferenceRules;
  readonly #direction: Direction;
  readonly #context: PatchContext;
  readonly #translatedNamespaces: TranslatedNamespaces;

  constructor(rules: ReferenceRules, direction: Direction, context: PatchContext) {
    this.#translatedNamespaces = rules.translatedNamespaces ?? new Map();
    this.#rules = rules;
    this.#direction = direction;
    this.#context = context;
  }

  /** Kinds that a patch names are loaded at start; kinds that only data contains may have to be loaded first. */
  prepare(reference: CompiledReference, values: () => readonly (JsonValue | undefined)[]): void {
    const isOpen = reference.kindPath !== undefined || reference.apiVersionPath !== undefined;
    if (!isOpen || this.#rules.prepare === undefined) return;
    const kinds = values().flatMap((value) => referencesIn(reference, value ?? null));
    this.#rules.prepare(kinds.filter((kind) => this.#isAllowed(reference, kind)));
  }

  /** The value for the other side; the same value if there is nothing to translate. Throws {@link UntranslatableValue}. */
  translate(configured: CompiledReference, match: ReferenceMatch): JsonValue {
    const isOwn = isOwnNamespace(configured, match);
    const isNamespace = isNamespaceReference(configured);
    if (isOwn && isNamespace) return match.value;
    const reference = isOwn ? { ...configured, namespacePath: undefined } : configured;
    const value = new ReferenceValue(reference, match.value);
    const other = (): ReferenceValue | undefined => this.#otherValue(reference, match.path);
    const virtual = this.#direction === 'toVirtual' ? other() : undefined;
    const otherParts = (element: ConcretePath): ReferenceParts | undefined =>
      ifTranslatable(() => (virtual ?? other())?.parts(element));
    const texts = value.elements().flatMap((element) => {
      if (element.length > 0 && isProtected([...match.path, ...element])) return [];
      const parts = this.#withOriginalNamespace(reference, value.parts(element), match);
      const found = {
        reference,
        match,
        value,
        parts,
        other: () => otherParts(element),
      };
      return isNamespace ? this.#translateNamespace(found) : this.#translateName(found);
    });
    return value.with(texts, virtual);
  }

  /** What the object of the other side has at this path. Errors of this value are reported by the translation from that side. */
  #otherValue(reference: CompiledReference, path: ConcretePath): ReferenceValue | undefined {
    const { hostObject, virtualObject } = this.#context;
    const object = this.#direction === 'toHost' ? hostObject : virtualObject;
    const value = object ? valueAt(object, path) : undefined;
    return value === undefined ? undefined : ifTranslatable(() => new ReferenceValue(reference, value));
  }

  #translateName(found: FoundReference): Texts {
    const { reference, match, value, parts } = found;
    const { name, namespace } = parts;
    if (name === undefined || this.#isTranslatedAlready(name, match)) return [];
    const named: ObjectReference = {
      patchIndex: reference.patchIndex,
      path: printPath(match.path),
      apiVersion: parts.apiVersion,
      kind: parts.kind,
      namespace: namespace?.text ?? this.#ownNamespace(),
      name: name.text,
    };
    if (!this.#isAllowed(reference, parts)) {
      this.notAllowed.push(named);
      return [];
    }
    const target = this.#direction === 'toHost' ? this.#toHost(named, found) : this.#toVirtual(named, found);
    if (target === undefined) {
      this.unresolved.push({ path: [...match.path, ...value.placeOf(name)], error: unknownName(named) });
      return [];
    }
    this.references.push({ ...named, written: target });
    const written = { ...name, text: target.name };
    if (namespace === undefined || target.namespace === '') return [written];
    return [written, this.#translated(namespace, target.namespace, found)];
  }

  /** The value references a namespace instead of an object, so nothing is imported for it. */
  #translateNamespace(found: FoundReference): Texts {
    const { namespace } = found.parts;
    if (namespace === undefined) return [];
    const written =
      this.#direction === 'toHost'
        ? this.#rules.names.namespaceToHost(namespace.text)
        : this.#virtualNamespace(namespace.text, found.other()?.namespace?.text);
    if (written === undefined && this.#direction === 'toHost') {
      throw new UntranslatableValue(`no mapping covers the namespace ${namespace.text}`);
    }
    return written === undefined ? [] : [this.#translated(namespace, written, found)];
  }

  /** Another reference may have translated the namespace, which is that of this one, too. */
  #withOriginalNamespace(
    reference: CompiledReference,
    parts: ReferenceParts,
    { path }: ReferenceMatch,
  ): ReferenceParts {
    const { namespace } = parts;
    if (namespace === undefined || !reference.sharesNamespace) return parts;
    const known = this.#translatedNamespaces.get(placeKey(path, namespace));
    if (known?.to !== namespace.text) return parts;
    return { ...parts, namespace: { ...namespace, text: known.from } };
  }

  /** The namespace to write. Throws {@link UntranslatableValue} if another reference needs another one at this place. */
  #translated(namespace: Part, to: string, { reference, match: { path } }: FoundReference): Part {
    if (!reference.sharesNamespace) return { ...namespace, text: to };
    const key = placeKey(path, namespace);
    const known = this.#translatedNamespaces.get(key);
    if (known !== undefined && known.from === namespace.text && known.to !== to) {
      throw new UntranslatableValue(
        `the namespace at ${printPath([...path, ...namespace.place])} is that of several references: it would be both "${known.to}" and "${to}"`,
      );
    }
    this.#translatedNamespaces.set(key, { from: namespace.text, to });
    return { ...namespace, text: to };
  }

  /** Several virtual namespaces may share one on the host. The value of the virtual object at the same path then selects one of them. */
  #virtualNamespace(host: string, virtual: string | undefined): string | undefined {
    const known = this.#rules.names.namespaceToVirtual(host);
    if (known !== undefined || virtual === undefined) return known;
    return this.#rules.names.namespaceToHost(virtual) === host ? virtual : undefined;
  }

  #isAllowed(reference: CompiledReference, parts: ReferencedGvk): boolean {
    const isConfigured = parts.kind === reference.kind && parts.apiVersion === reference.apiVersion;
    return isConfigured || this.#rules.isKindAllowed(parts.apiVersion, parts.kind);
  }

  #ownNamespace(): string {
    return this.#direction === 'toHost' ? this.#context.objectNamespace : this.#hostNamespace();
  }

  #hostNamespace(): string {
    const { names } = this.#rules;
    return names.namespaceToHost(this.#context.objectNamespace) ?? names.hostNamespace;
  }

  #toHost(reference: ObjectReference, { other }: FoundReference): NamespacedName {
    const onHost = (): NamespacedName | undefined => {
      const { name, namespace } = other() ?? {};
      return name && { name: name.text, namespace: namespace?.text ?? this.#hostNamespace() };
    };
    const known = this.#rules.lookup(reference, 'toHost', onHost);
    if (isConflict(known)) throw heldByAnother(reference, known);
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

  /** A generated name is not reversible, so candidates are translated forward and compared: the value of the virtual object at the same path, the
   * result of the lookup, and the reversed long name. The name of an object that exists only on the host is kept. */
  #toVirtual(host: ObjectReference, { parts, other }: FoundReference): NamespacedName | undefined {
    const isForward = (virtual: NamespacedName): boolean => {
      const found = this.#rules.lookup({ ...host, ...virtual }, 'toHost', () => host);
      const forward = found ?? this.#ruleOf(virtual, host);
      if (forward === undefined || isConflict(forward)) return false;
      return forward.name === host.name && forward.namespace === host.namespace;
    };
    const { name, namespace } = other() ?? {};
    const current = name && {
      name: name.text,
      namespace: namespace?.text ?? this.#context.objectNamespace,
    };
    if (current !== undefined && isForward(current)) return current;
    // A value without a namespace can reference only objects in the namespace of the object.
    const isWritable = (one: NamespacedName): boolean =>
      one.namespace === this.#context.objectNamespace ||
      one.namespace === '' ||
      parts.namespace !== undefined;
    // Looks through every virtual object of the kind.
    const known = this.#rules.lookup(host, 'toVirtual');
    if (known !== undefined && !isConflict(known) && isWritable(known)) return known;
    const [candidate, ...others] = this.#rules.names.toVirtualCandidates(host).filter(isWritable);
    if (candidate !== undefined && others.length === 0) return candidate;
    const same = { namespace: this.#context.objectNamespace, name: host.name };
    return isForward(same) ? same : undefined;
  }

  #isTranslatedAlready(name: Part, { path, object }: ReferenceMatch): boolean {
    if (!this.#rules.skipPodTargetRefs) return false;
    const whole = [...path, ...name.place].slice(0, 5);
    const [subsets, , list, , targetRef] = whole;
    if (subsets !== 'subsets' || targetRef !== 'targetRef') return false;
    if (list !== 'addresses' && list !== 'notReadyAddresses') return false;
    const target = valueAt(object, whole);
    return isJsonObject(target) && Object.hasOwn(target, 'kind') && target['kind'] === 'Pod';
  }
}

function isConflict(found: ReturnType<ReferenceLookup>): found is NameConflict {
  return found !== undefined && 'holder' in found;
}

function heldByAnother(
  { kind, namespace, name }: ObjectReference,
  { holder }: NameConflict,
): UntranslatableValue {
  return new UntranslatableValue(
    `the name of ${kind} "${namespace}/${name}" on the host is that of the copy of "${holder.namespace}/${holder.name}"; rename one of them`,
    { retryAfterMs: UNKNOWN_RETRY_MS },
  );
}

/** Printing the path would cost more than the translation. */
function placeKey(path: ConcretePath, { place }: Part): string {
  return `${path.join('\0')}\0${place.join('\0')}`;
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
