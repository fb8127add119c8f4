/** Text to a YAML tree: bounded depth, the first syntax error with its offset. JSON is YAML. */

import {
  Composer,
  type CST,
  type Document,
  isDocument,
  isScalar,
  Lexer,
  type ParsedNode,
  Parser,
  visit,
  type YAMLError,
} from 'yaml';
import { refusedByGo, type Refusal } from './go-rules.ts';
import { YAML_SCHEMA } from './schema.ts';

export interface SyntaxProblem extends Refusal {
  readonly severity: 'error' | 'warning';
}

export interface YamlSource {
  /** Null: the text contains no value, or cannot be parsed. */
  readonly root: ParsedNode | null;
  readonly problems: readonly SyntaxProblem[];
}

/** Collections in collections. The composer recurses, so this also bounds the stack. */
export const DEPTH_MAX = 100;

/** The first document of a text; a second one is a problem. */
export function readYaml(text: string, depthMax = DEPTH_MAX): YamlSource {
  try {
    const documents = [...composedDocuments(text, untilError(tokensOf(text, depthMax)))];
    return { root: documents[0]?.contents ?? null, problems: problemsOf(documents, text) };
  } catch (error) {
    return unreadableYaml(error);
  }
}

/** Each document of a text, also after one with an error; not after the nesting passes the limit. */
export function* readYamlDocuments(text: string): Generator<YamlSource & { readonly end: number }> {
  let start = 0;
  try {
    for (const document of composedDocuments(text, tokensOf(text, DEPTH_MAX))) {
      const [, , end] = document.range;
      yield { root: document.contents, problems: problemsOf([document], text, [start, end]), end };
      start = end;
    }
  } catch (error) {
    yield { ...unreadableYaml(error), end: text.length };
  }
}

function unreadableYaml(error: unknown): YamlSource {
  if (!(error instanceof Unreadable)) throw error;
  return { root: null, problems: [error.problem] };
}

function* composedDocuments(text: string, tokens: Iterable<CST.Token>): Generator<Document.Parsed> {
  // Known tags off: `!!binary` or `!!set` would make values that are not JSON. Duplicate keys are looked for later, in linear time.
  const composer = new Composer({
    schema: YAML_SCHEMA,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'error',
  });
  for (const document of composer.compose(tokens, true, text.length)) {
    if (isDocument(document)) yield document as Document.Parsed; // what this generator yields
  }
}

/** Only the first error is reported, and each further one would take time. */
function* untilError(tokens: Iterable<CST.Token>): Generator<CST.Token, void> {
  for (const token of tokens) {
    yield token;
    if (token.type === 'error') return;
  }
}

/** Ends the reading of a file. */
export class Unreadable extends Error {
  readonly problem: SyntaxProblem;

  constructor(offset: number, message: string) {
    super(message);
    this.problem = { offset, severity: 'error', message, code: 'cannot be resolved' };
  }
}

/** The parser's tokens; stops as soon as the nesting passes the limit, whatever comes after. */
function* tokensOf(text: string, depthMax: number): ReturnType<Parser['parse']> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > depthMax)
      throw new Unreadable(parser.offset, `more than ${depthMax} levels of nesting`);
  }
  yield* parser.end();
}

/** The code of a warning. */
export const SECOND_DOCUMENT = 'second document';

/** One mistake causes many errors: only the first one is reported. */
function problemsOf(
  documents: readonly Document.Parsed[],
  text: string,
  part: readonly [number, number] = [0, text.length],
): SyntaxProblem[] {
  const [error] = documents.flatMap(({ errors }) => errors).toSorted((x, y) => x.pos[0] - y.pos[0]);
  if (error !== undefined) {
    const offset = openQuote(error, documents) ?? error.pos[0];
    return [
      { ...problemIn(error, quoteAdvice(error, text) ?? yamlMessage(error)), offset, severity: 'error' },
    ];
  }
  const refused = refusedByGo(documents, text, part);
  if (refused !== undefined) return [{ ...refused, severity: 'error' }];
  const problems = firstPerPlace(documents.flatMap(({ warnings }) => warnings))
    // Go's parsers take a closing bracket at the indentation of its key, and so does the one in use here.
    .filter(({ code }) => code !== 'BAD_INDENT')
    .map((warning) => problemIn(warning, `${plain(warning.message)}: the tag is ignored`));
  const second = documents.slice(1).find(({ contents }) => hasContent(contents));
  if (second !== undefined) {
    const offset = second.contents?.range[0] ?? second.range[0];
    const message = 'a second document: only the first one is read';
    problems.push({ offset, severity: 'warning', message, code: SECOND_DOCUMENT });
  }
  return problems;
}

function problemIn({ code, pos: [offset] }: YAMLError, message: string): SyntaxProblem {
  return { offset, severity: 'warning', message, code: code.toLowerCase().replaceAll('_', ' ') };
}

function hasContent(node: ParsedNode | null): boolean {
  return node !== null && !(isScalar(node) && node.value === null);
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
