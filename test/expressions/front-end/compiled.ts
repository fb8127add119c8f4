/** What becomes of an expression: its problem, or the program as a function in this process. */

import { runInThisContext } from 'node:vm';
import {
  compileExpression,
  type ExpressionProblem,
} from '../../../src/expressions/front-end/compile-expression.ts';
import { programOf } from '../test-sandbox.ts';

export function problemOf(expression: string): ExpressionProblem {
  const outcome = compileExpression(expression, 0);
  if (outcome.ok) throw new Error(`${expression} compiles`);
  return outcome.problem;
}

/** `line:column kind: message`. */
export function placedProblem(expression: string): string {
  const { kind, message, line, column } = problemOf(expression);
  return `${line}:${column} ${kind}: ${message}`;
}

/** For expressions that a test has written itself. */
export function call(expression: string, value: unknown, context: Record<string, unknown> = {}): unknown {
  const { source } = programOf(compileExpression(expression, 0));
  const program = runInThisContext(source) as (...inputs: unknown[]) => unknown;
  return program(value, value !== undefined, context);
}
