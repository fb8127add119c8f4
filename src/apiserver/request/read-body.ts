/** Parses the body of a write: JSON, YAML or protobuf into raw JSON. */

import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  type Tags,
  visit,
  type YAMLParseError,
} from 'yaml';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { duplicatesIn, type ParsedBody } from '../objects/decode-body.ts';
import { META_TYPES, TypeTable, type ObjectSchema } from '../schema/object-schema.ts';
import {
  YAML_BYTES_MAX,
  BODY_BYTES_MAX,
  FIELD_PROBLEMS_MAX,
  YAML_ALIASES_MAX,
  YAML_TOKENS_MAX,
  YAML_VALUES_MAX,
} from '../limits.ts';
import { DecodeError } from '../schema/decode.ts';
import { parseJsonText } from '../schema/json-text.ts';
import { decodeProtobuf, openEnvelope, ProtobufError } from '../schema/protobuf.ts';
import { badRequest, tooLargeYaml, unsupportedMediaType } from '../status.ts';

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

// Converts YAML text to JSON text, in less time than a turn of the event loop may take whatever the text is.

export type YamlOutcome =
  | { readonly kind: 'read'; readonly json: string; readonly duplicates: readonly string[] }
  | { readonly kind: 'several-documents' }
  /** `reason` names a position and never quotes the body, which may hold a secret. */
  | { readonly kind: 'rejected'; readonly reason: string };

/** Never throws. Texts above `YAML_BYTES_MAX` may take long. */
function readYaml(text: string): YamlOutcome {
  if (hasTooManyTokens(text)) {
    return rejected(`the YAML has more than ${YAML_TOKENS_MAX} tokens; send JSON`);
  }
  const lines = new LineCounter();
  const parsed = parseText(text, lines);
  if (!parsed) return rejected('the YAML is nested too deeply'); // the parser is recursive
  const [document, second] = parsed.documents;
  if (second) return { kind: 'several-documents' };
  const [problem] = parsed.errors;
  if (problem) return rejected(problemText(problem, lines));
  if (!document) return { kind: 'read', json: 'null', duplicates: [] };
  try {
    const value: unknown = document.toJS({ maxAliasCount: YAML_ALIASES_MAX });
    if (expandedSize(value) > YAML_VALUES_MAX) return rejected('its aliases expand to too many values');
    const json = JSON.stringify(value ?? null); // JSON has no dates and no undefined
    if (json.length > BODY_BYTES_MAX)
      return rejected('its aliases expand to more bytes than a body may have');
    return { kind: 'read', json, duplicates: duplicateKeys(document, lines) };
  } catch {
    return rejected('the YAML cannot be resolved');
  }
}

function rejected(reason: string): YamlOutcome {
  return { kind: 'rejected', reason };
}

/** The time of parsing depends on the number of tokens, not on the bytes; splitting the text takes a tenth of it. */
function hasTooManyTokens(text: string): boolean {
  let count = 0;
  for (const _token of new Lexer().lex(text)) if (++count > YAML_TOKENS_MAX) return true;
  return false;
}

/**
 * The number of values in the JSON text of `root`, each counted as often as aliases repeat it. The parser's own limit misses aliases of
 * empty collections, and twenty lines of them expand to more than fits into memory. Throws for a value that contains itself.
 */
function expandedSize(root: unknown): number {
  const sizes = new Map<object, number>();
  const open = new Set<object>();
  const sizeOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 1;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    if (open.has(value)) throw new Error('the value contains itself');
    open.add(value);
    let size = 1;
    for (const member of Object.values(value)) size += sizeOf(member);
    open.delete(value);
    sizes.set(value, size);
    return size;
  };
  return sizeOf(root);
}

interface ParsedText {
  readonly documents: readonly Document.Parsed[];
  /** Of the first document; of the text when it has none. */
  readonly errors: readonly YAMLParseError[];
}

/** Undefined for a text that is nested too deeply. */
function parseText(text: string, lineCounter: LineCounter): ParsedText | undefined {
  const options = {
    version: '1.1',
    customTags: kubernetesTags,
    uniqueKeys: false,
    logLevel: 'silent',
    // An excerpt in each of very many errors takes quadratic time.
    prettyErrors: false,
    lineCounter,
  } as const;
  try {
    const tokens = new Parser(lineCounter.addNewLine).parse(text);
    const composer = new Composer(options);
    const documents = [...composer.compose(untilError(tokens))];
    return { documents, errors: documents[0]?.errors ?? composer.streamInfo().errors };
  } catch {
    return undefined;
  }
}

/** Only the first error is reported, and each further one would take time. */
function* untilError(tokens: Iterable<CST.Token>): Generator<CST.Token, void> {
  for (const token of tokens) {
    yield token;
    if (token.type === 'error') return;
  }
}

/** YAML 1.1 as Kubernetes parses it: `yes` is true and `<<` merges, but dates and times are text. */
function kubernetesTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === 'string') return true;
    return tag.format !== 'TIME' && !OTHER_TAGS.includes(tag.tag);
  });
}

const OTHER_TAGS = ['timestamp', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`);

function problemText({ code, pos }: YAMLParseError, lines: LineCounter): string {
  const { line, col } = lines.linePos(pos[0]);
  return `yaml: ${code.toLowerCase().replaceAll('_', ' ')} at line ${line}, column ${col}`;
}

/** One message for each key that a map sets twice. The parser's own check takes quadratic time. */
function duplicateKeys(document: Document.Parsed, lines: LineCounter): string[] {
  const found: string[] = [];
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        if (seen.has(name) && found.length < FIELD_PROBLEMS_MAX) {
          const { line } = lines.linePos(key.range?.[0] ?? 0);
          found.push(`line ${line}: key ${JSON.stringify(name)} already set in map`);
        }
        seen.add(name);
      }
    },
  });
  return found;
}
