/** Whether an API server would take an object of a built-in kind: the types of its fields, and its labels and annotations. */

import { allowEverything } from '../../apiserver/request/authorizer.ts';
import { validateMetadata } from '../../apiserver/metadata.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { decodeObject } from '../../apiserver/schema/decode.ts';
import { DecodeError } from '../../apiserver/schema/decode-scalar.ts';
import { isJsonObject, textAt, type JsonObject } from '../../base/json.ts';
import { builtInKinds } from '../../embedded-cluster/kinds/built-in-kinds.ts';
import { apiVersionOf } from '../../kube/object.ts';

let known: ReadonlyMap<string, ResourceDefinition> | undefined;

/** Undefined for an object of another kind. */
export function typeProblem(object: JsonObject): string | undefined {
  known ??= new Map(
    builtInKinds(allowEverything).all.map((one) => [`${apiVersionOf(one)} ${one.kind}`, one]),
  );
  const definition = known.get(`${textAt(object, 'apiVersion')} ${textAt(object, 'kind')}`);
  if (definition === undefined) return undefined;
  try {
    const { metadata } = decodeObject(definition.schema, object).value;
    // A namespace that is not set is the one of the command.
    const rules = { ...definition, isNamespaced: false };
    const [error] = isJsonObject(metadata) ? validateMetadata(metadata, rules) : [];
    return error && `no API server takes this object: ${error.field}: ${error.message}`;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return `no API server takes this object: ${error.message}`;
  }
}
