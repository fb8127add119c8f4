/** Parses one expression, or statements that end with an expression, in strict mode and with limits. */

import { Parser, tokTypes, type Options, type TokenType } from 'acorn';
import { isNode, visit, type SyntaxNode, type Visit } from './syntax-tree.ts';

/** The syntax tree without the wrapper. The value of `result` is the expression's value. */
export interface ParsedExpression {
  /** The statements before the result. */
  readonly statements: readonly SyntaxNode[];
  /** An expression, or a statement whose completion value is the result. */
  readonly result: SyntaxNode;
  /** All nodes of both, parents first. */
  readonly visits: readonly Visit[];
  /** Offset of the user's first character in the parsed text; node positions count from there. */
  readonly shift: number;
}

type Tree = Omit<ParsedExpression, 'visits'>;
type TreeOutcome =
  | { readonly ok: true; readonly tree: Tree }
  | { readonly ok: false; readonly problem: ParseProblem };

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
const HEAD = '(\n';

export function parseExpression(text: string): ParseOutcome {
  if (Buffer.byteLength(text) > BYTES_MAX) {
    return forbidden(`the expression is longer than ${BYTES_MAX} bytes`, 0);
  }
  const expression = parseWrapped(text, Parser);
  const outcome = expression.ok ? expression : parseStatements(text, expression.problem);
  return outcome.ok ? withinBudget(outcome.tree) : outcome;
}

/** Of a path's filter: one expression, in which `@` is another spelling of `value`. A path is too short for the limit on bytes. */
export function parseFilter(text: string): ParseOutcome {
  const outcome = parseWrapped(text, FilterParser);
  return outcome.ok ? withinBudget(outcome.tree) : outcome;
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
    getTokenFromCode(code: number): void;
    finishToken(type: TokenType, value: string): void;
  }
}

const FilterParser = Parser.extend((base) => {
  return class extends base {
    override getTokenFromCode(code: number): void {
      if (code !== '@'.charCodeAt(0)) {
        super.getTokenFromCode(code);
        return;
      }
      this.pos++;
      this.finishToken(tokTypes.name, 'value');
    }
  };
});

/** Parses with two wrappers, because text that closes one of them, such as `1), (2`, cannot close the other. Inside the wrappers, `{}` is
 * an object, not a block, and a string literal is not a directive.
 */
function parseWrapped(text: string, parser: typeof Parser): TreeOutcome {
  const round = parseText(`${HEAD}${text}\n)`, text, HEAD.length, parser);
  if (!round.ok) return round;
  const square = parseText(`[\n${text}\n]`, text, HEAD.length, parser);
  if (!square.ok) return square;
  const [statement, more] = round.body;
  const result = statement?.['expression'];
  if (statement?.type !== 'ExpressionStatement' || more !== undefined || !isNode(result)) {
    return syntax('this is not one expression', 0);
  }
  return { ok: true, tree: { statements: [], result, shift: HEAD.length } };
}

function parseStatements(text: string, asExpression: ParseProblem): TreeOutcome {
  const program = parseText(text, text, 0, Parser);
  if (!program.ok) {
    // Reports the problem of the parse that got further, which is probably the intended form.
    const further = program.problem.offset >= asExpression.offset ? program.problem : asExpression;
    return { ok: false, problem: further };
  }
  const last = program.body.at(-1);
  if (last === undefined) return syntax('the expression is empty', 0);
  const statements = program.body.slice(0, -1);
  if (RESULT_STATEMENTS.has(last.type)) return { ok: true, tree: { statements, result: last, shift: 0 } };
  const result = last['expression'];
  if (last.type !== 'ExpressionStatement' || !isNode(result)) {
    return syntax(
      'the last statement has no value; end with an expression, if, switch, try or a loop',
      last.start,
    );
  }
  return { ok: true, tree: { statements, result, shift: 0 } };
}

/** Statements whose completion value can be the result. */
const RESULT_STATEMENTS: ReadonlySet<string> = new Set(
  'Block DoWhile ForIn ForOf For If Labeled Switch Try While'.split(' ').map((name) => `${name}Statement`),
);

class TooManyRegexps extends Error {
  override readonly name = 'TooManyRegexps';
}

type TextOutcome =
  | { readonly ok: true; readonly body: readonly SyntaxNode[] }
  | { readonly ok: false; readonly problem: ParseProblem };

const OPTIONS: Options = {
  ecmaVersion: 2025,
  // Modules are strict and have no HTML comments.
  sourceType: 'module',
  allowAwaitOutsideFunction: false,
  allowReturnOutsideFunction: false,
  allowHashBang: false,
  locations: true,
};

function parseText(source: string, text: string, shift: number, parser: typeof Parser): TextOutcome {
  let regexps = 0;
  const options: Options = {
    ...OPTIONS,
    onToken: (token) => {
      if (token.type !== tokTypes.regexp) return;
      regexps += 1;
      if (regexps > REGEXPS_MAX) throw new TooManyRegexps();
    },
  };
  const place = (offset: number): number => Math.min(Math.max(offset - shift, 0), text.length);
  try {
    const program: unknown = parser.parse(source, options);
    const body = isNode(program) && Array.isArray(program['body']) ? program['body'].filter(isNode) : [];
    return { ok: true, body };
  } catch (error) {
    if (error instanceof TooManyRegexps) {
      return forbidden(`the expression has more than ${REGEXPS_MAX} regular expressions`, 0);
    }
    if (error instanceof RangeError) return forbidden('the expression is nested too deeply', 0);
    if (!(error instanceof SyntaxError)) throw error;
    const at = 'pos' in error && typeof error.pos === 'number' ? error.pos : 0;
    return syntax(explain(error.message, text, place(at)), place(at));
  }
}

/** The parser's message without its position, which includes the wrapper. */
function explain(message: string, text: string, offset: number): string {
  const plain = message.replace(/ \(\d+:\d+\)$/u, '');
  if (text.trim() === '') return 'the expression is empty';
  if (plain === 'Unexpected token' && offset >= text.trimEnd().length)
    return 'unexpected end of the expression';
  if (plain === "'return' outside of function") return 'write the result without `return`: value.trim()';
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}

function withinBudget(tree: Tree): ParseOutcome {
  const visits: Visit[] = [];
  for (const at of visit([...tree.statements, tree.result])) {
    visits.push(at);
    if (visits.length > NODES_MAX) return forbidden(`the expression has more than ${NODES_MAX} parts`, 0);
    if (at.depth > DEPTH_MAX) {
      return forbidden(
        `the expression is nested deeper than ${DEPTH_MAX} levels`,
        at.node.start - tree.shift,
      );
    }
  }
  return { ok: true, parsed: { ...tree, visits } };
}

function syntax(message: string, offset: number): { ok: false; problem: ParseProblem } {
  return { ok: false, problem: { kind: 'syntax', message, offset } };
}

function forbidden(message: string, offset: number): { ok: false; problem: ParseProblem } {
  return { ok: false, problem: { kind: 'forbidden', message, offset } };
}
