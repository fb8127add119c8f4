/** Text to a YAML tree: one document, bounded depth, the first syntax error with its offset. JSON is YAML. */

import {
  Composer,
  type Document,
  isDocument,
  isScalar,
  Lexer,
  type ParsedNode,
  Parser,
  type ScalarTag,
  type YAMLError,
} from 'yaml';

/** A problem at one position of the text. */
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

export function readYaml(text: string): YamlSource {
  const documents: Document.Parsed[] = [];
  // Known tags off: `!!binary` or `!!set` would make values that are not JSON. Duplicate keys are looked for later, in linear time.
  const composer = new Composer({
    stringKeys: true,
    merge: true,
    uniqueKeys: false,
    resolveKnownTags: false,
    customTags: (tags) => [...YAML_1_1_TAGS, ...tags],
    logLevel: 'error',
  });
  try {
    for (const document of composer.compose(tokensOf(text), true, text.length)) {
      if (isDocument(document)) documents.push(document as Document.Parsed); // what this generator yields
    }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { root: null, problems: [error.problem] };
  }
  return { root: documents[0]?.contents ?? null, problems: problemsOf(documents, text) };
}

/** Ends the reading of a file. */
export class Unreadable extends Error {
  readonly problem: SyntaxProblem;

  constructor(offset: number, message: string) {
    super(message);
    this.problem = problemAt(offset, 'error', message);
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
    return [problemAt(error.pos[0], 'error', quoteAdvice(error, text) ?? yamlMessage(error))];
  const problems = firstPerPlace(documents.flatMap(({ warnings }) => warnings))
    // Go's parsers take a closing bracket at the indentation of its key, and so does the one in use here.
    .filter(({ code }) => code !== 'BAD_INDENT')
    .map((warning) => problemAt(warning.pos[0], 'warning', yamlMessage(warning)));
  const second = documents.slice(1).find(({ contents }) => hasContent(contents));
  if (second !== undefined) {
    const offset = second.contents?.range[0] ?? second.range[0];
    problems.push(problemAt(offset, 'warning', 'a second document: only the first one is read'));
  }
  return problems;
}

function hasContent(node: ParsedNode | null): boolean {
  return node !== null && !(isScalar(node) && node.value === null);
}

function problemAt(offset: number, severity: 'error' | 'warning', message: string): SyntaxProblem {
  return { offset, severity, message };
}

function firstPerPlace(errors: readonly YAMLError[]): YAMLError[] {
  const seen = new Set<number>();
  return errors
    .toSorted((a, b) => a.pos[0] - b.pos[0])
    .filter(({ pos }) => !seen.has(pos[0]) && seen.add(pos[0]));
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

/** The error in the form of this program's messages, with what to do about it where the library only names the problem. */
export function yamlMessage(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'a tab cannot indent YAML: use spaces';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a second ": " on one line: put the value in quotes, or start a new line';
    case 'TAG_RESOLVE_FAILED':
      return `${plain(error.message)}: the tag is ignored`;
    case 'MISSING_CHAR':
      return error.message.startsWith('Missing closing')
        ? `${plain(error.message)}: close it, and indent each of its lines more than its key`
        : plain(error.message);
    case 'BAD_SCALAR_START':
      return `${plain(error.message)}: put it in quotes`;
    case 'RESOURCE_EXHAUSTION':
      return 'too much nesting';
    default:
      return plain(error.message);
  }
}

/** The message of the library without a capital at the start. */
function plain(message: string): string {
  return message.slice(0, 1).toLowerCase() + message.slice(1);
}
