/** Warnings about an expression that is valid: a probable mistake, or a regular expression that may be slow. */

import {
  declaredNames,
  identifierName,
  isNode,
  isReference,
  staticKey,
  staticTemplate,
  visit,
  type SyntaxNode,
  type Visit,
} from './syntax-tree.ts';
import type { ParsedExpression } from './parse.ts';
import { nearestWord } from '../../base/suggest.ts';
import { mayBacktrackOften, notLinear } from './linear-regexp.ts';
import { readSet } from './reads.ts';
import { staticType, type KnownNames, type StaticType } from './static-type.ts';

export interface ExpressionWarning {
  readonly message: string;
  /** 0-based character in the expression. */
  readonly offset: number;
}

/** Facts about the matches of the path. */
export interface MatchFacts {
  readonly valueType?: StaticType;
  /** The path can match several places of one object. */
  readonly hasWildcard?: boolean;
  readonly element?: ElementFacts;
}

export interface ElementFacts {
  /** Such as `subsets[*].ports[*]`. */
  readonly what: string;
  /** Undefined: any, or none. */
  readonly fields: readonly string[] | undefined;
}

export function expressionWarnings(
  parsed: ParsedExpression,
  facts: MatchFacts = {},
): readonly ExpressionWarning[] {
  const { visits } = parsed;
  const names = knownNames(visits, facts);
  const found = visits.flatMap((at) => {
    const { node } = at;
    const message =
      inListWarning(node) ??
      uncalledWarning(at) ??
      testWarning(at) ??
      memberWarning(at, names) ??
      regexpWarning(node) ??
      equalityWarning(node, names) ??
      methodWarning(node, names) ??
      fieldWarning(node, facts);
    return message === undefined ? [] : [{ message, offset: node.start }];
  });
  if (staticType(parsed.result, names) === 'function' && facts.element === undefined)
    return [...found, { message: FUNCTION_RESULT, offset: parsed.result.start }];
  const message = independenceWarning(parsed, facts);
  return message === undefined ? found : [...found, { message, offset: 0 }];
}

const FUNCTION_RESULT =
  'the result is a function, which fails on every object: write its body, in which `value` is the value of the path';

const METHODS: Readonly<Partial<Record<StaticType, object>>> = {
  string: String.prototype,
  number: Number.prototype,
  boolean: Boolean.prototype,
};

function methodWarning(node: SyntaxNode, names: KnownNames): string | undefined {
  const callee = node.type === 'CallExpression' && node['optional'] !== true ? node['callee'] : undefined;
  if (!isNode(callee) || callee.type !== 'MemberExpression' || callee['optional'] === true) return undefined;
  const type = staticType(callee['object'], names);
  const key = staticKey(callee, 'property');
  const prototype = type && METHODS[type];
  if (type === undefined || prototype === undefined || key === undefined || key in prototype)
    return undefined;
  const near = nearestWord(key, Object.getOwnPropertyNames(prototype));
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return `${named(type)} has no method \`${key}\`, so this fails${hint}`;
}

/** Only what is always undefined: whatever reads a member of it fails. */
function memberWarning({ node, parent, role }: Visit, names: KnownNames): string | undefined {
  if (node.type !== 'MemberExpression' || (parent?.node.type === 'CallExpression' && role === 'callee'))
    return undefined;
  const type = staticType(node['object'], names);
  const key = staticKey(node, 'property');
  const prototype = type && METHODS[type];
  if (type === undefined || prototype === undefined || key === undefined || key in prototype)
    return undefined;
  if (type === 'string' && /^\d+$/.test(key)) return undefined;
  const isRead =
    parent?.node.type === 'MemberExpression' && role === 'object' && parent.node['optional'] !== true;
  const above = isRead ? staticKey(parent.node, 'property') : undefined;
  const result = isRead
    ? `so reading ${above === undefined ? 'a member' : `\`${above}\``} of it fails`
    : 'so this is undefined';
  const near = nearestWord(key, Object.getOwnPropertyNames(prototype));
  const json = type === 'string' ? '; if the text is JSON, write JSON.parse(…) around it' : '';
  return `${named(type)} has no member \`${key}\`, ${result}${near === undefined ? json : `; did you mean \`${near}\`?`}`;
}

function uncalledWarning({ node, parent }: Visit): string | undefined {
  const isFunction = node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression';
  return isFunction && parent?.node.type === 'ExpressionStatement'
    ? 'the function is not called, so it is no value: write its body, or call it'
    : undefined;
}

function testWarning({ node, role }: Visit): string | undefined {
  return role === 'test' && node.type === 'AssignmentExpression' && node['operator'] === '='
    ? '`=` is an assignment, and no comparison: write `===`'
    : undefined;
}

function fieldWarning(node: SyntaxNode, { element }: MatchFacts): string | undefined {
  if (element?.fields === undefined || node.type !== 'MemberExpression') return undefined;
  const key = identifierName(node['object']) === 'value' ? staticKey(node, 'property') : undefined;
  if (key === undefined || element.fields.includes(key) || key in Object.prototype) return undefined;
  const near = nearestWord(key, element.fields);
  const hint = near === undefined ? `it has ${element.fields.join(', ')}` : `did you mean \`@.${near}\`?`;
  return `never matches: ${element.what} has no field ${JSON.stringify(key)}; ${hint}`;
}

