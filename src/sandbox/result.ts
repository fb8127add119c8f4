/** The last look at a result before it leaves the sandbox: the child is not trusted with the depth of what the daemon walks. */

import type { JsonValue } from '../lib/json.ts';
import type { EvaluateError } from './types.ts';

const DEPTH_MAX = 64;

/** Freezes a result for good, since it may be remembered and given out again. Returns what is wrong with it, if anything. */
export function acceptResult(
  result: JsonValue | undefined,
  mayBeIllFormed: boolean,
): EvaluateError | undefined {
  const pending: { value: unknown; depth: number }[] = [{ value: result, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string') {
      if (mayBeIllFormed && !value.isWellFormed())
        return problem('the result holds half of a surrogate pair, which no UTF-8 text can');
      continue;
    }
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= DEPTH_MAX) return problem(`the result is nested deeper than ${DEPTH_MAX} levels`);
    Object.freeze(value);
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__') return problem('the result has a member named `__proto__`');
      if (mayBeIllFormed) pending.push({ value: key, depth: depth + 1 });
      if (mayBeIllFormed || typeof member === 'object') pending.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}

function problem(message: string): EvaluateError {
  return { kind: 'result', message };
}
