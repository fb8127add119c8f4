/** Computes the completion value of a statement: the value of its last executed expression statement, stored in a variable. */

import { isNode, type SyntaxNode } from './syntax-tree.ts';

const POSITION = { start: 0, end: 0 };

/** Members with statements that can provide the completion value; a `finally` block never does. */
const BODIES: Readonly<Record<string, readonly string[]>> = {
  BlockStatement: ['body'],
  CatchClause: ['body'],
  DoWhileStatement: ['body'],
  ForInStatement: ['body'],
  ForOfStatement: ['body'],
  ForStatement: ['body'],
  IfStatement: ['consequent', 'alternate'],
  LabeledStatement: ['body'],
  SwitchCase: ['consequent'],
  SwitchStatement: ['cases'],
  TryStatement: ['block', 'handler'],
  WhileStatement: ['body'],
};

export function isStatement(node: SyntaxNode): boolean {
  return Object.hasOwn(BODIES, node.type);
}

/** Rewrites the statement to statements that end in `return`. `name` must be unused. */
export function returnCompletion(statement: SyntaxNode, name: string): SyntaxNode[] {
  const variable = { type: 'Identifier', name, ...POSITION };
  const declaration = {
    type: 'VariableDeclaration',
    kind: 'let',
    declarations: [{ type: 'VariableDeclarator', id: variable, init: null, ...POSITION }],
    ...POSITION,
  };
  const returned = { type: 'ReturnStatement', argument: variable, ...POSITION };
  return [declaration, keepValues(statement, variable), returned];
}

function keepValues(node: SyntaxNode, variable: SyntaxNode): SyntaxNode {
  const { expression } = node;
  if (node.type === 'ExpressionStatement' && isNode(expression)) {
    const assignment = {
      type: 'AssignmentExpression',
      operator: '=',
      left: variable,
      right: expression,
      ...POSITION,
    };
    return { type: 'ExpressionStatement', expression: assignment, ...POSITION };
  }
  const changed: Record<string, unknown> = {};
  for (const role of BODIES[node.type] ?? []) {
    const member = node[role];
    if (isNode(member)) changed[role] = keepValues(member, variable);
    else if (Array.isArray(member)) {
      changed[role] = member.map((each: unknown) => (isNode(each) ? keepValues(each, variable) : each));
    }
  }
  return { ...node, ...changed };
}
