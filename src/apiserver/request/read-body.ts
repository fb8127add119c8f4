/** Parses the body of a write: JSON, YAML or protobuf into raw JSON. */

import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { duplicatesIn, type ParsedBody } from '../objects/decode-body.ts';
import { META_TYPES, TypeTable, type ObjectSchema } from '../schema/object-schema.ts';
import { YAML_BYTES_MAX } from '../limits.ts';
import { DecodeError } from '../schema/decode.ts';
import { parseJsonText } from '../schema/json-text.ts';
import { decodeProtobuf, openEnvelope, ProtobufError } from '../schema/protobuf.ts';
import { badRequest, tooLargeYaml, unsupportedMediaType } from '../status.ts';
import { readYaml } from './read-yaml.ts';

export interface RawBody {
  readonly contentType: string;
  readonly bytes: Buffer;
}

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF];

/** Parses JSON, YAML or protobuf into raw JSON. `definition` is the kind that the URL names. */
export function parseBody(definition: ResourceDefinition, body: RawBody): ParsedBody {
  switch (body.contentType) {
    case '':
    case 'application/json':
      return parseJson(definition.kind, body.bytes.toString('utf8'));
    case 'application/yaml':
      return parseYaml(definition.kind, body.bytes.toString('utf8'));
    case PROTOBUF:
      return { value: parseProtobuf(definition, body.bytes), duplicates: [] };
    default:
      throw unsupportedMediaType(ACCEPTED);
  }
}

function parseJson(kind: string, text: string): ParsedBody {
  try {
    return { value: typed(parseJsonText(text)), duplicates: duplicatesIn(text) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw unrecognized(kind, error.message);
  }
}

/** Returns null or an object whose `apiVersion` and `kind`, if any, are strings; throws `DecodeError` for anything else. */
function typed(value: JsonValue): JsonValue {
  if (value === null) return value;
  if (!isJsonObject(value)) {
    throw new DecodeError(
      `json: cannot unmarshal ${typeName(value)} into Go value of type struct { APIVersion string ` +
        '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    );
  }
  for (const field of ['apiVersion', 'kind']) {
    const member = ownValue(value, field);
    if (member === undefined || member === null || typeof member === 'string') continue;
    throw new DecodeError(
      `json: cannot unmarshal ${typeName(member)} into Go struct field .${field} of type string`,
    );
  }
  return value;
}

function typeName(value: JsonValue): string {
  if (typeof value === 'boolean') return 'bool';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** The `DeleteOptions` of a DELETE; undefined without a body. */
export function parseDeleteBody(body: RawBody): JsonObject | undefined {
  if (body.bytes.length === 0) return undefined;
  const value = deleteOptionsIn(body);
  return isJsonObject(value) ? value : undefined;
}

function deleteOptionsIn({ contentType, bytes }: RawBody): JsonValue {
  const text = bytes.toString('utf8');
  switch (contentType) {
    case 'application/yaml':
      return parseYaml('DeleteOptions', text).value;
    case PROTOBUF:
      return parseProtobuf({ kind: 'DeleteOptions', schema: deleteOptionsSchema() }, bytes);
    case '':
    case 'application/json':
      break;
    default:
      throw unsupportedMediaType(ACCEPTED);
  }
  try {
    return typed(parseJsonText(text));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`);
  }
}

/** The message ends before the body: it may hold a secret. */
function unrecognized(kind: string, why: string): Error {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
  );
}

/** Most clients send JSON as YAML; the JSON parser is much faster. */
export function parseYaml(kind: string, text: string): ParsedBody {
  if (text.startsWith('{')) {
    try {
      return { value: parseJsonText(text), duplicates: duplicatesIn(text) };
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      // It may be YAML in flow style.
    }
  }
  if (text.length > YAML_BYTES_MAX) throw tooLargeYaml(YAML_BYTES_MAX);
  const outcome = readYaml(text);
  switch (outcome.kind) {
    case 'several-documents':
      throw badRequest(`the body holds more than one YAML document; send one ${kind} per request`);
    case 'rejected':
      throw unrecognized(kind, outcome.reason);
    case 'read':
      break;
  }
  try {
    return { value: typed(parseJsonText(outcome.json)), duplicates: outcome.duplicates };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw unrecognized(kind, error.message);
  }
}

/** Created for each request: few clients delete in protobuf. */
function deleteOptionsSchema(): ObjectSchema {
  return new TypeTable([META_TYPES]).get('meta.DeleteOptions');
}

function parseProtobuf(definition: Pick<ResourceDefinition, 'kind' | 'schema'>, bytes: Buffer): JsonValue {
  try {
    const { apiVersion, kind, raw } = openEnvelope(bytes);
    const value = decodeProtobuf(definition.schema, raw);
    return { apiVersion, kind, ...value };
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw badRequest(`the protobuf body cannot be read as ${definition.kind}: ${error.message}`);
  }
}
