/** Reads the file that a command names, and places problems in its text. */

import { open } from 'node:fs/promises';
import {
  LineCounter,
  Composer,
  type Document,
  isDocument,
  isScalar,
  Lexer,
  type ParsedNode,
  Parser,
  type ScalarTag,
  visit,
  type YAMLError,
} from 'yaml';
import { type ConfigProblem, ConfigError, fileProblem } from '../base/errors.ts';
import { collectInput } from '../base/input-buffer.ts';
import { caretLine, plainText, type Position } from '../base/excerpt.ts';

export interface SourceFile {
  readonly name: string;
  readonly text: string;
  readonly lines: LineCounter;
}

export function createSourceFile(name: string, text: string): SourceFile {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
  return { name, text, lines };
}

/** Offsets beyond the text are its end. */
export function positionOf({ text, lines }: SourceFile, offset: number): Position {
  const { line, col } = lines.linePos(Math.max(0, Math.min(offset, text.length)));
  return { line, column: col };
}

/** The line of an offset with a caret below it, two lines without a final line break. */
export function excerptAt(source: SourceFile, offset: number): string {
  const { line, column } = positionOf(source, offset);
  const { lineStarts } = source.lines;
  const text = source.text.slice(lineStarts[line - 1], (lineStarts[line] ?? source.text.length + 1) - 1);
  return caretLine(text.replace(/\r$/u, ''), column - 1);
}

type ProblemDetails = Pick<ConfigProblem, 'path' | 'severity' | 'message'>;

/** A text alone is an error. */
export function problemOf(file: string, details: string | ProblemDetails): ConfigProblem {
  const { path, severity, message }: ProblemDetails =
    typeof details === 'string' ? { path: '', severity: 'error', message: details } : details;
  return { file, line: 0, column: 0, path, severity, message, excerpt: '' };
}

export function problemAt(source: SourceFile, offset: number, details: ProblemDetails): ConfigProblem {
  return { file: source.name, ...positionOf(source, offset), ...details, excerpt: excerptAt(source, offset) };
}

/** `file:line:column: path: message`; parts that a problem does not have are left out. */
export function describeProblem(
  { file, line, column, path, severity, message }: ConfigProblem,
  colour: (text: string) => string = (text) => text,
): string {
  const position = line > 0 ? `${file}:${line}:${column}` : file;
  const parts = [position, path].filter((part) => part !== '').map((part) => `${plainText(part)}: `);
  return `${parts.join('')}${colour(plainText(severity === 'warning' ? `warning: ${message}` : message))}`;
}

export function syntaxProblems({
  source,
  problems,
}: {
  readonly source: SourceFile;
  readonly problems: readonly SyntaxProblem[];
}): ConfigProblem[] {
  return problems.map(({ offset, severity, message }) =>
    problemAt(source, offset, { path: '', severity, message }),
  );
}

// Reads the file that a command names; `-` is standard input.

export function displayName(file: string): string {
  return file === '-' ? '<stdin>' : file;
}

/** The whole text of a file, or of standard input for `-`. Throws a `ConfigError` when it cannot be read. */
export async function readTextFile(file: string, bytesMax: number): Promise<string> {
  let content: Buffer | undefined;
  try {
    content = await collectInput(file === '-' ? process.stdin : chunksOf(file), bytesMax);
  } catch (error) {
    throw cannotBeRead(file, error);
  }
  if (content === undefined) throw unusable(file, `is larger than ${bytesMax} bytes`);
  try {
    // Drops a byte order mark too.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (error) {
    throw unusable(file, 'is not UTF-8 text', error);
  }
}

export function cannotBeRead(file: string, cause: unknown): ConfigError {
  return unusable(file, `cannot be read: ${fileProblem(cause)}`, cause);
}

async function* chunksOf(file: string): AsyncIterable<Buffer> {
  await using handle = await open(file);
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024));
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function unusable(file: string, message: string, cause?: unknown): ConfigError {
  return new ConfigError([problemOf(displayName(file), message)], { cause });
}

