/** Reads and replaces the parts of a reference value: name, namespace, kind and apiVersion. */

import type { CompiledReference, SubPath } from './compile-reference.ts';
import { UntranslatableValue } from './untranslatable.ts';
import { isJsonObject, type JsonValue } from '../../../base/json.ts';
import type { NamespacedName } from '../../../kube/object.ts';

/** A kind that the data of an object contains. */
export interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface ReferenceParts extends ReferencedGvk {
  readonly name: string;
  /** Undefined: the value has none. */
  readonly namespace: string | undefined;
}

/** Undefined for a value without a name, which is not translated. Throws {@link UntranslatableValue}. */
export function partsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
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
export function validPartsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
  try {
    return partsOf(reference, value);
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** Undefined without a path, without a value, and for an empty string, which Kubernetes treats as absent. */
export function stringAt(path: SubPath | undefined, value: JsonValue, field: string): string | undefined {
  if (path === undefined) return undefined;
  const [found] = path.walker.values(value);
  if (found === undefined || found === '') return undefined;
  if (typeof found === 'string') return found;
  throw new UntranslatableValue(`${field} leads to ${describe(found)}, which must be a string`);
}

/** The value with another name, and with another namespace if the value has one. */
export function withParts(reference: CompiledReference, value: JsonValue, target: NamespacedName): JsonValue {
  if (reference.namePath === undefined) return target.name;
  const named = reference.namePath.walker.replace(value, [target.name]) ?? null;
  const { namespacePath } = reference;
  if (namespacePath === undefined || target.namespace === '') return named;
  return stringAt(namespacePath, value, 'namespacePath') === undefined
    ? named
    : (namespacePath.walker.replace(named, [target.namespace]) ?? null);
}

/** Describes a value of the wrong type in a message of limited length. */
export function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}
