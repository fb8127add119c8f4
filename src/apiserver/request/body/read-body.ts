/** The body of a write → a decoded object of the kind that the URL names, with warnings or refusal for what does not belong. */

import { apiVersionOf } from '../../../kube/object.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../../base/json.ts';
import type { DefinitionTable, ResourceDefinition } from '../../objects/resource-definition.ts';
import { META_TYPES } from '../../schema/meta-types.ts';
import { shortened } from '../../field-error.ts';
import { YAML_BYTES_MAX } from '../../limits.ts';
import { parseJsonText } from './parse-json.ts';
import { cannotBeHandled, decodeObject } from '../../schema/decode.ts';
import { DecodeError } from '../../schema/decode-scalar.ts';
import { duplicateFields } from '../../schema/json-text.ts';
import { TypeTable } from '../../schema/notation.ts';
import { decodeProtobuf, openEnvelope, ProtobufError } from '../../schema/protobuf.ts';
import type { ObjectSchema } from '../../schema/object-schema.ts';
import { badRequest, tooLarge, unsupportedMediaType } from '../../status.ts';
import type { FieldValidation } from '../query/write-options.ts';
import type { YamlParser } from './yaml-parser.ts';

export interface RawBody {
  readonly contentType: string;
  readonly bytes: Buffer;
}

export interface ParsedBody {
  readonly value: JsonValue;
  /** Of each field that the text names twice, what is said about it. */
  readonly duplicates: readonly string[];
}

export type Warn = (text: string) => void;

const ACCEPTED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** JSON, YAML or protobuf → raw JSON. `definition` is the kind that the URL names. */
export async function parseBody(
  definition: ResourceDefinition,
  body: RawBody,
  yaml: YamlParser,
): Promise<ParsedBody> {
  switch (body.contentType) {
    case '':
    case 'application/json':
      return parseJson(definition.kind, body.bytes.toString('utf8'));
    case 'application/yaml':
      return parseYaml(definition.kind, body.bytes.toString('utf8'), yaml);
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

/** An object that says its kind in text, or nothing; throws `DecodeError` for anything else. */
function typed(value: JsonValue): JsonValue {
  if (value === null) return value;
  if (!isJsonObject(value)) {
    throw new DecodeError(
      `json: cannot unmarshal ${typeName(value)} into Go value of type struct { APIVersion string ` +
        '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    );
  }
  for (const field of ['apiVersion', 'kind']) {
    const said = ownValue(value, field);
    if (said === undefined || said === null || typeof said === 'string') continue;
    throw new DecodeError(
      `json: cannot unmarshal ${typeName(said)} into Go struct field .${field} of type string`,
    );
  }
  return value;
}

function typeName(value: JsonValue): string {
  if (typeof value === 'boolean') return 'bool';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** The `DeleteOptions` of a DELETE, which may have none. */
export async function parseDeleteBody(body: RawBody, yaml: YamlParser): Promise<JsonObject | undefined> {
  if (body.bytes.length === 0) return undefined;
  const value = await deleteOptionsIn(body, yaml);
  return isJsonObject(value) ? value : undefined;
}

async function deleteOptionsIn({ contentType, bytes }: RawBody, yaml: YamlParser): Promise<JsonValue> {
  const text = bytes.toString('utf8');
  switch (contentType) {
    case 'application/yaml':
      return (await parseYaml('DeleteOptions', text, yaml)).value;
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

/** YAML. Most clients send JSON, which is YAML too and is parsed much faster. */
export async function parseYaml(kind: string, text: string, yaml: YamlParser): Promise<ParsedBody> {
  if (text.startsWith('{')) {
    try {
      return { value: parseJsonText(text), duplicates: duplicatesIn(text) };
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      // It may still be YAML.
    }
  }
  if (text.length > YAML_BYTES_MAX) throw tooLarge(YAML_BYTES_MAX);
  const outcome = await yaml.parse(text);
  switch (outcome.kind) {
    case 'several-documents':
      throw badRequest(`the body holds more than one YAML document; ${kind} is created one by one`);
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

/** What is said of each field that a JSON text names twice. */
export function duplicatesIn(json: string): readonly string[] {
  return duplicateFields(json).map((path) => `duplicate field ${JSON.stringify(shortened(path))}`);
}

/** Made when it is asked for: few clients delete in protobuf. */
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

/** Throws the 400 of a body that says it is something else. What it does not say is taken from the URL. */
export function checkType(table: DefinitionTable, definition: ResourceDefinition, body: JsonObject): void {
  const expected = apiVersionOf(definition);
  const kind = textOr(body['kind'], definition.kind);
  const apiVersion = textOr(body['apiVersion'], expected);
  if (kind === definition.kind && apiVersion === expected) return;
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  const isKnown = table.of(group ?? '', version ?? '').some((other) => other.kind === kind);
  const why = isKnown
    ? `converting (${version}.${kind}) to (${packageOf(definition)}.${definition.kind}): unknown conversion`
    : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "embedded"`;
  throw cannotBeHandled(kind, definition.version, definition.kind, why);
}

/** What a real server calls the kind inside: the core group has a name there. */
function packageOf({ group, version }: ResourceDefinition): string {
  return group === '' ? 'core' : version;
}

function textOr(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

/** Decodes by the kind's schema and tells of unknown and duplicate fields as `validation` asks. */
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
