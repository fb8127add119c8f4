/** Prints concrete paths in vCluster's form. */

import type { ConcretePath } from '../../translate/types.ts';
import { plainNameProblem } from './unquoted.ts';

/** The result parses to the same path: `subsets.0.addresses.1.ip`, `metadata.annotations."example.com/key"`. */
export function printPath(path: ConcretePath): string {
  let text = '';
  for (const step of path) text = joinStep(text, step);
  return text;
}

/** Appends one step to a printed path. */
export function joinStep(prefix: string, step: string | number): string {
  const printed = typeof step === 'number' ? String(step) : printKey(step);
  return prefix === '' ? printed : `${prefix}.${printed}`;
}

/** `"` and `\` are escaped inside quotes; a key that needs no quotes is printed as it is. */
function printKey(key: string): string {
  if (PLAIN.test(key)) return key;
  return plainNameProblem(key) === undefined ? key : `"${key.replace(/["\\]/g, '\\$&')}"`;
}

/** The usual keys, recognised fast. */
const PLAIN = /^[A-Za-z0-9_/][A-Za-z0-9_/-]*$/;
