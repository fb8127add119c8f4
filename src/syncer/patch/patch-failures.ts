/** Failures of expressions, filters and results, with the place in the object and in the configuration. */

import { InvariantError, PatchError } from '../../base/errors.ts';
import { excerptOf, placeOf } from '../../base/excerpt.ts';
import type { EvaluateError } from '../../expressions/types.ts';
import type { ConcretePath } from '../translate/types.ts';
import type { CompiledFilter, CompiledPatch } from './compile.ts';
import { printPath } from './path-syntax.ts';
import type { Direction } from './types.ts';

export function evaluateError(
  patch: CompiledPatch,
  places: readonly ConcretePath[],
  errors: ReadonlyMap<number, EvaluateError>,
  direction: Direction,
): PatchError {
  const first = errors.keys().reduce((least, index) => Math.min(least, index));
  const error = errors.get(first);
  if (error === undefined) throw new InvariantError('an error without an index');
  const path = places[first] ?? [];
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

/** Inside the sandbox, `@` is called `value`. */
export function filterError(
  patch: CompiledPatch,
  { offset }: CompiledFilter,
  path: ConcretePath,
  { kind, message, line, column, retryAfterMs }: EvaluateError,
): PatchError {
  const text = patch.config.path;
  const start = placeOf(text, offset);
  const excerpt =
    line === undefined || column === undefined
      ? placeOf(text, offset).excerpt
      : excerptOf(text, start.line + line - 1, line === 1 ? start.column + column - 1 : column);
  return patchError(patch, `filter: ${message.replaceAll(/\bvalue\b/g, '@')}`, {
    path,
    kind,
    excerpt,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

export function patchError(
  patch: CompiledPatch,
  message: string,
  details: {
    readonly path: ConcretePath;
    readonly kind: PatchError['kind'];
    readonly excerpt?: string;
    readonly retryAfterMs?: number | undefined;
  },
): PatchError {
  return new PatchError(message, { ...details, index: patch.index, path: printPath(details.path) });
}
