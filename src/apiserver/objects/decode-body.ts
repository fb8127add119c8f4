/** Decodes the body of a write as the kind that the URL names, with warnings or errors for unknown and duplicate fields. */

import { apiVersionOf } from '../../kube/object.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResourceDefinition, DefinitionTable } from './resource-definition.ts';
import { shortened } from '../status.ts';
import { cannotBeHandled, decodeObject, DecodeError } from '../schema/decode.ts';
import { duplicateFields } from '../schema/json-text.ts';
import type { FieldValidation } from './query-options.ts';

export interface ParsedBody {
  readonly value: JsonValue;
  /** One message for each field that the text names twice. */
  readonly duplicates: readonly string[];
}

export type Warn = (text: string) => void;

/** Throws 400 when the body names another kind. Missing fields default to the kind of the URL. */
export function checkType(table: DefinitionTable, definition: ResourceDefinition, body: JsonObject): void {
  const expected = apiVersionOf(definition);
  const kind = textOr(body['kind'], definition.kind);
  const apiVersion = textOr(body['apiVersion'], expected);
  if (kind === definition.kind && apiVersion === expected) return;
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  // The Go package: the core group has a name there.
  const packageName = definition.group === '' ? 'core' : definition.version;
  const isKnown = table.of(group ?? '', version ?? '').some((other) => other.kind === kind);
  const why = isKnown
    ? `converting (${version}.${kind}) to (${packageName}.${definition.kind}): unknown conversion`
    : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "embedded"`;
  throw cannotBeHandled(kind, definition.version, definition.kind, why);
}

function textOr(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

/** Decodes by the kind's schema; `validation` decides whether unknown and duplicate fields are ignored, warned about or rejected. */
export function decodeBody(
  definition: ResourceDefinition,
  parsed: ParsedBody,
  validation: FieldValidation,
  warn: Warn,
): JsonObject {
  const body = isJsonObject(parsed.value) ? parsed.value : {};
  try {
    const { value, unknownFields } = decodeObject(definition.schema, body);
    if (validation !== 'Ignore') {
      const problems = [
        ...parsed.duplicates,
        ...unknownFields.map((path) => `unknown field ${JSON.stringify(shortened(path))}`),
      ];
      if (validation === 'Strict' && problems.length > 0) {
        throw new DecodeError(`strict decoding error: ${problems.join(', ')}`);
      }
      for (const problem of problems) warn(problem);
    }
    return value;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw cannotBeHandled(definition.kind, definition.version, definition.kind, error.message);
  }
}

/** One message for each field that a JSON text names twice. */
export function duplicatesIn(json: string): readonly string[] {
  return duplicateFields(json).map((path) => `duplicate field ${JSON.stringify(shortened(path))}`);
}
