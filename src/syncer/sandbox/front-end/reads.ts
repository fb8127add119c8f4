/** Computes the read set from the syntax tree: which parts of `context` an expression reads. If that is undecidable, all of it. */

import {
  declaredNames,
  identifierName,
  isReference,
  staticKey,
  type SyntaxNode,
  type Visit,
} from './syntax-tree.ts';
import type { ReadSet } from '../types.ts';

export type ContextMember = 'vcluster' | 'hostObject' | 'virtualObject' | 'path';

export interface ContextUse {
  readonly reads: ReadSet;
  /** Nodes such as `context.path`, which can become variables; undefined if `context` is also used in another way. */
  readonly members: ReadonlyMap<SyntaxNode, ContextMember> | undefined;
}

/** The read set contains at most this many keys of a chain. */
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

/** The member access of `context`, such as `context.path`, unless it is written to or called. */
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

/** True if the member is written, deleted or called, instead of only read. */
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

/** The static keys that follow. The receiver of a method call is read as a whole. */
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

/** Removes paths that are covered by another path. */
function shortest(paths: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const sorted = [...paths].sort((a, b) => a.length - b.length);
  const kept: (readonly string[])[] = [];
  for (const path of sorted) {
    const isCovered = kept.some((other) => other.every((key, i) => key === path[i]));
    if (!isCovered) kept.push(path);
  }
  return kept;
}
