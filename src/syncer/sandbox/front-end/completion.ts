/** The value of a statement: what its expression statement that runs last gives, kept in a variable. */

import { isNode, type SyntaxNode } from './syntax-tree.ts';

const POSITION = { start: 0, end: 0 };

/** Members that hold statements whose expressions may give the value; a `finally` block never does. */
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

/** The same as statements that end in `return`. `name` is used nowhere else. */
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
