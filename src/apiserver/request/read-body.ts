/** Parses the body of a write: JSON, YAML or protobuf into raw JSON. */

import { Lexer, LineCounter } from 'yaml';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { parseYaml as parseYamlDocument, type YamlDocument } from '../../base/yaml/document.ts';
import { SECOND_DOCUMENT } from '../../base/yaml/source.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { META_TYPES, TypeTable } from '../schema/object-schema.ts';
import {
  YAML_BYTES_MAX,
  BODY_BYTES_MAX,
  DEPTH_MAX,
  FIELD_PROBLEMS_MAX,
  YAML_TOKENS_MAX,
  YAML_VALUES_MAX,
} from '../limits.ts';
import { decodeObject, DecodeError, jsonTypeName, type ParsedBody } from '../schema/decode.ts';
import { parseJsonText } from '../schema/json-text.ts';
import { decodeProtobuf, openEnvelope, ProtobufError } from '../schema/protobuf.ts';
import { badRequest, entityTooLarge, unsupportedMediaType } from '../status.ts';

export interface RawBody {
  readonly contentType: string;
  readonly bytes: Buffer;
}

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF];

type BodyKind = Pick<ResourceDefinition, 'kind' | 'schema'>;

/** Parses JSON, YAML or protobuf into raw JSON. `definition` is the kind that the URL names. */
export function parseBody(definition: BodyKind, { contentType, bytes }: RawBody): ParsedBody {
  switch (contentType) {
    case '':
    case 'application/json':
      return parseText(definition.kind, () => parseJsonText(bytes.toString('utf8')));
    case 'application/yaml':
      return parseYaml(definition.kind, bytes.toString('utf8'));
    case PROTOBUF:
      return { value: parseProtobuf(definition, bytes), duplicates: [] };
    default:
      throw unsupportedMediaType(ACCEPTED);
  }
}

/** Most clients send JSON as YAML; the JSON parser is much faster. */
export function parseYaml(kind: string, text: string): ParsedBody {
  return parseText(kind, () => {
    if (text.startsWith('{')) {
      try {
        return parseJsonText(text);
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
      }
    }
    if (text.length > YAML_BYTES_MAX) {
      throw entityTooLarge(`parsing YAML takes long, so its limit is ${YAML_BYTES_MAX} bytes; send JSON`);
    }
    return readYaml(kind, text);
  });
}

function parseText(kind: string, read: () => ParsedBody): ParsedBody {
  try {
    const parsed = read();
    return { ...parsed, value: typed(parsed.value) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    // The message ends before the body: it may hold a secret.
    const what =
      kind === DELETE_OPTIONS.kind ? '' : `the object provided is unrecognized (must be of type ${kind}): `;
    throw badRequest(`${what}couldn't get version/kind; json parse error: ${error.message}`);
  }
}

/** Returns null or an object whose `apiVersion` and `kind`, if any, are strings; throws `DecodeError` for anything else. */
function typed(value: JsonValue): JsonValue {
  if (value === null) return value;
  if (!isJsonObject(value)) {
    throw new DecodeError(
      `json: cannot unmarshal ${jsonTypeName(value)} into Go value of type struct { APIVersion string ` +
        '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    );
  }
  for (const field of ['apiVersion', 'kind']) {
    const member = ownValue(value, field);
    if (member === undefined || member === null || typeof member === 'string') continue;
    throw new DecodeError(
      `json: cannot unmarshal ${jsonTypeName(member)} into Go struct field .${field} of type string`,
    );
  }
  return value;
}

const DELETE_OPTIONS: BodyKind = {
  kind: 'DeleteOptions',
  schema: new TypeTable([META_TYPES]).get('meta.DeleteOptions'),
};

/** The `DeleteOptions` of a DELETE; undefined without a body. A precondition of the wrong type must not be ignored. */
export function parseDeleteBody(body: RawBody): JsonObject | undefined {
  if (body.bytes.length === 0) return undefined;
  const { value, numbers } = parseBody(DELETE_OPTIONS, body);
  if (!isJsonObject(value)) return undefined;
  const { kind } = value;
  if (kind !== undefined && kind !== DELETE_OPTIONS.kind) {
    throw badRequest(`no kind ${JSON.stringify(kind)} is registered for delete options: use DeleteOptions`);
  }
  try {
    return decodeObject(DELETE_OPTIONS.schema, value, numbers).value;
  } catch (error) {
    throw error instanceof DecodeError ? badRequest(error.message) : error;
  }
}

function parseProtobuf({ kind: expected, schema }: BodyKind, bytes: Buffer): JsonValue {
  try {
    const { apiVersion, kind, raw } = openEnvelope(bytes);
    return { apiVersion, kind, ...decodeProtobuf(schema, raw) };
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw badRequest(`the protobuf body cannot be read as ${expected}: ${error.message}`);
  }
}

// Reads YAML in less time than a turn of the event loop may take whatever the text is.

/** Throws `DecodeError` with a position, never with a part of the body, which may hold a secret. Texts above `YAML_BYTES_MAX` may take long. */
function readYaml(kind: string, text: string): ParsedBody {
  if (hasTooManyTokens(text)) {
    throw new DecodeError(`the YAML has more than ${YAML_TOKENS_MAX} tokens; send JSON`);
  }
  const document = parseYamlDocument(text, { depthMax: DEPTH_MAX, valuesMax: YAML_VALUES_MAX });
  const lines = new LineCounter();
  for (const { index } of text.matchAll(/^/gm)) lines.addNewLine(index);
  const [problem] = document.problems.filter(({ severity }) => severity === 'error');
  if (problem !== undefined) {
    const { line, col } = lines.linePos(problem.offset);
    throw new DecodeError(`yaml: ${problem.code} at line ${line}, column ${col}`);
  }
  if (document.problems.some(({ code }) => code === SECOND_DOCUMENT))
    throw badRequest(`the body holds more than one YAML document; send one ${kind} per request`);
  const json = JSON.stringify(document.json);
  if (json.length > BODY_BYTES_MAX)
    throw new DecodeError('its aliases expand to more bytes than a body may have');
  return { ...parseJsonText(json), duplicates: duplicateKeys(document, lines) };
}

/** The time of parsing depends on the number of tokens, not on the bytes; splitting the text takes a tenth of it. */
function hasTooManyTokens(text: string): boolean {
  let count = 0;
  for (const _token of new Lexer().lex(text)) if (++count > YAML_TOKENS_MAX) return true;
  return false;
}

/** One message for each key that a map sets twice. */
function duplicateKeys({ duplicates }: YamlDocument, lines: LineCounter): string[] {
  return duplicates
    .slice(0, FIELD_PROBLEMS_MAX)
    .map(
      ({ key, offset }) =>
        `line ${lines.linePos(offset).line}: key ${JSON.stringify(key)} already set in map`,
    );
}
