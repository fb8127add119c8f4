/** Finds forbidden syntax and names before an expression runs, for early and clear errors. The isolation does not depend on this check. */

import { declaredNames } from './declared-names.ts';
import { isInScope, suggestion } from './names-in-scope.ts';
import type { ParsedExpression, ParseProblem } from './parse.ts';
import { REFUSED_FORMS, REFUSED_KEYS, REFUSED_NAMES, REFUSED_SYNTAX, type Refusal } from './refusals.ts';
import {
  identifierName,
  isNode,
  isReference,
  staticKey,
  type SyntaxNode,
  type Visit,
} from './syntax-tree.ts';

/** Allowed node types. All other types are rejected, including those that a newer parser adds. */
const ALLOWED_SYNTAX: ReadonlySet<string> = new Set([
  'ArrayExpression',
  'ArrayPattern',
  'ArrowFunctionExpression',
  'AssignmentExpression',
  'AssignmentPattern',
  'BinaryExpression',
  'BlockStatement',
  'BreakStatement',
  'CallExpression',
  'CatchClause',
  'ChainExpression',
  'ClassBody',
  'ClassDeclaration',
  'ClassExpression',
  'ConditionalExpression',
  'ContinueStatement',
  'DoWhileStatement',
  'EmptyStatement',
  'ExpressionStatement',
  'ForInStatement',
  'ForOfStatement',
  'ForStatement',
  'FunctionDeclaration',
  'FunctionExpression',
  'Identifier',
  'IfStatement',
  'LabeledStatement',
  'Literal',
  'LogicalExpression',
  'MemberExpression',
  'MethodDefinition',
  'NewExpression',
  'ObjectExpression',
  'ObjectPattern',
  'PrivateIdentifier',
  'Property',
  'PropertyDefinition',
  'RestElement',
  'ReturnStatement',
  'SequenceExpression',
  'SpreadElement',
  'SwitchCase',
  'SwitchStatement',
  'TaggedTemplateExpression',
  'TemplateElement',
  'TemplateLiteral',
  'ThisExpression',
  'ThrowStatement',
  'TryStatement',
  'UnaryExpression',
  'UpdateExpression',
  'VariableDeclaration',
  'VariableDeclarator',
  'WhileStatement',
  'YieldExpression',
]);

/** The first violation in source order, or undefined. */
function findForbidden(visits: readonly Visit[]): { message: string; at: SyntaxNode } | undefined {
  const declared = declaredNames(visits);
  let first: { message: string; at: SyntaxNode } | undefined;
  for (const at of visits) {
    const message = forbiddenSyntax(at) ?? forbiddenName(at, declared);
    const found = message === undefined ? forbiddenKey(at) : { message, at: at.node };
    if (found !== undefined && (first === undefined || found.at.start < first.at.start)) first = found;
  }
  return first;
}

export function forbiddenProblem({ visits, shift }: ParsedExpression): ParseProblem | undefined {
  const found = findForbidden(visits);
  return found && { kind: 'forbidden', message: found.message, offset: found.at.start - shift };
}

function forbiddenSyntax(at: Visit): string | undefined {
  const { node } = at;
  if (!ALLOWED_SYNTAX.has(node.type))
    return notAllowed(REFUSED_SYNTAX[node.type] ?? { name: node.type, reason: '' });
  if (node['async'] === true || node['await'] === true) return notAllowed(REFUSED_FORMS.async);
  if (node.type === 'ThisExpression' && !belongsToObject(at)) return notAllowed(REFUSED_FORMS.this);
  if (node.type === 'Literal' && (typeof node['value'] === 'bigint' || typeof node['bigint'] === 'string')) {
    return notAllowed(REFUSED_FORMS.bigint);
  }
  return undefined;
}

function notAllowed({ name, reason }: Refusal): string {
  return `${name} is not allowed in an expression${reason === '' ? '' : `: ${reason}`}`;
}

/** True if `this` is that of a method, an accessor or a field. Elsewhere it is undefined or passed by a builtin. */
function belongsToObject(at: Visit): boolean {
  let role = at.role;
  for (let up = at.parent; up !== undefined; up = up.parent) {
    if (up.node.type === 'PropertyDefinition') return role === 'value';
    if (up.node.type === 'FunctionExpression') {
      const owner = up.parent?.node;
      if (owner?.type === 'MethodDefinition') return true;
      return owner?.type === 'Property' && (owner['method'] === true || owner['kind'] !== 'init');
    }
    if (up.node.type === 'FunctionDeclaration') return false;
    role = up.role;
  }
  return false;
}

const KEYED: Readonly<Record<string, 'property' | 'key'>> = {
  MemberExpression: 'property',
  Property: 'key',
  MethodDefinition: 'key',
  PropertyDefinition: 'key',
};

function forbiddenKey({ node, parent }: Visit): { message: string; at: SyntaxNode } | undefined {
  const member = KEYED[node.type];
  const key = member && staticKey(node, member);
  const refusal = key !== undefined && Object.hasOwn(REFUSED_KEYS, key) ? REFUSED_KEYS[key] : undefined;
  if (member === undefined || refusal === undefined) return undefined;
  // In an object literal a key is only data, except the one that sets the prototype.
  if (parent?.node.type === 'ObjectExpression' && member === 'key' && key !== '__proto__') return undefined;
  if (node.type === 'MethodDefinition' && node['kind'] === 'constructor') return undefined;
  const at = node[member];
  return { message: notAllowed(refusal), at: isNode(at) ? at : node };
}

function forbiddenName(at: Visit, declared: ReadonlySet<string>): string | undefined {
  const name = identifierName(at.node);
  if (name === undefined || !isReference(at)) return undefined;
  if (name === 'arguments' || name === 'eval') return notAllowed(REFUSED_NAMES[name] ?? { name, reason: '' });
  if (declared.has(name)) return undefined;
  if (name === 'Date' && readsClock(at)) return notAllowed(REFUSED_FORMS.dateWithoutInput);
  if (isInScope(name)) return undefined;
  // `typeof x` checks whether x exists, and an assignment to an undeclared name throws. Both are handled at run time.
  if (at.parent?.node.type === 'UnaryExpression' && at.parent.node['operator'] === 'typeof') return undefined;
  if (at.parent?.node.type === 'AssignmentExpression' && at.role === 'left') return undefined;
  const refusal = Object.hasOwn(REFUSED_NAMES, name) ? REFUSED_NAMES[name] : undefined;
  return `\`${name}\` is not available here${refusal ? `: ${refusal.reason}` : suggestion(name)}`;
}

/** `Date()`, `new Date()` or `Date.now`. Other ways to read the clock throw at run time. */
function readsClock({ parent, role }: Visit): boolean {
  const node = parent?.node;
  if (node === undefined) return false;
  if (node.type === 'MemberExpression') return role === 'object' && staticKey(node, 'property') === 'now';
  if (role !== 'callee') return false;
  const given = node['arguments'];
  return node.type === 'CallExpression' || (Array.isArray(given) && given.length === 0);
}
