/** Text to a YAML tree: one document, bounded depth, every syntax error with its offset. JSON is YAML. */

import { Composer, type Document, isDocument, Lexer, type ParsedNode, Parser, type YAMLError } from 'yaml';

/** Something wrong at one place of the text. */
export interface SyntaxProblem {
  readonly offset: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
}

export interface YamlSource {
  /** Null: the text holds no value, or is too broken to have one. */
  readonly root: ParsedNode | null;
  readonly problems: readonly SyntaxProblem[];
}

/** Collections in collections. The composer recurses, so this also bounds the stack. */
export const DEPTH_MAX = 100;

/** One mistake makes many errors; those after the first few say nothing new. */
const ERRORS_MAX = 20;

export function readYaml(text: string): YamlSource {
  const documents: Document.Parsed[] = [];
  // Known tags off: `!!binary` or `!!set` would make values that are not JSON. Duplicate keys are looked for later, in linear time.
  const composer = new Composer({
    stringKeys: true,
    merge: true,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'error',
  });
  try {
    for (const document of composer.compose(tokensOf(text), true, text.length)) {
      if (isDocument(document)) documents.push(document as Document.Parsed); // what this generator yields
    }
  } catch (error) {
    if (!(error instanceof TooDeep)) throw error;
    return { root: null, problems: [problemAt(error.offset, 'error', error.message)] };
  }
  return { root: documents[0]?.contents ?? null, problems: problemsOf(documents) };
}

class TooDeep extends Error {
  readonly offset: number;

  constructor(offset: number) {
    super(`more than ${DEPTH_MAX} levels of nesting`);
    this.offset = offset;
  }
}

/** The parser's tokens; stops as soon as the nesting passes the limit, whatever comes after. */
function* tokensOf(text: string): ReturnType<Parser['parse']> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > DEPTH_MAX) throw new TooDeep(parser.offset);
  }
  yield* parser.end();
}

function problemsOf(documents: readonly Document.Parsed[]): SyntaxProblem[] {
  const errors = documents.flatMap((document) => document.errors);
  const problems = firstPerPlace(errors).map((error) => problemAt(error.pos[0], 'error', messageOf(error)));
  if (problems.length > ERRORS_MAX) {
    const last = problems[ERRORS_MAX] ?? problemAt(0, 'error', '');
    const more = problems.length - ERRORS_MAX;
    problems.splice(
      ERRORS_MAX,
      more,
      problemAt(last.offset, 'error', `${more} more syntax errors from here on`),
    );
  }
  const second = documents[1];
  if (second !== undefined) {
    const offset = second.contents?.range[0] ?? second.range[0];
    problems.push(
      problemAt(offset, 'error', 'a second document: the file may have only one, remove the "---"'),
    );
  }
  const warnings = documents.flatMap((document) => document.warnings);
  return [...problems, ...firstPerPlace(warnings).map((w) => problemAt(w.pos[0], 'warning', messageOf(w)))];
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

/** What to do about it, where the library only says what it saw. */
function messageOf(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'a tab cannot indent YAML: use spaces';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a second ": " on one line: put the value in quotes, or start a new line';
    case 'NON_STRING_KEY':
      return 'a key must be text';
    case 'TAG_RESOLVE_FAILED':
      return `${plain(error.message)}: the tag is ignored`;
    case 'BAD_SCALAR_START':
      return `${plain(error.message)}: put it in quotes`;
    case 'RESOURCE_EXHAUSTION':
      return 'too much nesting';
    default:
      return plain(error.message);
  }
}

/** The library's sentence in our form: no capital at the start. */
function plain(message: string): string {
  return message.slice(0, 1).toLowerCase() + message.slice(1);
}
