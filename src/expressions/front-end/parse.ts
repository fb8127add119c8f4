/** Parses one expression, or statements that end with an expression, in strict mode and with limits. */

import { Parser, tokContexts, tokTypes, type Options, type Program, type Token, type TokenType } from 'acorn';
import { isNode, visit, type SyntaxNode, type Visit } from './syntax-tree.ts';

export interface ParsedExpression {
  /** The statements before the result. */
  readonly statements: readonly SyntaxNode[];
  /** An expression, or a statement whose completion value is the result. */
  readonly result: SyntaxNode;
  /** All nodes of both, parents first. */
  readonly visits: readonly Visit[];
}

export interface ParseProblem {
  readonly kind: 'syntax' | 'forbidden';
  readonly message: string;
  /** 0-based character in the user's text. */
  readonly offset: number;
}

export type ParseOutcome =
  | { readonly ok: true; readonly parsed: ParsedExpression }
  | { readonly ok: false; readonly problem: ParseProblem };

/** Limits far above any realistic expression. */
const BYTES_MAX = 16 * 1024;
const NODES_MAX = 8000;
const DEPTH_MAX = 500;
/** The parser compiles each, which may take a third of a millisecond. */
const REGEXPS_MAX = 100;

export function parseExpression(text: string): ParseOutcome {
  if (Buffer.byteLength(text) > BYTES_MAX) {
    return failure('forbidden', `the expression is longer than ${BYTES_MAX} bytes`, 0);
  }
  const expression = parseWith(text, ExpressionParser);
  if (expression.ok) return expression;
  const statements = parseWith(text, Parser);
  // Reports the problem of the parse that got further, which is probably the intended form.
  return statements.ok || statements.problem.offset >= expression.problem.offset ? statements : expression;
}

/** Of a path's filter: one expression, in which `@` is another spelling of `value`. A path is too short for the limit on bytes. */
export function parseFilter(text: string): ParseOutcome {
  return parseWith(text, FilterParser);
}

/** The end of the parenthesized expression at the start of the text; undefined: it has none, or is no sequence of tokens. */
export function closingParenthesis(text: string): number | undefined {
  let depth = 0;
  try {
    for (const { type, end } of FilterParser.tokenizer(text, OPTIONS)) {
      if (OPENING.has(type)) depth++;
      else if (CLOSING.has(type) && --depth === 0) return type === tokTypes.parenR ? end : undefined;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return undefined;
}

const { parenL, bracketL, braceL, dollarBraceL, parenR, bracketR, braceR } = tokTypes;
const OPENING: ReadonlySet<TokenType> = new Set([parenL, bracketL, braceL, dollarBraceL]);
const CLOSING: ReadonlySet<TokenType> = new Set([parenR, bracketR, braceR]);

declare module 'acorn' {
  /** What its types leave out. */
  interface Parser {
    pos: number;
    type: TokenType;
    initialContext(): unknown[];
    nextToken(): void;
    parseExpression(): Expression;
    unexpected(): never;
    getTokenFromCode(code: number): void;
    finishToken(type: TokenType, value: string): void;
  }
  export const tokContexts: Readonly<Record<'p_expr', unknown>>;
}

/** Parses a text as one expression that stands in parentheses, so that `{}` is an object, not a block, and a string literal is not a directive. */
class ExpressionParser extends Parser {
  override parse(): Program {
    this.type = tokTypes.parenL;
    this.nextToken();
    const expression = this.parseExpression();
    if (this.type !== tokTypes.eof) this.unexpected();
    const { start, end } = expression;
    const statement = { type: 'ExpressionStatement' as const, expression, start, end };
    return { type: 'Program', body: [statement], sourceType: 'module', start, end };
  }

  override initialContext(): unknown[] {
    return [tokContexts.p_expr];
  }
}

class FilterParser extends ExpressionParser {
  override getTokenFromCode(code: number): void {
    if (code !== '@'.charCodeAt(0)) {
      super.getTokenFromCode(code);
      return;
    }
    this.pos++;
    this.finishToken(tokTypes.name, 'value');
  }
}

/** Statements whose completion value can be the result. */
const RESULT_STATEMENTS: ReadonlySet<string> = new Set(
  'Block DoWhile ForIn ForOf For If Labeled Switch Try While'.split(' ').map((name) => `${name}Statement`),
);

class LimitExceeded extends Error {
  override readonly name = 'LimitExceeded';
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

const OPTIONS: Options = {
  ecmaVersion: 2025,
  // Modules are strict and have no HTML comments.
  sourceType: 'module',
  allowAwaitOutsideFunction: false,
  allowReturnOutsideFunction: false,
  allowHashBang: false,
  locations: true,
};

function parseWith(text: string, parser: typeof Parser): ParseOutcome {
  let regexps = 0;
  const onToken = (token: Token): void => {
    if (token.type !== tokTypes.regexp) return;
    regexps += 1;
    if (regexps > REGEXPS_MAX)
      throw new LimitExceeded(`the expression has more than ${REGEXPS_MAX} regular expressions`, 0);
  };
  try {
    const parts = splitResult(parser.parse(text, { ...OPTIONS, onToken }));
    return { ok: true, parsed: { ...parts, visits: withinBudget([...parts.statements, parts.result]) } };
  } catch (error) {
    if (error instanceof LimitExceeded) return failure('forbidden', error.message, error.offset);
    if (error instanceof RangeError) return failure('forbidden', 'the expression is nested too deeply', 0);
    if (!(error instanceof SyntaxError)) throw error;
    const offset = 'pos' in error && typeof error.pos === 'number' ? error.pos : 0;
    return failure('syntax', explain(error.message, text, offset), offset);
  }
}

function splitResult({ body, end }: Program): Omit<ParsedExpression, 'visits'> {
  const all: readonly unknown[] = body;
  const statements = all.filter(isNode);
  const last = statements.pop();
  if (last === undefined) throw syntaxError('the expression is empty', end);
  if (RESULT_STATEMENTS.has(last.type)) return { statements, result: last };
  const { expression } = last;
  if (last.type === 'ExpressionStatement' && isNode(expression)) return { statements, result: expression };
  throw syntaxError(
    'the last statement has no value; end with an expression, if, switch, try or a loop',
    last.start,
  );
}

/** As those of the parser. */
function syntaxError(message: string, pos: number): SyntaxError {
  return Object.assign(new SyntaxError(message), { pos });
}

/** The parser's message without its position. */
function explain(message: string, text: string, offset: number): string {
  const plain = message.replace(/ \(\d+:\d+\)$/u, '');
  if (text.trim() === '') return 'the expression is empty';
  if (plain === 'Unexpected token' && offset >= text.trimEnd().length)
    return 'unexpected end of the expression';
  if (plain === "'return' outside of function") return 'write the result without `return`: value.trim()';
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}

function withinBudget(roots: readonly SyntaxNode[]): readonly Visit[] {
  const visits: Visit[] = [];
  for (const at of visit(roots)) {
    visits.push(at);
    if (visits.length > NODES_MAX)
      throw new LimitExceeded(`the expression has more than ${NODES_MAX} parts`, 0);
    if (at.depth > DEPTH_MAX)
      throw new LimitExceeded(`the expression is nested deeper than ${DEPTH_MAX} levels`, at.node.start);
  }
  return visits;
}

function failure(kind: ParseProblem['kind'], message: string, offset: number): ParseOutcome {
  return { ok: false, problem: { kind, message, offset } };
}
