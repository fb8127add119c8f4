/** Compiles the configured patches: paths to walkers, expressions to programs, and the directions in which each path is synced. */

import { parsePath, type Segment, printPath } from './path-syntax.ts';
import { isProtected } from './protect.ts';
import { compileReference, type CompiledReference } from './reference-translation.ts';
import { compileWalker, IDENTITY_KEYS, type MissingPaths, type PathWalker } from './walk.ts';
import type { Direction, PatchPipeline } from './types.ts';
import type { PatchConfig } from '../../config/types.ts';
import { PatchError } from '../../base/errors.ts';
import { compileExpression } from '../sandbox/front-end/compile-expression.ts';
import type { Program } from '../sandbox/types.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../translate/bookkeeping.ts';
import type { ConcretePath, Flow } from '../translate/types.ts';
import type { JsonObject } from '../../base/json.ts';

/** What an entry does in one direction. */
type PatchAction =
  | { readonly kind: 'evaluate'; readonly program: Program }
  /** The value is not synced in this direction: the target keeps its own value, or none. */
  | { readonly kind: 'keep' }
  | { readonly kind: 'reference'; readonly reference: CompiledReference }
  | { readonly kind: 'labels' };

export interface CompiledPatch {
  readonly index: number;
  readonly config: PatchConfig;
  readonly segments: readonly Segment[];
  readonly walker: PathWalker;
  /** What the patch changes in each direction: towards the host, an expression may also create a missing key. */
  readonly walkers: Readonly<Record<Direction, PathWalker>>;
  readonly actions: Readonly<Record<Direction, PatchAction>>;
  /** The path can match an object's identity or bookkeeping, or an ancestor of them. They are restored after the patch. */
  readonly touchesProtected: boolean;
}

export interface CompiledPatches {
  readonly patches: readonly CompiledPatch[];
  /** The programs to load into the sandbox. */
  readonly programs: readonly Program[];
}

/** Compiles patches that have passed the checks of the configuration. Throws a `PatchError` if one is invalid nevertheless.
 * `firstProgramId` keeps the programs of several kinds apart in one sandbox.
 */
export function compilePatches(
  patches: readonly PatchConfig[],
  firstProgramId = 0,
  missingPaths: MissingPaths = 'skip',
): CompiledPatches {
  const programs: Program[] = [];
  const compiled = patches.map((config, index) => {
    const segments = segmentsOf(config.path, index);
    const program = (expression: string): PatchAction => {
      const made = compileExpression(expression, firstProgramId + programs.length);
      if (!made.ok) {
        const { kind, message, excerpt } = made.problem;
        throw new PatchError(message, { index, path: config.path, kind, excerpt });
      }
      programs.push(made.program);
      return { kind: 'evaluate', program: made.program };
    };
    const keys = { isBookkeepingAnnotation, isBookkeepingLabel };
    const walker = compileWalker(segments, keys);
    const creates = missingPaths === 'create' && config.expression !== undefined;
    return {
      index,
      config,
      segments,
      walker,
      walkers: { toHost: creates ? compileWalker(segments, keys, missingPaths) : walker, toVirtual: walker },
      actions: actionsOf(config, index, program),
      touchesProtected: touchesProtected(segments),
    };
  });
  return { patches: compiled, programs };
}

function segmentsOf(path: string, index: number): readonly Segment[] {
  const parsed = parsePath(path);
  if (parsed.ok) return parsed.segments;
  throw new PatchError(parsed.problem.message, { index, path, kind: 'syntax' });
}

function actionsOf(
  config: PatchConfig,
  index: number,
  program: (expression: string) => PatchAction,
): Readonly<Record<Direction, PatchAction>> {
  if (config.reference !== undefined) {
    const action = { kind: 'reference', reference: compileReference(config.reference, index) } as const;
    return { toHost: action, toVirtual: action };
  }
  if (config.labels !== undefined) return { toHost: { kind: 'labels' }, toVirtual: { kind: 'labels' } };
  const { expression, reverseExpression } = config;
  return {
    toHost: expression === undefined ? { kind: 'keep' } : program(expression),
    toVirtual: reverseExpression === undefined ? { kind: 'keep' } : program(reverseExpression),
  };
}

