/** Patches, and the checks that a configuration has to pass. */

import type * as z from 'zod';
import type { NamespaceChecks } from './rules.ts';
import type { patchSchema } from './schema/schema-sync.ts';

/** One entry of `patches`: exactly one mode is set. */
export type PatchConfig = z.output<typeof patchSchema>;

export type ReferenceConfig = NonNullable<PatchConfig['reference']>;

/** A problem of one patch, found by parsing its path or its expressions. */
export interface PatchFieldProblem {
  /** Member of the entry: `path`, `expression`, `reverseExpression`, `reference`, `reference.namePath`, … */
  readonly field: string;
  readonly message: string;
  /** Characters (UTF-16 units) from the start of that member's text, for the caret. */
  readonly offset?: number;
  /** Absent: an error. */
  readonly severity?: 'warning';
}

/** One step of a parsed patch path; `null` is a wildcard, an object a filter. */
export type PathSegment = string | number | null | { readonly filter: string };

/** Checks by modules that the configuration may not import. All are pure and never throw. */
export interface ConfigChecks extends NamespaceChecks {
  /**
   * Path syntax, expression syntax and forbidden words of one entry whose members have the right types. `list`: the key of `sync.toHost`
   * that has the patch, such as `endpoints`; absent for a file of patches alone, which may be for any kind.
   */
  checkPatch(patch: PatchConfig, list?: string): readonly PatchFieldProblem[];
  /** The segments of a path; undefined when it does not parse (`checkPatch` says why). */
  pathSegments(path: string): readonly PathSegment[] | undefined;
  /** Whether this path is the identity of an object, or bookkeeping of the translation: no patch may target it. */
  isProtected(path: readonly string[]): boolean;
}

/**
 * Settings from the command line: dotted path below its section (`name`, `host.namespace`, `workers`, `dataDir`) → the text as typed.
 * They win over the environment and the file.
 */
export type ConfigFlags = Readonly<Record<string, string>>;
