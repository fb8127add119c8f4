/** The error message of a failed patch. */

import { PatchError, messageOf } from '../../base/errors.ts';
import { plainText } from '../../base/excerpt.ts';

/** One line with index and path, then the expression with a caret where the place is known. */
export function describePatchError({ index, path, kind, message, excerpt }: PatchError): string {
  const place = path === '' ? '' : ` at ${plainText(path)}`;
  return `patches[${index}]${place}: ${plainText(message)} (${kind})${excerpt === '' ? '' : `\n${excerpt}`}`;
}

/** Why an object could not be translated, for any error. */
export function describeFailure(error: unknown): string {
  if (error instanceof PatchError) return describePatchError(error);
  return messageOf(error);
}
