/** Computes the read set from the syntax tree: which parts of `context` an expression reads. If that is undecidable, all of it. */

import { declaredNames, identifierName, isReference, staticKey, type Visit } from './syntax-tree.ts';
import type { ReadSet } from '../types.ts';

const MEMBERS = ['vcluster', 'hostObject', 'virtualObject', 'path'];
/** The read set contains at most this many keys of a chain, after the member of `context`. */
const KEYS_MAX = 16;

export function readSet(visits: readonly Visit[]): ReadSet {
  const reads = new Map<string, (readonly string[])[]>();
  let [value, isDynamic] = [false, declaredNames(visits).has('context')];
  for (const at of visits) {
    if (!isReference(at)) continue;
    const name = identifierName(at.node);
    if (name === 'value' || name === 'valueExists') value = true;
    if (name !== 'context') continue;
    const [member = '', ...below] = keysBelow(at);
    if (MEMBERS.includes(member)) reads.set(member, [...(reads.get(member) ?? []), below]);
    else isDynamic = true;
  }
  if (isDynamic) return { value, path: true, hostObject: [[]], virtualObject: [[]], vcluster: [[]] };
  return {
    value,
    path: reads.has('path'),
    hostObject: shortest(reads.get('hostObject') ?? []),
    virtualObject: shortest(reads.get('virtualObject') ?? []),
    vcluster: shortest(reads.get('vcluster') ?? []),
  };
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
  for (let at = start; keys.length <= KEYS_MAX;) {
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
