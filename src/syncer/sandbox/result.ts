/** Limits the depth of values that enter and leave the sandbox, because the daemon traverses them. */

import type { JsonValue } from '../../base/json.ts';
import type { EvaluateError } from './types.ts';

const DEPTH_MAX = 64;
/** API servers accept 10 000 levels; real objects have about ten. */
export const INPUT_DEPTH_MAX = 1000;

/** Freezes a result, because it may be cached and returned again. Returns its problem, if any. */
export function acceptResult(
  result: JsonValue | undefined,
  mayBeIllFormed: boolean,
): EvaluateError | undefined {
  const pending: { value: unknown; depth: number }[] = [{ value: result, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string') {
      if (mayBeIllFormed && !value.isWellFormed())
        return problem('the result contains a lone surrogate, which cannot be encoded as UTF-8');
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

/** Recursion ends at `levels`. */
export function isDeeperThan(value: JsonValue | undefined, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isDeeperThan(value[i], levels - 1)) return true;
    return false;
  }
  for (const key in value) if (isDeeperThan(value[key], levels - 1)) return true;
  return false;
}
