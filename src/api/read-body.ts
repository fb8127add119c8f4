/** The body of a write → a decoded object of the kind that the URL names, with warnings or refusal for what does not belong. */

import { parseAllDocuments } from 'yaml';
import { apiVersionOf } from '../kube/object.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { DefinitionTable, ResourceDefinition } from './resource-definition.ts';
import { cannotBeHandled, decodeObject } from './schema/decode.ts';
import { DecodeError } from './schema/decode-scalar.ts';
import { duplicateFields } from './schema/duplicate-fields.ts';
import { decodeProtobuf, openEnvelope, ProtobufError } from './schema/protobuf.ts';
import { badRequest, unsupportedMediaType } from './status.ts';
import type { FieldValidation } from './write-options.ts';

export interface RawBody {
  readonly contentType: string;
  readonly bytes: Buffer;
}

export interface ParsedBody {
  readonly value: JsonValue;
  /** Fields that the text names twice. */
  readonly duplicates: readonly string[];
}

export type Warn = (text: string) => void;

const ACCEPTED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** JSON, YAML or protobuf → raw JSON. `definition` is the kind that the URL names. */
export function parseBody(definition: ResourceDefinition, body: RawBody): ParsedBody {
  switch (body.contentType) {
    case '':
    case 'application/json':
      return parseJson(definition.kind, body.bytes.toString('utf8'));
    case 'application/yaml':
      return { value: parseYaml(definition.kind, body.bytes.toString('utf8')), duplicates: [] };
    case PROTOBUF:
      return { value: parseProtobuf(definition, body.bytes), duplicates: [] };
    default:
      throw unsupportedMediaType(ACCEPTED);
  }
}

/** A bound on what a few bytes of YAML can grow to. */
const ALIASES_MAX = 100;

/** JSON.parse with Go's words for a text that is none. */
export function parseJsonText(text: string): JsonValue {
  try {
    return shallow(JSON.parse(text) as JsonValue); // JSON.parse yields JSON
  } catch (cause) {
    if (cause instanceof DecodeError) throw cause;
    throw new DecodeError(isCutShort(text, cause) ? 'unexpected end of JSON input' : 'invalid JSON syntax', {
      cause,
    });
  }
}

/** Deeper than any object; everything after this may walk a value by recursion. */
const DEPTH_MAX = 200;

function shallow(value: JsonValue): JsonValue {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) throw new DecodeError('exceeded max depth');
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return value;
}

/** The error stands at the end of the text: more was to come. */
function isCutShort(text: string, error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const position = /at position (\d+)/.exec(error.message)?.[1];
  return position === undefined
    ? /end of JSON/.test(error.message)
    : Number(position) >= text.trimEnd().length;
}

function parseJson(kind: string, text: string): ParsedBody {
  try {
    const value = parseJsonText(text);
    if (!isJsonObject(value) && value !== null) {
      const type = Array.isArray(value) ? 'array' : typeof value;
      throw new DecodeError(
        `json: cannot unmarshal ${type} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ` +
          'Kind string "json:\\"kind,omitempty\\"" }',
      );
    }
    return { value, duplicates: duplicateFields(text) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw unrecognized(kind, error.message);
  }
}

/** The message ends before the body: it may hold a secret. */
function unrecognized(kind: string, why: string): Error {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
  );
}

/** YAML, of which JSON is a part that most clients send and that is read much faster. */
export function parseYaml(kind: string, text: string): JsonValue {
  if (text.startsWith('{')) {
    try {
      return parseJsonText(text);
    } catch {
      // It may still be YAML.
    }
  }
  const documents = parseAllDocuments(text, { schema: 'core', uniqueKeys: false });
  const [document, second] = Array.isArray(documents) ? documents : [];
  if (second) throw badRequest(`the body holds more than one YAML document; ${kind} is created one by one`);
  if (!document || document.errors.length > 0) {
    throw unrecognized(kind, document?.errors[0]?.message.split('\n')[0] ?? 'the document is empty');
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    return parseJsonText(JSON.stringify(value ?? null)); // through JSON: no dates, no undefined
  } catch (error) {
    throw unrecognized(kind, error instanceof Error ? error.message : 'it cannot be read');
  }
}

function parseProtobuf(definition: ResourceDefinition, bytes: Buffer): JsonValue {
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
        ...parsed.duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
        ...unknownFields.map((path) => `unknown field ${JSON.stringify(path)}`),
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
