/** Warnings about an expression that is valid: a probable mistake, or a regular expression that may be slow. */

import type { ParsedExpression } from './parse.ts';
import type { SyntaxNode } from './syntax-tree.ts';

export interface ExpressionWarning {
  readonly message: string;
  /** 0-based character in the expression. */
  readonly offset: number;
}

export function expressionWarnings({ visits, shift }: ParsedExpression): readonly ExpressionWarning[] {
  return visits.flatMap(({ node }) => {
    const message = inListWarning(node) ?? regexpWarning(node);
    return message === undefined ? [] : [{ message, offset: node.start - shift }];
  });
}

function inListWarning(node: SyntaxNode): string | undefined {
  const { right } = node as { right?: { type?: unknown } }; // present on binary expressions only
  if (node.type !== 'BinaryExpression' || node['operator'] !== 'in' || right?.type !== 'ArrayExpression') {
    return undefined;
  }
  return '`in` asks for an index of the list, not for an element; use [...].includes(value)';
}

/** The linear engine has none of these. */
const NOT_LINEAR: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/\\[1-9]|\\k</, 'a back-reference'],
  [/\(\?<?[=!]/, 'a lookaround'],
  [/\{\d*,?\d{3,}\}/, 'a large counted repetition'],
];
const NOT_LINEAR_FLAGS = /[iuv]/;

function regexpWarning(node: SyntaxNode): string | undefined {
  const { regex } = node as { regex?: { pattern: string; flags: string } }; // present on such literals only
  if (regex === undefined || !hasNestedQuantifier(regex.pattern)) return undefined;
  const flag = NOT_LINEAR_FLAGS.exec(regex.flags)?.[0];
  const what =
    flag === undefined
      ? NOT_LINEAR.find(([pattern]) => pattern.test(regex.pattern))?.[1]
      : `the flag ${flag}`;
  if (what === undefined) return undefined;
  return `a quantifier inside a quantifier together with ${what} may take very long on some values: they fail when the time is over`;
}

/** `(a+)+`: a group that is repeated and holds something that is repeated. */
function hasNestedQuantifier(pattern: string): boolean {
  const groups: boolean[] = [];
  const plain = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
  let isRepeated = false;
  for (let at = 0; at < plain.length; at++) {
    const character = plain.charAt(at);
    if (character === '(') {
      groups.push(isRepeated);
      isRepeated = false;
      if (plain.charAt(at + 1) === '?') at += 1;
    } else if (character === ')') {
      const holdsRepetition: boolean = isRepeated;
      isRepeated = (groups.pop() ?? false) || holdsRepetition;
      if (holdsRepetition && /[*+{]/.test(plain.charAt(at + 1))) return true;
    } else if ('*+{'.includes(character)) {
      isRepeated = true;
    }
  }
  return false;
}
