/** How a command says that a patch has failed. */

import type { PatchError } from '../kube/errors.ts';
import { plainText } from '../sandbox/frame.ts';

/** One line with index and path, then the expression with a caret where the place is known. */
export function describePatchError({ index, path, kind, message, frame }: PatchError): string {
  const place = path === '' ? '' : ` at ${plainText(path)}`;
  return `patches[${index}]${place}: ${plainText(message)} (${kind})${frame === '' ? '' : `\n${frame}`}`;
}
