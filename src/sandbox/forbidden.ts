/** What an expression may not use, found in its tree before anything runs. The realm must hold without this; it makes errors early and clear. */

import type { ParsedExpression, ParseProblem } from './parse.ts';
import {
  identifierName,
  isNode,
  isReference,
  staticKey,
  type SyntaxNode,
  type Visit,
} from './syntax-tree.ts';

/** Everything in scope. The realm's allow list gives the same names, which a test compares. */
export const INPUT_NAMES: readonly string[] = ['value', 'valueExists', 'context'];
export const GLOBAL_NAMES: readonly string[] = [
  'Array',
  'Boolean',
  'Error',
  'EvalError',
  'Infinity',
  'JSON',
  'Map',
  'Math',
  'NaN',
  'Number',
  'Object',
  'RangeError',
  'ReferenceError',
  'RegExp',
  'Set',
  'String',
  'Symbol',
  'SyntaxError',
  'TypeError',
  'URIError',
  'WeakMap',
  'WeakSet',
  'atob',
  'btoa',
  'decodeURI',
  'decodeURIComponent',
  'encodeURI',
  'encodeURIComponent',
  'isFinite',
  'isNaN',
  'parseFloat',
  'parseInt',
  'undefined',
  'virtualToHostDNS',
];

/** Syntax by node type; whatever is not here is refused, so a newer parser cannot let something in. */
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
  'NewExpression',
  'ObjectExpression',
  'ObjectPattern',
  'Property',
  'RestElement',
  'ReturnStatement',
  'SequenceExpression',
  'SpreadElement',
  'SwitchCase',
  'SwitchStatement',
  'TaggedTemplateExpression',
  'TemplateElement',
  'TemplateLiteral',
  'ThrowStatement',
  'TryStatement',
  'UnaryExpression',
  'UpdateExpression',
  'VariableDeclaration',
  'VariableDeclarator',
  'WhileStatement',
]);

/** For people: what the refused syntax is called. */
const SYNTAX_NAMES: Readonly<Record<string, string>> = {
  AwaitExpression: '`await`',
  ClassDeclaration: 'a class',
  ClassExpression: 'a class',
  DebuggerStatement: '`debugger`',
  ExportAllDeclaration: '`export`',
  ExportDefaultDeclaration: '`export`',
  ExportNamedDeclaration: '`export`',
  ImportDeclaration: '`import`',
  ImportExpression: '`import`',
  MetaProperty: '`new.target` or `import.meta`',
  Super: '`super`',
  ThisExpression: '`this`',
  WithStatement: '`with`',
  YieldExpression: '`yield`',
};

/** Members that lead to prototypes, constructors or the caller. */
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set([
  '__proto__',
  '__defineGetter__',
  '__defineSetter__',
  '__lookupGetter__',
  '__lookupSetter__',
  'arguments',
  'callee',
  'caller',
  'constructor',
]);

/** Why a name that programs elsewhere have is not here. */
const REASONS: Readonly<Record<string, string>> = {
  Date: 'there is no clock: the result must depend on nothing but the inputs',
  Intl: 'there is no locale data',
  Promise: 'nothing may happen after the expression',
  crypto: 'there is no randomness',
  performance: 'there is no clock: the result must depend on nothing but the inputs',
};

/** The first thing that is not allowed, in source order; undefined when all is well. */
function findForbidden(visits: readonly Visit[]): { message: string; at: SyntaxNode } | undefined {
  const declared = declaredNames(visits);
  let first: { message: string; at: SyntaxNode } | undefined;
  for (const at of visits) {
    const message = forbiddenSyntax(at.node) ?? forbiddenName(at, declared);
    const found = message === undefined ? forbiddenKey(at) : { message, at: at.node };
    if (found !== undefined && (first === undefined || found.at.start < first.at.start)) first = found;
  }
  return first;
}

export function forbiddenProblem({ visits, shift }: ParsedExpression): ParseProblem | undefined {
  const found = findForbidden(visits);
  return found && { kind: 'forbidden', message: found.message, offset: found.at.start - shift };
}

