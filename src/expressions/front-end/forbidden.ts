/** Finds forbidden syntax and names before an expression runs, for early and clear errors. The isolation does not depend on this check. */

import {
  declaredNames,
  identifierName,
  isNode,
  isReference,
  staticKey,
  type SyntaxNode,
  type Visit,
} from './syntax-tree.ts';
import type { ParsedExpression, ParseProblem } from './parse.ts';
import {
  ABSENT_MEMBERS,
  isInScope,
  memberProblem,
  REFUSED_FORMS,
  REFUSED_KEYS,
  REFUSED_NAMES,
  REFUSED_SYNTAX,
  type Refusal,
  suggestion,
} from './scope.ts';

/** Allowed node types. All other types are rejected, including those that a newer parser adds. */
const ALLOWED_SYNTAX: ReadonlySet<string> = new Set(
  (
    'ArrayExpression ArrayPattern ArrowFunctionExpression AssignmentExpression AssignmentPattern BinaryExpression BlockStatement ' +
    'BreakStatement CallExpression CatchClause ChainExpression ClassBody ClassDeclaration ClassExpression ConditionalExpression ' +
    'ContinueStatement DoWhileStatement EmptyStatement ExpressionStatement ForInStatement ForOfStatement ForStatement ' +
    'FunctionDeclaration FunctionExpression Identifier IfStatement LabeledStatement Literal LogicalExpression MemberExpression ' +
    'MethodDefinition NewExpression ObjectExpression ObjectPattern PrivateIdentifier Property PropertyDefinition RestElement ' +
    'ReturnStatement SequenceExpression SpreadElement SwitchCase SwitchStatement TaggedTemplateExpression TemplateElement ' +
    'TemplateLiteral ThisExpression ThrowStatement TryStatement UnaryExpression UpdateExpression VariableDeclaration ' +
    'VariableDeclarator WhileStatement YieldExpression'
  ).split(' '),
);

function findForbidden(visits: readonly Visit[]): { message: string; at: SyntaxNode } | undefined {
  const declared = declaredNames(visits);
  const ownKeys = definedKeys(visits);
  let first: { message: string; at: SyntaxNode } | undefined;
  for (const at of visits) {
    const message = forbiddenSyntax(at) ?? forbiddenName(at, declared);
    const found =
      message === undefined
        ? (forbiddenKey(at) ?? absentMember(at, declared) ?? absentMethod(at, ownKeys))
        : { message, at: at.node };
    if (found !== undefined && (first === undefined || found.at.start < first.at.start)) first = found;
  }
  return first;
}

export function forbiddenProblem({ visits }: ParsedExpression): ParseProblem | undefined {
  const found = findForbidden(visits);
  return found && { kind: 'forbidden', message: found.message, offset: found.at.start };
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

/** A member that the realm, `context` or `base64` lacks, by name or in a destructuring: `Math.random`, `const { random } = Math`, `context.vObject`. */
function absentMember(
  { node, parent }: Visit,
  declared: ReadonlySet<string>,
): { message: string; at: SyntaxNode } | undefined {
  const isPattern = node.type === 'Property' && parent?.node.type === 'ObjectPattern';
  // As for names: `typeof x.y` checks whether y exists.
  const isTested = parent?.node.type === 'UnaryExpression' && parent.node['operator'] === 'typeof';
  if ((node.type !== 'MemberExpression' && !isPattern) || isTested) return undefined;
  const key = staticKey(node, isPattern ? 'key' : 'property');
  const source = parent?.parent?.node;
  const receiver = staticPath(isPattern ? (source?.['init'] ?? source?.['right']) : node['object']);
  const [name = '', member, ...more] = receiver;
  if (key === undefined || declared.has(name)) return undefined;
  const message = memberProblem(receiver, key);
  if (message !== undefined) return { message, at: node };
  const isPrototype = member === 'prototype' && more.length === 0;
  const refusal = absentRefusal(isPrototype ? `.${key}` : `${receiver.join('.')}.${key}`);
  if (refusal === undefined || !isInScope(name)) return undefined;
  return { message: notAllowed({ ...refusal, name: `\`${receiver.join('.')}.${key}\`` }), at: node };
}

/** A call of a method that no object in the realm has, unless the expression defines a member with this name itself. */
function absentMethod(
  { node }: Visit,
  ownKeys: ReadonlySet<string>,
): { message: string; at: SyntaxNode } | undefined {
  const callee = node['callee'];
  if (node.type !== 'CallExpression' || node['optional'] === true) return undefined;
  if (!isNode(callee) || callee.type !== 'MemberExpression') return undefined;
  const key = staticKey(callee, 'property');
  if (key === undefined || ownKeys.has(key)) return undefined;
  const refusal = absentRefusal(`.${key}`);
  const at = callee['property'];
  if (refusal === undefined || !isNode(at)) return undefined;
  return { message: notAllowed({ ...refusal, name: `the method \`${key}\`` }), at };
}

const ABSENT: ReadonlyMap<string, Refusal> = new Map(
  ABSENT_MEMBERS.flatMap((refusal) => refusal.members.split(' ').map((member) => [member, refusal] as const)),
);

function absentRefusal(name: string): Refusal | undefined {
  return ABSENT.get(name);
}

/** `a.b["c"]` as a list of names; empty if any part is not static. */
function staticPath(node: unknown): readonly string[] {
  if (!isNode(node)) return [];
  const name = identifierName(node);
  if (name !== undefined) return [name];
  if (node.type === 'ChainExpression') return staticPath(node['expression']);
  const key = node.type === 'MemberExpression' ? staticKey(node, 'property') : undefined;
  const receiver = key === undefined ? [] : staticPath(node['object']);
  return key === undefined || receiver.length === 0 ? [] : [...receiver, key];
}

/** The names of members that the expression itself defines, in literals, classes and assignments. */
function definedKeys(visits: readonly Visit[]): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { node, parent, role } of visits) {
    const isAssigned =
      node.type === 'MemberExpression' && parent?.node.type === 'AssignmentExpression' && role === 'left';
    const member = isAssigned ? 'property' : node.type === 'MemberExpression' ? undefined : KEYED[node.type];
    const key = member && staticKey(node, member);
    if (key !== undefined) keys.add(key);
  }
  return keys;
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

/** `Date()` or `new Date()`. Other ways to read the clock throw at run time. */
function readsClock({ parent, role }: Visit): boolean {
  const node = parent?.node;
  if (node === undefined || role !== 'callee') return false;
  const given = node['arguments'];
  return node.type === 'CallExpression' || (Array.isArray(given) && given.length === 0);
}
