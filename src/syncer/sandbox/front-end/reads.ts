/** The read set: which parts of `context` an expression reads, from its syntax tree; when in doubt, all of it. */

import { declaredNames } from './forbidden.ts';
import { identifierName, isReference, staticKey, type SyntaxNode, type Visit } from './syntax-tree.ts';
import type { ReadSet } from '../types.ts';

export type ContextMember = 'vcluster' | 'hostObject' | 'virtualObject' | 'path';

export interface ContextUse {
  readonly reads: ReadSet;
  /** `context.path` and the like, each of which may become a variable of its own; undefined: `context` is used in some other way too. */
  readonly members: ReadonlyMap<SyntaxNode, ContextMember> | undefined;
}

/** A chain of members longer than this is read from its beginning. */
const KEYS_MAX = 16;

export function contextUse(visits: readonly Visit[]): ContextUse {
  const declared = declaredNames(visits);
  const members = new Map<SyntaxNode, ContextMember>();
  const hostObject: (readonly string[])[] = [];
  const virtualObject: (readonly string[])[] = [];
  let [value, path, isDynamic] = [false, false, declared.has('context')];
  for (const at of visits) {
    if (!isReference(at)) continue;
    const name = identifierName(at.node);
    if (name === 'value' || name === 'valueExists') value = true;
    if (name !== 'context') continue;
    const member = memberOf(at);
    if (member === undefined) {
      isDynamic = true;
      continue;
    }
    members.set(member.at.node, member.name);
    if (member.name === 'path') path = true;
    if (member.name === 'hostObject') hostObject.push(keysBelow(member.at));
    if (member.name === 'virtualObject') virtualObject.push(keysBelow(member.at));
  }
  if (isDynamic) {
    return { reads: { value, path: true, hostObject: [[]], virtualObject: [[]] }, members: undefined };
  }
  const reads = { value, path, hostObject: shortest(hostObject), virtualObject: shortest(virtualObject) };
  return { reads, members };
}

/** The `context.path` around a `context`, unless it is written to or called. */
function memberOf(at: Visit): { name: ContextMember; at: Visit } | undefined {
  const { parent } = at;
  if (parent?.node.type !== 'MemberExpression' || at.role !== 'object' || isDisturbed(parent)) {
    return undefined;
  }
  const key = staticKey(parent.node, 'property');
  switch (key) {
    case 'vcluster':
    case 'hostObject':
    case 'virtualObject':
    case 'path':
      return { name: key, at: parent };
    default:
      return undefined;
  }
}

/** Is this member written, deleted or called? Then it is not just read. */
function isDisturbed({ parent, role }: Visit): boolean {
  switch (parent?.node.type) {
    case 'AssignmentExpression':
    case 'AssignmentPattern':
      return role === 'left';
    case 'UpdateExpression':
      return true;
    case 'UnaryExpression':
      return parent.node['operator'] === 'delete';
    case 'CallExpression':
      return role === 'callee';
    case 'TaggedTemplateExpression':
      return role === 'tag';
    case 'ForInStatement':
    case 'ForOfStatement':
      return role === 'left';
    case 'ChainExpression':
      return isDisturbed(parent);
    case 'ArrayPattern':
    case 'RestElement':
      return true;
    case 'Property':
      return parent.parent?.node.type === 'ObjectPattern';
    default:
      return false;
  }
}

/** The static keys that follow; the receiver of a method is read whole. */
function keysBelow(start: Visit): readonly string[] {
  const keys: string[] = [];
  for (let at = start; keys.length < KEYS_MAX;) {
    const { parent } = at;
    if (parent === undefined) return keys;
    if (parent.node.type === 'ChainExpression') {
      at = parent;
      continue;
    }
    if (parent.node.type !== 'MemberExpression' || at.role !== 'object' || isDisturbed(parent)) return keys;
    const key = staticKey(parent.node, 'property');
    if (key === undefined) return keys;
    keys.push(key);
    at = parent;
  }
  return keys;
}

/** Without paths that lie below another one. */
function shortest(paths: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const sorted = [...paths].sort((a, b) => a.length - b.length);
  const kept: (readonly string[])[] = [];
  for (const path of sorted) {
    const isCovered = kept.some((other) => other.every((key, i) => key === path[i]));
    if (!isCovered) kept.push(path);
  }
  return kept;
}