function forbiddenSyntax(node: SyntaxNode): string | undefined {
  if (!ALLOWED_SYNTAX.has(node.type)) {
    return `${SYNTAX_NAMES[node.type] ?? node.type} is not allowed in an expression`;
  }
  if (node['async'] === true || node['await'] === true) return 'async code is not allowed in an expression';
  if (node['generator'] === true) return 'a generator is not allowed in an expression';
  if (node.type === 'Literal' && (typeof node['value'] === 'bigint' || typeof node['bigint'] === 'string')) {
    return 'BigInt is not allowed in an expression: its values are not JSON';
  }
  return undefined;
}

function forbiddenKey({ node, parent }: Visit): { message: string; at: SyntaxNode } | undefined {
  const member = node.type === 'MemberExpression' ? 'property' : node.type === 'Property' ? 'key' : undefined;
  const key = member && staticKey(node, member);
  if (member === undefined || key === undefined || !FORBIDDEN_KEYS.has(key)) return undefined;
  // In an object literal a key is only data, except the one that sets the prototype.
  if (parent?.node.type === 'ObjectExpression' && member === 'key' && key !== '__proto__') return undefined;
  const at = node[member];
  return { message: `the member \`${key}\` is not allowed in an expression`, at: isNode(at) ? at : node };
}

function forbiddenName(at: Visit, declared: ReadonlySet<string>): string | undefined {
  const name = identifierName(at.node);
  if (name === undefined || !isReference(at)) return undefined;
  if (name === 'arguments' || name === 'eval') return `\`${name}\` is not allowed in an expression`;
  if (declared.has(name) || INPUT_NAMES.includes(name) || GLOBAL_NAMES.includes(name)) return undefined;
  // `typeof x` asks whether x exists, and writing to what is not declared throws; both are for the realm to answer.
  if (at.parent?.node.type === 'UnaryExpression' && at.parent.node['operator'] === 'typeof') return undefined;
  if (at.parent?.node.type === 'AssignmentExpression' && at.role === 'left') return undefined;
  return `\`${name}\` is not available here${REASONS[name] ? `: ${REASONS[name]}` : suggestion(name)}`;
}

function suggestion(name: string): string {
  const close = [...INPUT_NAMES, ...GLOBAL_NAMES].find(
    (known) => known.toLowerCase() === name.toLowerCase() || isOneEditAway(name, known),
  );
  return close === undefined
    ? '; in scope are value, valueExists and context'
    : `; did you mean \`${close}\`?`;
}

function isOneEditAway(a: string, b: string): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (short.length < 3 || long.length - short.length > 1) return false;
  let i = 0;
  while (i < short.length && short[i] === long[i]) i += 1;
  if (short.length < long.length) return short.slice(i) === long.slice(i + 1);
  const isSwap =
    short[i] === long[i + 1] && short[i + 1] === long[i] && short.slice(i + 2) === long.slice(i + 2);
  return isSwap || short.slice(i + 1) === long.slice(i + 1);
}

/**
 * Every name that the expression declares anywhere. Coarser than scopes are, on the safe side: a name used outside the function that
 * declares it passes here and is a ReferenceError in the realm.
 */
export function declaredNames(visits: readonly Visit[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const at of visits) {
    const name = identifierName(at.node);
    if (name !== undefined && isBinding(at)) names.add(name);
  }
  return names;
}

function isBinding(at: Visit): boolean {
  let { role } = at;
  for (let up = at.parent; up !== undefined; up = up.parent) {
    switch (up.node.type) {
      case 'VariableDeclarator':
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression':
        return role === 'id' || role === 'params';
      case 'CatchClause':
        return role === 'param';
      case 'ArrayPattern':
      case 'ObjectPattern':
      case 'RestElement':
        break;
      case 'AssignmentPattern':
        if (role !== 'left') return false;
        break;
      case 'Property':
        if (role !== 'value') return false;
        break;
      default:
        return false;
    }
    role = up.role;
  }
  return false;
}
