/** Which branches of an expression run: it is rewritten so that its value is a list with a 1 for each branch that was taken. */

import { parseExpression, parseFilter, type ParsedExpression } from './parse.ts';
import { isNode, type SyntaxNode } from './syntax-tree.ts';

export interface Branch {
  /** 1-based place in the expression. */
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

export interface BranchProbe {
  readonly branches: readonly Branch[];
  /** Its value is a list of 0 and 1, in the order of `branches`. */
  readonly expression: string;
}

const TEXT_MAX = 40;

/** Undefined: the expression has no branches, or cannot be parsed. */
export function probeExpression(expression: string): BranchProbe | undefined {
  const outcome = parseExpression(expression);
  return outcome.ok ? probeBranches(expression, outcome.parsed, []) : undefined;
}

/** Besides the branches of its expression, a filter has one for what it leaves out. */
export function probeFilter(filter: string): BranchProbe | undefined {
  const outcome = parseFilter(filter);
  if (!outcome.ok) return undefined;
  const { visits, result } = outcome.parsed;
  const elements = visits.filter(({ node }) => node.type === 'Identifier' && filter[node.start] === '@');
  const edits = elements.map(({ node }) => ({ at: node.start, text: 'value', replaced: 1 }));
  return probeBranches(filter, outcome.parsed, edits, result);
}

interface Edit {
  readonly at: number;
  readonly text: string;
  /** Default 0. */
  readonly replaced?: number;
}

/** `decision`: its value is a decision, and no is a branch. */
function probeBranches(
  expression: string,
  { visits, statements }: ParsedExpression,
  fixed: readonly Edit[],
  decision?: SyntaxNode,
): BranchProbe | undefined {
  const taken = unusedName(expression);
  const branches: Branch[] = [];
  const edits: Edit[] = [];
  const mark = (): string => `${taken}[${branches.length - 1}] = 1`;
  const add = (node: SyntaxNode): void => {
    branches.push(branchAt(expression, node.start, node.end));
  };
  const wrapExpression = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start, text: `(${mark()}, ` }, { at: node.end, text: ')' });
  };
  const wrapStatement = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start, text: `{ ${mark()}; ` }, { at: node.end, text: ' }' });
  };
  for (const { node } of visits) {
    const { type, consequent, alternate, right } = node as SyntaxNode & Record<string, unknown>;
    if (type === 'ConditionalExpression') [consequent, alternate].filter(isNode).forEach(wrapExpression);
    else if (type === 'LogicalExpression' && isNode(right)) wrapExpression(right);
    else if (type === 'IfStatement') [consequent, alternate].filter(isNode).forEach(wrapStatement);
    else if (type === 'SwitchCase' && Array.isArray(consequent) && isNode(consequent[0])) {
      add(consequent[0]);
      edits.push({ at: consequent[0].start, text: `${mark()}; ` });
    }
  }
  const marked = applyEdits(expression, [...edits, ...fixed]);
  let body = statements.length === 0 ? `(${marked}\n);` : `${marked}\n;`;
  if (decision !== undefined) {
    const place = branchAt(expression, decision.start, decision.end);
    branches.push({ ...place, text: 'a value is left out' });
    body = `(${marked}\n) || (${mark()});`;
  }
  if (branches.length === 0) return undefined;
  return {
    branches,
    expression: `const ${taken} = ${JSON.stringify(branches.map(() => 0))};\n${body}\n${taken}`,
  };
}

/** Edits at one place keep their order, parents first: openings nest, and closings are all alike. */
function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = '';
  let from = 0;
  for (const edit of edits.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.at + (edit.replaced ?? 0);
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