// Text to a YAML tree: one document, bounded depth, the first syntax error with its offset. JSON is YAML.

export interface SyntaxProblem {
  readonly offset: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
}

export interface YamlSource {
  /** Null: the text contains no value, or cannot be parsed. */
  readonly root: ParsedNode | null;
  readonly problems: readonly SyntaxProblem[];
}

/** Collections in collections. The composer recurses, so this also bounds the stack. */
export const DEPTH_MAX = 100;

/** vCluster, Helm and kubectl read YAML with Go's parsers, which know these two forms of YAML 1.1: an unquoted `yes` is true. */
const YAML_1_1_TAGS: readonly ScalarTag[] = [
  {
    tag: 'tag:yaml.org,2002:bool',
    default: true,
    test: /^(?:[Yy]es|YES|[Oo]n|ON|[Nn]o|NO|[Oo]ff|OFF)$/,
    resolve: (text) => /^(?:yes|on)$/i.test(text),
  },
  {
    tag: 'tag:yaml.org,2002:int',
    default: true,
    test: /^[-+]?0[0-7]+$/,
    resolve: (text) => Number.parseInt(text, 8),
  },
];

/** The first document of a text; a second one is a problem. */
export function readYaml(text: string): YamlSource {
  try {
    const documents = [...composedDocuments(text)];
    return { root: documents[0]?.contents ?? null, problems: problemsOf(documents, text) };
  } catch (error) {
    return unreadableYaml(error);
  }
}

/** Each document of a text, also after one with an error; not after the nesting passes the limit. */
export function* readYamlDocuments(text: string): Generator<YamlSource & { readonly end: number }> {
  try {
    for (const document of composedDocuments(text))
      yield { root: document.contents, problems: problemsOf([document], text), end: document.range[2] };
  } catch (error) {
    yield { ...unreadableYaml(error), end: text.length };
  }
}

function unreadableYaml(error: unknown): YamlSource {
  if (!(error instanceof Unreadable)) throw error;
  return { root: null, problems: [error.problem] };
}

function* composedDocuments(text: string): Generator<Document.Parsed> {
  // Known tags off: `!!binary` or `!!set` would make values that are not JSON. Duplicate keys are looked for later, in linear time.
  const composer = new Composer({
    stringKeys: true,
    merge: true,
    uniqueKeys: false,
    resolveKnownTags: false,
    customTags: (tags) => [...YAML_1_1_TAGS, ...tags],
    logLevel: 'error',
  });
  for (const document of composer.compose(tokensOf(text), true, text.length)) {
    if (isDocument(document)) yield document as Document.Parsed; // what this generator yields
  }
}

/** Ends the reading of a file. */
export class Unreadable extends Error {
  readonly problem: SyntaxProblem;

  constructor(offset: number, message: string) {
    super(message);
    this.problem = syntaxProblem(offset, 'error', message);
  }
}

/** The parser's tokens; stops as soon as the nesting passes the limit, whatever comes after. */
function* tokensOf(text: string): ReturnType<Parser['parse']> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > DEPTH_MAX)
      throw new Unreadable(parser.offset, `more than ${DEPTH_MAX} levels of nesting`);
  }
  yield* parser.end();
}

/** One mistake causes many errors: only the first one is reported. */
function problemsOf(documents: readonly Document.Parsed[], text: string): SyntaxProblem[] {
  const [error] = documents
    .flatMap(({ errors }) => errors)
    // An alias may stand for the text of a key; what cannot be a key is found when the keys are read.
    .filter(({ code }) => code !== 'NON_STRING_KEY')
    .toSorted((x, y) => x.pos[0] - y.pos[0]);
  if (error !== undefined)
    return [
      syntaxProblem(
        openQuote(error, documents) ?? error.pos[0],
        'error',
        quoteAdvice(error, text) ?? yamlMessage(error),
      ),
    ];
  const problems = firstPerPlace(documents.flatMap(({ warnings }) => warnings))
    // Go's parsers take a closing bracket at the indentation of its key, and so does the one in use here.
    .filter(({ code }) => code !== 'BAD_INDENT')
    .map((warning) => syntaxProblem(warning.pos[0], 'warning', yamlMessage(warning)));
  const second = documents.slice(1).find(({ contents }) => hasContent(contents));
  if (second !== undefined) {
    const offset = second.contents?.range[0] ?? second.range[0];
    problems.push(syntaxProblem(offset, 'warning', 'a second document: only the first one is read'));
  }
  return problems;
}