function knownNames(visits: readonly Visit[], { valueType }: MatchFacts): KnownNames {
  const names = new Map<string, StaticType>([['valueExists', 'boolean']]);
  if (valueType !== undefined) names.set('value', valueType);
  for (const declared of declaredNames(visits)) names.delete(declared);
  // An assignment may change the type.
  for (const { node } of visits) {
    if (node.type !== 'AssignmentExpression' && node.type !== 'UpdateExpression') continue;
    names.delete(identifierName(node['left'] ?? node['argument']) ?? '');
  }
  return names;
}

const TYPEOF_RESULTS = ['string', 'number', 'boolean', 'undefined', 'object', 'function'];

function equalityWarning(node: SyntaxNode, names: KnownNames): string | undefined {
  const operator = String(node['operator']);
  if (node.type !== 'BinaryExpression' || !/^[!=]==?$/.test(operator)) return undefined;
  const [left, right] = [node['left'], node['right']];
  const result = operator.startsWith('=') ? 'false' : 'true';
  const misspelt = typeofWarning(left, right) ?? typeofWarning(right, left);
  if (misspelt !== undefined) return `${misspelt}, so this is always ${result}`;
  if ([left, right].some(isFreshObject))
    return `\`${operator}\` compares objects by identity, so this is always ${result}; compare JSON.stringify() of both`;
  const [a, b] = [staticType(left, names), staticType(right, names)];
  if (a === undefined || b === undefined || a === b) return undefined;
  if (operator.length === 3)
    return `\`${operator}\` compares ${named(a)} with ${named(b)}, so this is always ${result}`;
  const isNothing = (type: StaticType): boolean => type === 'null' || type === 'undefined';
  if (isNothing(a) && isNothing(b)) return undefined;
  return `\`${operator}\` converts between ${named(a)} and ${named(b)}; convert explicitly and use \`${operator}=\``;
}

function named(type: StaticType): string {
  if (type === 'null' || type === 'undefined') return type;
  return type === 'object' ? 'an object' : `a ${type}`;
}

function typeofWarning(side: unknown, other: unknown): string | undefined {
  if (!isNode(side) || side.type !== 'UnaryExpression' || side['operator'] !== 'typeof') return undefined;
  const text = isNode(other) && other.type === 'Literal' ? other['value'] : undefined;
  if (typeof text !== 'string' || TYPEOF_RESULTS.includes(text)) return undefined;
  return `\`typeof\` never gives ${JSON.stringify(text)}`;
}

function isFreshObject(node: unknown): boolean {
  return isNode(node) && ['ArrayExpression', 'ObjectExpression'].includes(node.type);
}

/** Literals, including arrays and objects of them, and `context.vcluster` are constants: they are intended to be the same for all objects. */
function independenceWarning(
  { statements, result, visits }: ParsedExpression,
  { hasWildcard = false, element }: MatchFacts,
): string | undefined {
  const reads = readSet(visits);
  if (element !== undefined) {
    const decides = reads.value || reads.path;
    return decides
      ? undefined
      : 'it reads neither `@` nor `context.path`, so it selects everything or nothing';
  }
  if (reads.value || (statements.length === 0 && isConstant(result))) return undefined;
  const readsObjects = reads.hostObject.length > 0 || reads.virtualObject.length > 0;
  if (readsObjects && hasWildcard && !reads.path)
    return 'the expression does not read `value` or `context.path`, so all matches of an object get the same result';
  if (readsObjects || reads.path)
    return 'the expression does not read `value`, which its result replaces; if that is intended, write `void value;` before it';
  const readsVcluster = visits.some((at) => isReference(at) && identifierName(at.node) === 'context');
  return readsVcluster
    ? undefined
    : 'the expression does not read `value` or `context`, so all objects get the same result';
}

function isConstant(node: SyntaxNode): boolean {
  return [...visit([node])].every((at) => CONSTANT_SYNTAX.has(at.node.type) || isConstantName(at));
}

const CONSTANT_SYNTAX: ReadonlySet<string> = new Set([
  'ArrayExpression',
  'Literal',
  'ObjectExpression',
  'Property',
  'TemplateElement',
  'TemplateLiteral',
  'UnaryExpression',
]);

function isConstantName(at: Visit): boolean {
  return at.node.type === 'Identifier' && (!isReference(at) || identifierName(at.node) === 'undefined');
}

function inListWarning(node: SyntaxNode): string | undefined {
  const { right } = node as { right?: { type?: unknown } }; // present on binary expressions only
  if (node.type !== 'BinaryExpression' || node['operator'] !== 'in' || right?.type !== 'ArrayExpression') {
    return undefined;
  }
  return '`in` checks for an index of the list, not for an element; use [...].includes(value)';
}

/** Of a literal, or of `RegExp` with literals. */
function regexpOf(node: SyntaxNode): { readonly pattern: string; readonly flags: string } | undefined {
  const { regex } = node as { regex?: { pattern: string; flags: string } }; // present on such literals only
  if (regex !== undefined || identifierName(node['callee']) !== 'RegExp') return regex;
  const given: readonly unknown[] = Array.isArray(node['arguments']) ? node['arguments'] : [];
  const [pattern, flags = ''] = given.map((each) =>
    isNode(each) ? (each['value'] ?? staticTemplate(each)) : undefined,
  );
  return typeof pattern === 'string' && typeof flags === 'string' ? { pattern, flags } : undefined;
}

function regexpWarning(node: SyntaxNode): string | undefined {
  const regex = regexpOf(node);
  if (regex === undefined || !mayBacktrackOften(regex.pattern)) return undefined;
  const what = notLinear(regex.pattern, regex.flags);
  if (what === undefined) return undefined;
  return `a quantifier inside a quantifier together with ${what} can exceed the time limit on some values`;
}
