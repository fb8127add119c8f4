/** Compiles the configuration of a reference patch: its relative paths become walkers. */

import { parsePath, type Segment } from '../paths/path-syntax.ts';
import { compileWalker, type PathWalker } from '../paths/walk.ts';
import { PatchError } from '../../../base/errors.ts';
import type { ReferenceConfig } from '../../../config/types.ts';

/** A path relative to the matched value. */
export interface SubPath {
  readonly segments: readonly Segment[];
  readonly walker: PathWalker;
}

/** An undefined path is not configured. */
export interface CompiledReference {
  readonly patchIndex: number;
  readonly apiVersion: string;
  readonly kind: string;
  readonly apiVersionPath: SubPath | undefined;
  readonly kindPath: SubPath | undefined;
  readonly namePath: SubPath | undefined;
  readonly namespacePath: SubPath | undefined;
}

export function compileReference(config: ReferenceConfig, patchIndex: number): CompiledReference {
  const subPath = (text: string | undefined): SubPath | undefined => {
    if (text === undefined || text === '') return undefined;
    const parsed = parsePath(text);
    if (!parsed.ok)
      throw new PatchError(parsed.problem.message, { index: patchIndex, path: text, kind: 'syntax' });
    const { segments } = parsed;
    return { segments, walker: compileWalker(segments, NO_PROTECTED_KEYS) };
  };
  return {
    patchIndex,
    apiVersion: config.apiVersion,
    kind: config.kind,
    apiVersionPath: subPath(config.apiVersionPath),
    kindPath: subPath(config.kindPath),
    namePath: subPath(config.namePath),
    namespacePath: subPath(config.namespacePath),
  };
}

/** Sub-paths are relative, so a `metadata` in them is not that of the object, and they contain no wildcards. */
const NO_PROTECTED_KEYS = { isBookkeepingAnnotation: () => false, isBookkeepingLabel: () => false };

/** The value names a namespace, not an object in one. */
export function isNamespaceReference(
  reference: CompiledReference,
): reference is CompiledReference & { readonly namespacePath: SubPath } {
  return reference.namePath === undefined && reference.namespacePath !== undefined;
}
