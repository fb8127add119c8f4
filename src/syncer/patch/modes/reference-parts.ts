/** The parts of a value that names another object: read from the value, and replaced in it. */

import type { CompiledReference, SubPath } from './compile-reference.ts';
import { UntranslatableValue } from './untranslatable.ts';
import { isJsonObject, type JsonValue } from '../../../base/json.ts';
import type { NamespacedName } from '../../../kube/object.ts';

/** A kind as the data name it. */
export interface ReferencedGvk {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface ReferenceParts extends ReferencedGvk {
  readonly name: string;
  /** Undefined: the value has none. */
  readonly namespace: string | undefined;
}

/** Undefined: there is no name, nothing to translate. Throws {@link UntranslatableValue}. */
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

/** Like {@link partsOf} where an invalid value is reported elsewhere: undefined for it too. */
export function validPartsOf(reference: CompiledReference, value: JsonValue): ReferenceParts | undefined {
  try {
    return partsOf(reference, value);
  } catch (error) {
    if (error instanceof UntranslatableValue) return undefined;
    throw error;
  }
}

/** Undefined: no such path, nothing there, or an empty string, which Kubernetes takes for absent. */
export function stringAt(path: SubPath | undefined, value: JsonValue, field: string): string | undefined {
  if (path === undefined) return undefined;
  const [found] = path.walker.values(value);
  if (found === undefined || found === '') return undefined;
  if (typeof found === 'string') return found;
  throw new UntranslatableValue(`${field} leads to ${describe(found)}, it has to be a string`);
}

/** The value with the name of another object; its namespace is replaced only where the value has one. */
export function withParts(reference: CompiledReference, value: JsonValue, target: NamespacedName): JsonValue {
  if (reference.namePath === undefined) return target.name;
  const named = reference.namePath.walker.replace(value, [target.name]) ?? null;
  const { namespacePath } = reference;
  if (namespacePath === undefined || target.namespace === '') return named;
  return stringAt(namespacePath, value, 'namespacePath') === undefined
    ? named
    : (namespacePath.walker.replace(named, [target.namespace]) ?? null);
}

/** A value of the wrong type, for a message: bounded. */
export function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}
