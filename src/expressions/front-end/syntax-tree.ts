/** The syntax tree of an expression as plain nodes, and its traversal. */

import type { Node } from 'acorn';

/** Any ESTree node: `type`, `start`, `end`, and members by name. */
export type SyntaxNode = Node & Readonly<Record<string, unknown>>;

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

export interface Visit {
  readonly node: SyntaxNode;
  readonly parent: Visit | undefined;
  readonly role: string;
  readonly depth: number;
}

/** Direct children in source order, each with the member that holds it. */
export function childrenOf(node: SyntaxNode): { role: string; node: SyntaxNode }[] {
  const children: { role: string; node: SyntaxNode }[] = [];
  const add = (role: string, member: unknown): void => {
    if (isNode(member)) children.push({ role, node: member });
  };
  // No function and no list for each member: this is most of the time that compiling takes.
  for (const role of Object.keys(node)) {
    const member = node[role];
    if (Array.isArray(member)) for (const one of member) add(role, one);
    else add(role, member);
  }
  return children;
}

/** Visits `roots` and all their descendants, parents first. Not recursive, because a hostile tree may have any depth. */
export function* visit(roots: readonly SyntaxNode[]): Generator<Visit> {
  const stack: Visit[] = roots.map((node) => ({ node, parent: undefined, role: 'body', depth: 0 }));
  stack.reverse();
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    yield at;
    const [parent, depth] = [at, at.depth + 1];
    stack.push(
      ...childrenOf(at.node)
        .map((child) => ({ ...child, parent, depth }))
        .reverse(),
    );
  }
}

export function identifierName(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' && typeof node['name'] === 'string'
    ? node['name']
    : undefined;
}

/** The static key of a member access, a property or a pattern: `a.b`, `a["b"]`, `a[0]`. */
export function staticKey(node: SyntaxNode, member: 'property' | 'key'): string | undefined {
  const key = node[member];
  if (node['computed'] !== true) {
    const name = identifierName(key);
    if (name !== undefined) return name;
  }
  if (!isNode(key)) return undefined;
  if (key.type !== 'Literal') return staticTemplate(key);
  const { value } = key;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/** The text of a template literal without substitutions; undefined for any other node. */
export function staticTemplate({ quasis }: SyntaxNode): string | undefined {
  const [only, ...more] = Array.isArray(quasis) ? quasis.filter(isNode) : [];
  const { cooked } = { ...(only?.['value'] as { cooked?: unknown } | undefined) }; // present on the parts of a template
  return more.length === 0 && typeof cooked === 'string' ? cooked : undefined;
}

/** True for an identifier that refers to a variable, false for the name of a member or a label. */
export function isReference(at: Visit): boolean {
  const parent = at.parent?.node;
  if (at.node.type !== 'Identifier' || parent === undefined) return at.node.type === 'Identifier';
  switch (parent.type) {
    case 'MemberExpression':
      return at.role === 'object' || parent['computed'] === true;
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return at.role === 'value' || parent['computed'] === true;
    case 'LabeledStatement':
    case 'BreakStatement':
    case 'ContinueStatement':
    case 'MetaProperty':
      return at.role === 'body';
    default:
      return true;
  }
}

/** In any scope: a name that is used outside of the scope of its declaration passes this check and throws a ReferenceError at run time. */
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
      case 'ClassDeclaration':
      case 'ClassExpression':
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
