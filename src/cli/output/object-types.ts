/** Whether an API server would take an object of a built-in kind: the types of its fields, and its labels and annotations. */

import { allowEverything } from '../../apiserver/request/request-info.ts';
import { validateMetadata } from '../../apiserver/metadata.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { decodeObject, DecodeError } from '../../apiserver/schema/decode.ts';
import { META_TYPES, TypeTable } from '../../apiserver/schema/object-schema.ts';
import { isJsonObject, textAt, type JsonObject } from '../../base/json.ts';
import { builtInKinds } from '../../embedded-cluster/kinds/built-in-kinds.ts';
import { pathSegmentProblem } from '../../kube/names.ts';
import { apiVersionOf } from '../../kube/object.ts';

type Rules = Pick<ResourceDefinition, 'schema' | 'checkName' | 'needsQualifiedFinalizers'>;

let known: ReadonlyMap<string, Rules> | undefined;
/** Of kinds that are not built in, only the metadata is checked. */
let other: Rules | undefined;

export function typeProblem(object: JsonObject): string | undefined {
  known ??= new Map(
    builtInKinds(allowEverything).all.map((one) => [`${apiVersionOf(one)} ${one.kind}`, one]),
  );
  other ??= {
    schema: new TypeTable([META_TYPES, 'Object = metadata:1 meta.ObjectMeta']).get('Object'),
    checkName: pathSegmentProblem,
    needsQualifiedFinalizers: false,
  };
  const rules = known.get(`${textAt(object, 'apiVersion')} ${textAt(object, 'kind')}`) ?? other;
  const checked = rules === other ? { metadata: object['metadata'] ?? null } : object;
  try {
    const { metadata } = decodeObject(rules.schema, checked).value;
    // A namespace that is not set is the one of the command.
    const [error] = isJsonObject(metadata)
      ? validateMetadata(metadata, { ...rules, isNamespaced: false })
      : [];
    return error && `no API server takes this object: ${error.field}: ${error.message}`;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return `no API server takes this object: ${error.message}`;
  }
}
