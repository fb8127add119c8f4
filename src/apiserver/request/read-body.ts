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
import { META_TYPES, TypeTable } from '../schema/object-schema.ts';
import {
  YAML_BYTES_MAX,
  BODY_BYTES_MAX,
  FIELD_PROBLEMS_MAX,
  YAML_ALIASES_MAX,
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
  const lines = new LineCounter();
  const { documents, errors } = parsedYaml(text, lines);
  const [document, second] = documents;
  if (second) throw badRequest(`the body holds more than one YAML document; send one ${kind} per request`);
  const [problem] = errors;
  if (problem) throw new DecodeError(problemText(problem, lines));
  if (!document) return { value: null, duplicates: [] };
  const json = jsonOf(document);
  if (json.length > BODY_BYTES_MAX) {
    throw new DecodeError('its aliases expand to more bytes than a body may have');
  }
  return { ...parseJsonText(json), duplicates: duplicateKeys(document, lines) };
}

function jsonOf(document: Document.Parsed): string {
  let value: unknown;
  let size: number;
  try {
    value = document.toJS({ maxAliasCount: YAML_ALIASES_MAX });
    size = expandedSize(value);
  } catch {
    throw new DecodeError('the YAML cannot be resolved');
  }
  if (size > YAML_VALUES_MAX) throw new DecodeError('its aliases expand to too many values');
  return JSON.stringify(value ?? null); // JSON has no dates and no undefined
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

interface ParsedYaml {
  readonly documents: readonly Document.Parsed[];
  readonly errors: readonly YAMLParseError[];
}

function parsedYaml(text: string, lineCounter: LineCounter): ParsedYaml {
  const options = {
    version: '1.1',
    customTags: kubernetesTags,
    intAsBigInt: true,
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
    throw new DecodeError('the YAML is nested too deeply'); // the parser is recursive
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
