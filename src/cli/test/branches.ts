/** Which branches of an expression run: the expression is rewritten so that its value is a list with a 1 for each branch that was taken. */

import { parseExpression } from '../../syncer/sandbox/front-end/parse.ts';
import { isNode, type SyntaxNode } from '../../syncer/sandbox/front-end/syntax-tree.ts';

export interface Branch {
  /** 1-based place in the expression. */
  readonly line: number;
  readonly column: number;
  /** The branch as written, cut to one short line. */
  readonly text: string;
}

export interface BranchProbe {
  readonly branches: readonly Branch[];
  /** Its value is a list of 0 and 1, in the order of `branches`. */
  readonly expression: string;
}

const TEXT_MAX = 40;

/** Undefined: the expression has no branches, or cannot be parsed. */
export function probeBranches(expression: string): BranchProbe | undefined {
  const outcome = parseExpression(expression);
  if (!outcome.ok) return undefined;
  const { visits, shift, statements } = outcome.parsed;
  const taken = unusedName(expression);
  const branches: Branch[] = [];
  const edits: { at: number; text: string }[] = [];
  const mark = (): string => `${taken}[${branches.length - 1}] = 1`;
  const add = (node: SyntaxNode): void => {
    branches.push(branchAt(expression, node.start - shift, node.end - shift));
  };
  const wrapExpression = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start - shift, text: `(${mark()}, ` }, { at: node.end - shift, text: ')' });
  };
  const wrapStatement = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start - shift, text: `{ ${mark()}; ` }, { at: node.end - shift, text: ' }' });
  };
  for (const { node } of visits) {
    const { type, consequent, alternate, right } = node as SyntaxNode & Record<string, unknown>;
    if (type === 'ConditionalExpression') [consequent, alternate].filter(isNode).forEach(wrapExpression);
    else if (type === 'LogicalExpression' && isNode(right)) wrapExpression(right);
    else if (type === 'IfStatement') [consequent, alternate].filter(isNode).forEach(wrapStatement);
    else if (type === 'SwitchCase' && Array.isArray(consequent) && isNode(consequent[0])) {
      add(consequent[0]);
      edits.push({ at: consequent[0].start - shift, text: `${mark()}; ` });
    }
  }
  if (branches.length === 0) return undefined;
  const marked = applyEdits(expression, edits);
  const body = statements.length === 0 ? `(${marked}\n);` : `${marked}\n;`;
  return {
    branches,
    expression: `const ${taken} = ${JSON.stringify(branches.map(() => 0))};\n${body}\n${taken}`,
  };
}

/** Edits at one place keep their order, parents first: openings nest, and closings are all alike. */
function applyEdits(text: string, edits: readonly { at: number; text: string }[]): string {
  let result = '';
  let from = 0;
  for (const edit of edits.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.at;
  }
  return result + text.slice(from);
}

function branchAt(expression: string, start: number, end: number): Branch {
  const before = expression.slice(0, start).split('\n');
  const text = expression.slice(start, end).replaceAll(/\s+/gu, ' ');
  return {
    line: before.length,
    column: (before.at(-1) ?? '').length + 1,
    text: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text,
  };
}

function unusedName(expression: string): string {
  let name = 'taken';
  while (expression.includes(name)) name += '_';
  return name;
}
