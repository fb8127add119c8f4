/** The type of an expression's parts as far as their syntax determines it. Undefined: unknown. */

import { identifierName, isNode, staticKey, type SyntaxNode } from './syntax-tree.ts';

/** As `typeof` returns it, with `null` as a separate type. */
export type StaticType = 'string' | 'number' | 'boolean' | 'undefined' | 'null' | 'object' | 'function';

/** Types of names in scope, such as `value`, without names that the expression declares. */
export type KnownNames = ReadonlyMap<string, StaticType>;

const NUMERIC: ReadonlySet<unknown> = new Set(['-', '*', '/', '%', '**', '|', '&', '^', '<<', '>>', '>>>']);
const UNARY = byName({
  boolean: '! delete',
  number: '- + ~',
  string: 'typeof',
  undefined: 'void',
});
const FUNCTIONS = byName({
  boolean: 'Boolean isFinite isNaN',
  number: 'Number parseFloat parseInt',
  string: 'String atob btoa decodeURIComponent encodeURIComponent virtualToHostDNS',
});
/** Methods whose result has one type on every built-in object that has them. */
const METHODS = byName({
  boolean: 'endsWith every hasOwnProperty includes some startsWith test',
  number: 'indexOf lastIndexOf search',
  object: 'split',
  string:
    'charAt join normalize padEnd padStart repeat replace replaceAll substr substring toFixed toISOString toLowerCase toString ' +
    'toUpperCase trim trimEnd trimStart',
});

function byName(lists: Readonly<Partial<Record<StaticType, string>>>): ReadonlyMap<string, StaticType> {
  const types = Object.entries(lists) as [StaticType, string][]; // the keys of the parameter
  return new Map(types.flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const)));
}

export function staticType(node: unknown, names: KnownNames): StaticType | undefined {
  if (!isNode(node)) return undefined;
  switch (node.type) {
    case 'Literal':
      return literalType(node);
    case 'TemplateLiteral':
      return 'string';
    case 'ArrayExpression':
    case 'ObjectExpression':
    case 'NewExpression':
      return 'object';
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
    case 'ClassExpression':
      return 'function';
    case 'Identifier': {
      const name = identifierName(node) ?? '';
      return name === 'undefined' ? 'undefined' : names.get(name);
    }
    case 'UnaryExpression':
      return UNARY.get(String(node['operator']));
    case 'BinaryExpression':
      return binaryType(node, names);
    case 'ConditionalExpression':
      return common(staticType(node['consequent'], names), staticType(node['alternate'], names));
    case 'CallExpression':
      return callType(node);
    case 'MemberExpression':
      return memberType(node);
    default:
      return undefined;
  }
}

function literalType(node: SyntaxNode): StaticType | undefined {
  const { value, regex } = node as { value?: unknown; regex?: unknown }; // present on literals
  if (regex !== undefined) return 'object';
  if (value === null) return 'null';
  const type = typeof value;
  return type === 'string' || type === 'number' || type === 'boolean' ? type : undefined;
}

function binaryType(node: SyntaxNode, names: KnownNames): StaticType | undefined {
  const { operator } = node as { operator?: unknown }; // present on binary expressions
  if (NUMERIC.has(operator)) return 'number';
  if (operator !== '+') return 'boolean';
  const sides = [staticType(node['left'], names), staticType(node['right'], names)];
  if (sides.includes('string')) return 'string';
  return sides.every((side) => side === 'number') ? 'number' : undefined;
}

function callType(node: SyntaxNode): StaticType | undefined {
  const callee = node['callee'];
  if (!isNode(callee)) return undefined;
  const name = identifierName(callee);
  if (name !== undefined) return FUNCTIONS.get(name);
  const method = callee.type === 'MemberExpression' ? staticKey(callee, 'property') : undefined;
  if (method === undefined || callee['optional'] === true) return undefined;
  const holder = identifierName(callee['object']);
  if (holder === 'JSON') return method === 'stringify' ? 'string' : undefined;
  if (holder === 'base64') return 'string';
  return METHODS.get(method);
}

/** `context.path`, `context.vcluster.name` and `context.vcluster.namespace`. */
function memberType(node: SyntaxNode): StaticType | undefined {
  const key = staticKey(node, 'property');
  const object = node['object'];
  if (!isNode(object)) return undefined;
  if (identifierName(object) === 'context') return key === 'path' ? 'string' : undefined;
  const isVcluster =
    object.type === 'MemberExpression' &&
    identifierName(object['object']) === 'context' &&
    staticKey(object, 'property') === 'vcluster';
  return isVcluster && (key === 'name' || key === 'namespace') ? 'string' : undefined;
}

function common(a: StaticType | undefined, b: StaticType | undefined): StaticType | undefined {
  return a === b ? a : undefined;
}
