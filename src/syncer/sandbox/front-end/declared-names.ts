/** The names that an expression declares itself. */

import { identifierName, type Visit } from './syntax-tree.ts';

/** Every name that the expression declares, in any scope. A name that is used outside of the scope of its declaration passes this check
 * and throws a ReferenceError at run time.
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
