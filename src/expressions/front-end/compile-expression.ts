/** Compiles an expression to a program for the sandbox, or reports its first problem. */

import { createRequire } from 'node:module';
import type { JsonPrimitive } from '../../base/json.ts';
import { expressionWarnings, type ExpressionWarning, type MatchFacts } from './warnings.ts';
import { forbiddenProblem } from './forbidden.ts';
import { compileLocally } from '../local/compile.ts';
import { placeOf } from '../../base/excerpt.ts';
import type * as Generate from './generate.ts';
import type * as Parse from './parse.ts';
import type { ParsedExpression, ParseProblem } from './parse.ts';
import { readSet } from './reads.ts';
import { staticType } from './static-type.ts';
import { identifierName, isNode, isReference, staticTemplate, type SyntaxNode } from './syntax-tree.ts';
import type { Program, ProgramId } from '../types.ts';

export interface ExpressionProblem {
  readonly kind: 'syntax' | 'forbidden';
  readonly message: string;
  /** 0-based character in the expression. */
  readonly offset: number;
  /** 1-based. */
  readonly line: number;
  readonly column: number;
  /** With a caret below the line. */
  readonly excerpt: string;
}

export type CompileOutcome =
  | {
      readonly ok: true;
      readonly program: Program;
      /** Computed on demand: only the check of a configuration needs them. */
      readonly warnings: (facts?: MatchFacts) => readonly ExpressionWarning[];
    }
  | { readonly ok: false; readonly problem: ExpressionProblem };

/** Parses, checks and regenerates one expression. Never throws; `id` must be unique within a sandbox. */
export function compileExpression(expression: string, id: ProgramId): CompileOutcome {
  const outcome = languageTools().parseExpression(expression);
  if (!outcome.ok) return failure(expression, outcome.problem);
  const problem = matchProblem(expression, outcome.parsed) ?? forbiddenProblem(outcome.parsed);
  return problem === undefined
    ? generateProgram(expression, outcome.parsed, id)
    : failure(expression, problem);
}

/** Compiles the filter of a path: an expression over the element, `@`, whose result is true or false. Never throws. */
export function compileFilter(filter: string, id: ProgramId): CompileOutcome {
  const outcome = languageTools().parseFilter(filter);
  if (!outcome.ok) return failure(filter, outcome.problem);
  const { parsed } = outcome;
  const problem =
    forbiddenProblem(parsed) ?? elementProblem(filter, parsed) ?? questionProblem(filter, parsed);
  if (problem !== undefined) return failure(filter, problem);
  const { start, end } = parsed.result;
  const not = (argument: SyntaxNode): SyntaxNode => ({
    type: 'UnaryExpression',
    operator: '!',
    prefix: true,
    argument,
    start,
    end,
  });
  return generateProgram(filter, { ...parsed, result: not(not(parsed.result)) }, id);
}

/** Perl's and Ruby's operator is an assignment here, of a number that matches nothing. */
function matchProblem(text: string, { visits }: ParsedExpression): ParseProblem | undefined {
  for (const { node } of visits) {
    const left = node.type === 'AssignmentExpression' ? node['left'] : undefined;
    const operator = isNode(left) ? /^\s*=~/.exec(text.slice(left.end))?.[0] : undefined;
    if (!isNode(left) || operator === undefined) continue;
    const tilde = left.end + operator.length - 1;
    const pattern = visits.find((at) => at.node.start === tilde && at.node['operator'] === '~')?.node[
      'argument'
    ];
    const textOf = ({ start, end }: SyntaxNode): string => text.slice(start, end);
    const instead = isNode(pattern) ? `: write ${matchOf(pattern, left, textOf)}` : '';
    const message = `\`=~\` is an assignment in JavaScript${instead}`;
    return { kind: 'forbidden', message, offset: node.start };
  }
  return undefined;
}

/** A text is no regular expression, and the pattern in it may be any. */
function matchOf(pattern: SyntaxNode, left: SyntaxNode, textOf: (node: SyntaxNode) => string): string {
  const isText = pattern.type === 'TemplateLiteral' || typeof pattern['value'] === 'string';
  const expression = isText ? `new RegExp(${textOf(pattern)})` : textOf(pattern);
  return `${expression}.test(${textOf(left)})`;
}

/** Where the expression of a filter ends, which begins with a parenthesis; undefined: it does not end. */
export function filterEnd(text: string): number | undefined {
  return languageTools().closingParenthesis(text);
}

