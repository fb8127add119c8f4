/** The excerpt that shows where in an expression something went wrong. */

import { placeOf } from '../sandbox/frame.ts';

/** The line of the expression and a caret below the column; `''` when the place is not known. Both are 1-based. */
export function expressionFrame(expression: string, line: number | undefined, column = 1): string {
  if (line === undefined) return '';
  let offset = 0;
  for (let at = 1; at < line; at++) {
    const end = expression.indexOf('\n', offset);
    if (end < 0) return '';
    offset = end + 1;
  }
  return placeOf(expression, Math.min(offset + Math.max(column - 1, 0), expression.length)).frame;
}
