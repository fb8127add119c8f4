/** Errors of a patch on one object, with the path of the failed match. */

import type { CompiledPatch } from './compile.ts';
import { printPath } from './paths/print-path.ts';
import type { Direction } from './types.ts';
import { InvariantError, PatchError } from '../../base/errors.ts';
import { excerptOf } from '../../base/excerpt.ts';
import type { JsonObject } from '../../base/json.ts';
import type { EvaluateError } from '../sandbox/types.ts';
import type { ConcretePath } from '../translate/types.ts';

/** The error of the first match that failed in the sandbox; `errors` is not empty. */
export function evaluateError(
  patch: CompiledPatch,
  object: JsonObject,
  errors: ReadonlyMap<number, EvaluateError>,
  direction: Direction,
): PatchError {
  const first = Math.min(...errors.keys());
  const error = errors.get(first);
  if (error === undefined) throw new InvariantError('an error without an index');
  const path = patch.walker.locate(object)[first] ?? [];
  const { expression, reverseExpression } = patch.config;
  const source = (direction === 'toHost' ? expression : reverseExpression) ?? '';
  const excerpt = excerptOf(source, error.line, error.column);
  return patchError(patch, error.message, {
    path,
    kind: error.kind,
    excerpt,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}

export function patchError(
  patch: CompiledPatch,
  message: string,
  details: {
    readonly path: ConcretePath;
    readonly kind: PatchError['kind'];
    readonly excerpt?: string;
    readonly retryAfterMs?: number;
  },
): PatchError {
  return new PatchError(message, { ...details, index: patch.index, path: printPath(details.path) });
}