/** A filter decides before its patch, so that it has no `value`. */
function elementProblem(filter: string, { visits }: ParsedExpression): ParseProblem | undefined {
  const wrong = visits.find((at) => {
    const name = isReference(at) ? identifierName(at.node) : undefined;
    return name === 'valueExists' || (name === 'value' && filter[at.node.start] !== '@');
  });
  if (wrong === undefined) return undefined;
  const name = identifierName(wrong.node);
  const message = `\`${name}\` is not in scope; the element is \`@\``;
  return { kind: 'forbidden', message, offset: wrong.node.start };
}

const WORDS: Readonly<Record<string, string>> = {
  object: 'an object',
  number: 'a number',
  string: 'a string',
  function: 'a function',
};

/** A filter asks, and changes nothing: what other dialects of JSONPath compare with, `=` and `=~`, are assignments here, which are true for every element. */
function questionProblem(filter: string, parsed: ParsedExpression): ParseProblem | undefined {
  const { visits, result } = parsed;
  const textOf = ({ start, end }: SyntaxNode): string => filter.slice(start, end);
  const match = matchProblem(filter, parsed);
  if (match !== undefined) return match;
  for (const { node } of visits) {
    const message = changeIn(node, textOf);
    if (message !== undefined) return { kind: 'forbidden', message, offset: node.start };
  }
  const type = staticType(result, new Map());
  if (type === undefined || type === 'boolean') return undefined;
  const message = `its result is ${WORDS[type] ?? type}, and never true or false: write a comparison, such as @.port === 443`;
  return { kind: 'forbidden', message, offset: result.start };
}

function changeIn(node: SyntaxNode, textOf: (node: SyntaxNode) => string): string | undefined {
  const { operator, left, right } = node;
  switch (node.type) {
    case 'AssignmentExpression': {
      if (operator !== '=' || !isNode(left) || !isNode(right))
        return `\`${String(operator)}\` changes the element`;
      return `\`=\` is an assignment: write ${textOf(left)} === ${textOf(right)}`;
    }
    case 'UpdateExpression':
      return `\`${String(operator)}\` changes the element`;
    case 'UnaryExpression':
      return operator === 'delete' ? '`delete` changes the element' : undefined;
    case 'SequenceExpression':
      return '`,` has the value of its last operand only: write && or ||';
    default:
      return undefined;
  }
}

/** Loaded with the first expression, which saves 9 MiB of resident memory in a daemon without expressions; synchronously, as the configuration
 * is read. */
function languageTools(): typeof Parse & typeof Generate {
  const require = createRequire(import.meta.url);
  return {
    ...(require('./parse.ts') as typeof Parse), // the module that its type was taken from
    ...(require('./generate.ts') as typeof Generate), // the same
  };
}

export function generateProgram(expression: string, parsed: ParsedExpression, id: ProgramId): CompileOutcome {
  const generated = languageTools().generateSource(parsed);
  if (generated === undefined) {
    const message =
      'the expression cannot be regenerated without changing its meaning; write it in a simpler form';
    return failure(expression, { kind: 'forbidden', message, offset: 0 });
  }
  const { source, mappings } = generated;
  return {
    ok: true,
    warnings: (facts) => expressionWarnings(parsed, facts),
    program: {
      id,
      expression,
      source,
      reads: readSet(parsed.visits),
      constant: constantOf(parsed),
      mappings,
      local: compileLocally(parsed),
    },
  };
}

function failure(expression: string, problem: ParseProblem): CompileOutcome {
  const { line, column, excerpt } = placeOf(expression, problem.offset);
  return { ok: false, problem: { ...problem, line, column, excerpt } };
}

function constantOf({ statements, result }: ParsedExpression): { value: JsonPrimitive } | undefined {
  if (statements.length > 0) return undefined;
  const value = literalValue(result);
  if (value === null || typeof value === 'boolean') return { value };
  if (typeof value === 'number') return Number.isFinite(value) ? { value: value + 0 } : undefined;
  return typeof value === 'string' && value.isWellFormed() ? { value } : undefined;
}

function literalValue(node: SyntaxNode): unknown {
  if (node.type === 'TemplateLiteral') return staticTemplate(node);
  if (node.type === 'Literal') return node['regex'] === undefined ? node['value'] : undefined;
  const { argument } = node as { argument?: unknown }; // present on unary expressions only
  if (node.type === 'UnaryExpression' && node['operator'] === '-' && isNode(argument)) {
    const value = literalValue(argument);
    return typeof value === 'number' ? -value : undefined;
  }
  return undefined;
}