/** Two paths can match the same place, or one can shift the array element that the other's index selects. */
export function overlaps(a: readonly Segment[], b: readonly Segment[]): boolean {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [left, right] = [a[at], b[at]];
    if (left === undefined || right === undefined) return true;
    // Two indices of one array: deleting an element shifts the elements after it.
    const isBothElements = mayBeElement(left) && mayBeElement(right);
    if (!isBothElements && !mayBeSameKey(left, right)) return false;
  }
  return true;
}

function mayBeElement(segment: Segment): boolean {
  return segment.kind !== 'key' || segment.index !== undefined;
}

function mayBeSameKey(a: Segment, b: Segment): boolean {
  if (a.kind === 'index' || b.kind === 'index') return false;
  return a.kind === 'wildcard' || b.kind === 'wildcard' || a.key === b.key;
}

/** True if the configured path matches this place or an ancestor of it. */
export function covers(segments: readonly Segment[], path: ConcretePath): boolean {
  return segments.length <= path.length && segments.every((segment, at) => matchesStep(segment, path, at));
}

function matchesStep(segment: Segment, path: ConcretePath, at: number): boolean {
  const step = path[at];
  switch (segment.kind) {
    case 'key':
      return typeof step === 'number' ? segment.index === step : segment.key === step;
    case 'index':
      return segment.index === step;
    case 'wildcard':
      return !isProtected(path.slice(0, at + 1));
    default:
      return segment satisfies never;
  }
}

function touchesProtected(segments: readonly Segment[]): boolean {
  if (segments.length === 0) return true;
  if (!mayBeKey(segments[0], ['metadata'])) return false;
  if (segments.length === 1) return true;
  return segments.length === 2 && mayBeKey(segments[1], ['annotations', 'labels', ...IDENTITY_KEYS]);
}

function mayBeKey(segment: Segment | undefined, keys: readonly string[]): boolean {
  if (segment === undefined || segment.kind === 'index') return false;
  return segment.kind === 'wildcard' || keys.includes(segment.key);
}

type PatchFlow = Pick<PatchPipeline, 'flowOf' | 'twoWayPaths' | 'hostOwnedPaths'>;

/** `members`: top-level members below which paths may be two-way. */
export function createFlow(patches: readonly CompiledPatch[], members: readonly string[]): PatchFlow {
  const oneWayToHost = patches.filter((patch) => patch.actions.toVirtual.kind === 'keep');
  const oneWayToVirtual = patches.filter((patch) => patch.actions.toHost.kind === 'keep');
  const twoWay = patches.filter(
    ({ actions }) => actions.toHost.kind === 'evaluate' && actions.toVirtual.kind === 'evaluate',
  );
  const flowOf = (path: ConcretePath): Flow => {
    const staysOnVirtual = oneWayToVirtual.some((patch) => covers(patch.segments, path));
    const staysOnHost = oneWayToHost.some((patch) => covers(patch.segments, path));
    if (staysOnVirtual) return staysOnHost ? 'none' : 'toVirtual';
    return staysOnHost ? 'toHost' : 'both';
  };
  return {
    flowOf,
    twoWayPaths: (object) =>
      distinct(twoWay.flatMap((patch) => contentPaths(patch, object, members))).filter(
        (path) => flowOf(path) === 'both',
      ),
    hostOwnedPaths: (object) => distinct(oneWayToVirtual.flatMap((patch) => patch.walker.locate(object))),
  };
}

/** Paths that the patch matches at or below the members. A patch on the whole object matches each member as a whole. */
function contentPaths(
  patch: CompiledPatch,
  object: JsonObject,
  members: readonly string[],
): readonly ConcretePath[] {
  const [first] = patch.segments;
  if (first === undefined) return members.filter((name) => Object.hasOwn(object, name)).map((name) => [name]);
  const mayBeContent = first.kind === 'wildcard' || (first.kind === 'key' && members.includes(first.key));
  return mayBeContent ? patch.walker.locate(object).filter(([root]) => members.includes(String(root))) : [];
}

/** Two patches may match the same path. */
function distinct(paths: readonly ConcretePath[]): readonly ConcretePath[] {
  const byText = new Map(paths.map((path) => [printPath(path), path]));
  return byText.size === paths.length ? paths : [...byText.values()];
}