function hasContent(node: ParsedNode | null): boolean {
  return node !== null && !(isScalar(node) && node.value === null);
}

function syntaxProblem(offset: number, severity: 'error' | 'warning', message: string): SyntaxProblem {
  return { offset, severity, message };
}

function firstPerPlace(errors: readonly YAMLError[]): YAMLError[] {
  const seen = new Set<number>();
  return errors
    .toSorted((a, b) => a.pos[0] - b.pos[0])
    .filter(({ pos }) => !seen.has(pos[0]) && seen.add(pos[0]));
}

/** The offset of a quote that is not closed, which the library reports at the end of the file. Undefined for any other error. */
function openQuote(error: YAMLError, documents: readonly Document.Parsed[]): number | undefined {
  if (!isOpenQuote(error)) return undefined;
  let start: number | undefined;
  for (const document of documents)
    visit(document, {
      Scalar: (_, { range }) => {
        if (range?.[1] === error.pos[0]) start = range[0];
      },
    });
  return start;
}

function isOpenQuote({ code, message }: YAMLError): boolean {
  return code === 'MISSING_CHAR' && /^Missing closing ["']quote/u.test(message);
}

/** For `key: "text" more`, most often an expression: YAML ends the value at the closing quote. Undefined for any other error. */
function quoteAdvice({ message, pos: [offset] }: YAMLError, text: string): string | undefined {
  if (!message.endsWith('at node end')) return undefined;
  const before = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  const start = before.trimEnd();
  const quote = start.slice(-1);
  if (quote !== '"' && quote !== "'") return undefined;
  const opening = start.lastIndexOf(quote, start.length - 2);
  const key = start.slice(0, Math.max(0, opening)).trimEnd();
  if (!key.endsWith(':')) return undefined;
  const line = text.slice(offset).split('\n', 1)[0] ?? '';
  const rest = line.split(key.includes('{') ? /[,}]/u : /\s#/u, 1)[0] ?? '';
  const value = (before.slice(opening) + rest).trimEnd();
  const quoted =
    value.includes("'") && !/["\\]/u.test(value) ? `"${value}"` : `'${value.replaceAll("'", "''")}'`;
  const what = key.endsWith('xpression:') ? 'expression' : 'value';
  return `the value ends at its closing quote: quote the whole ${what}: ${quoted}`;
}

const NO_VALUE = 'a key without ": " after it: write "key: value"';

/** The error in the form of this program's messages, with what to do about it where the library only names the problem. */
function yamlMessage(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'a tab cannot indent YAML: use spaces';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a second ": " on one line: put the value in quotes, or start a new line';
    case 'TAG_RESOLVE_FAILED':
      return `${plain(error.message)}: the tag is ignored`;
    case 'MULTILINE_IMPLICIT_KEY':
      return NO_VALUE;
    case 'MISSING_CHAR':
      if (isOpenQuote(error))
        return 'this quote is not closed: close it, and indent each of its lines more than its key';
      return error.message.startsWith('Implicit map keys') ? NO_VALUE : plain(error.message);
    case 'BAD_SCALAR_START':
      return `${plain(error.message)}: put it in quotes`;
    case 'RESOURCE_EXHAUSTION':
      return 'too much nesting';
    default:
      return plain(error.message);
  }
}

function plain(message: string): string {
  return message.slice(0, 1).toLowerCase() + message.slice(1);
}
