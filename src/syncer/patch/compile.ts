/** Compiles the configured patches: paths to segments, expressions to programs, the directions in which each path is synced, and the version of what
 * makes a value. */

import { parsePath, type Segment, printPath } from './path-syntax.ts';
import { isProtected, OWN_METADATA } from './protect.ts';
import { compileReference, type CompiledReference } from './reference-parts.ts';
import { locate, type Path } from './walk.ts';
import { labelsMode } from './labels-mode.ts';
import type { Direction, ValueMode } from './types.ts';
import type { PatchConfig } from './patch-schema.ts';
import { PatchError } from '../../base/errors.ts';
import { compileExpression, compileFilter } from '../../expressions/front-end/compile-expression.ts';
import type { Program, VclusterContext } from '../../expressions/types.ts';
import { shortHash, UNPROVABLE } from '../translate/last-synced.ts';
import { isWithin } from '../translate/paths.ts';
import type { ConcretePath, Flow, FlowRules, KeptPaths } from '../translate/types.ts';
import { valueAt, type JsonObject } from '../../base/json.ts';

type PatchAction =
  | { readonly kind: 'evaluate'; readonly program: Program }
  /** The value is not synced in this direction: the target keeps its own value, or none. */
  | { readonly kind: 'keep' }
  | { readonly kind: 'reference'; readonly reference: CompiledReference }
  | ValueMode;

export interface CompiledPatch {
  readonly index: number;
  readonly config: PatchConfig;
  readonly segments: readonly Segment[];
  /** What the patch changes in each direction: towards the host, an expression may also create a missing key. Without selections, filters match
   * everything. */
  readonly paths: Readonly<Record<Direction, Path>>;
  readonly filters: readonly CompiledFilter[];
  readonly actions: Readonly<Record<Direction, PatchAction>>;
  /** The path can match an object's identity or bookkeeping, or an ancestor of them. They are restored after the patch. */
  readonly touchesProtected: boolean;
}

/** A filter in the path of a patch. What it selects depends on the filters before it. */
export interface CompiledFilter {
  readonly program: Program;
  readonly offset: number;
  /** Matches what it decides on, with the selections of the filters before it. */
  readonly candidates: Path;
}

export interface CompiledPatches {
  readonly patches: readonly CompiledPatch[];
  readonly programs: readonly Program[];
}

/** For patches that have passed the checks of the configuration. `firstProgramId` keeps the programs of several kinds apart in one sandbox. */
export function compilePatches(
  patches: readonly PatchConfig[],
  firstProgramId = 0,
  missingPaths: 'skip' | 'create' = 'skip',
): CompiledPatches {
  const programs: Program[] = [];
  const isOnlyNamespace = patches.filter(({ reference }) => reference?.namespacePath).length <= 1;
  const compiled = patches.map((config, index): CompiledPatch => {
    const segments = segmentsOf(config.path, index);
    const load = (compile: typeof compileExpression, text: string): Program => {
      const made = compile(text, firstProgramId + programs.length);
      if (!made.ok) {
        const { kind, message, excerpt } = made.problem;
        throw new PatchError(message, { index, path: config.path, kind, excerpt });
      }
      programs.push(made.program);
      return made.program;
    };
    const evaluate = (text: string): PatchAction => ({
      kind: 'evaluate',
      program: load(compileExpression, text),
    });
    const matchesMissing = missingPaths === 'create' && config.expression !== undefined;
    const toVirtual: Path = { segments, ...protection(segments) };
    return {
      index,
      config,
      segments,
      paths: { toHost: { ...toVirtual, matchesMissing }, toVirtual },
      filters: filtersOf(segments, (text) => load(compileFilter, text)),
      actions: actionsOf(config, { index, isOnlyNamespace }, evaluate),
      touchesProtected: touchesProtected(segments),
    };
  });
  return { patches: compiled, programs };
}

function filtersOf(
  segments: readonly Segment[],
  load: (expression: string) => Program,
): readonly CompiledFilter[] {
  return segments.flatMap((segment, at) => {
    if (segment.kind !== 'filter') return [];
    const { expression, offset } = segment;
    const candidates = { segments: segments.slice(0, at + 1), ...protection(segments) };
    return [{ program: load(expression), offset, candidates }];
  });
}

function segmentsOf(path: string, index: number): readonly Segment[] {
  const parsed = parsePath(path);
  if (parsed.ok) return parsed.segments;
  throw new PatchError(parsed.problem.message, { index, path, kind: 'syntax' });
}

function actionsOf(
  config: PatchConfig,
  { index, isOnlyNamespace }: { readonly index: number; readonly isOnlyNamespace: boolean },
  program: (expression: string) => PatchAction,
): Readonly<Record<Direction, PatchAction>> {
  const inBoth = (action: PatchAction) => ({ toHost: action, toVirtual: action });
  if (config.reference !== undefined) {
    const reference = compileReference(config.reference, index, isOnlyNamespace);
    return inBoth({ kind: 'reference', reference });
  }
  if (config.labels !== undefined) return inBoth(labelsMode);
  const { expression, reverseExpression } = config;
  return {
    toHost: expression === undefined ? { kind: 'keep' } : program(expression),
    toVirtual: reverseExpression === undefined ? { kind: 'keep' } : program(reverseExpression),
  };
}

/** Two patches depend on their order: what one of them matches, or its filter reads, the other may change. */
export function dependOnOrder(a: CompiledPatch, b: CompiledPatch): boolean {
  return overlaps(reachOf(a), reachOf(b));
}

/** A filter reads all of what it decides on. */
function reachOf({ segments }: CompiledPatch): readonly Segment[] {
  const filter = segments.findIndex(({ kind }) => kind === 'filter');
  return filter < 0 ? segments : segments.slice(0, filter + 1);
}

function overlaps(a: readonly Segment[], b: readonly Segment[]): boolean {
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
  return a.kind !== 'key' || b.kind !== 'key' || a.key === b.key;
}

/** True if the configured path matches this place or an ancestor of it, whatever its filters decide. */
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
    case 'filter':
      return !isProtected(path.slice(0, at + 1));
    default:
      return segment satisfies never;
  }
}

/** Only of a path that may lead into the metadata, because a walk that checks places has to track them. */
function protection(segments: readonly Segment[]): Pick<Path, 'isProtected'> {
  return mayBeKey(segments[0], ['metadata']) ? { isProtected } : {};
}

function touchesProtected(segments: readonly Segment[]): boolean {
  const [first, second] = segments;
  if (first === undefined) return true;
  if (!mayBeKey(first, ['metadata'])) return false;
  if (segments.length <= 1) return true;
  // The check of the configuration knows what a path that begins with `metadata` leads to.
  if (first.kind !== 'key' && second?.kind === 'key') return true;
  return segments.length === 2 && mayBeKey(second, ['annotations', 'labels', ...OWN_METADATA]);
}

function mayBeKey(segment: Segment | undefined, keys: readonly string[]): boolean {
  if (segment === undefined || segment.kind === 'index') return false;
  return segment.kind !== 'key' || keys.includes(segment.key);
}

export interface FilteredPaths {
  readonly matched: readonly ConcretePath[];
  /** In the host object as it is; undefined: there is none. */
  readonly host: readonly ConcretePath[] | undefined;
}

/** `members`: top-level members below which paths may be two-way. `filtered`: of an object on its way to the host, by the index of the patch;
 * without it, filters match everything. */
export function createFlow(
  patches: readonly CompiledPatch[],
  members: readonly string[],
  filtered?: ReadonlyMap<number, FilteredPaths>,
): Omit<FlowRules, 'rulesOf'> {
  const oneWayToHost = patches.filter((patch) => patch.actions.toVirtual.kind === 'keep');
  const oneWayToVirtual = patches.filter((patch) => patch.actions.toHost.kind === 'keep');
  const twoWay = patches.filter(
    ({ actions }) => actions.toHost.kind === 'evaluate' && actions.toVirtual.kind === 'evaluate',
  );
  const matches = ({ index, segments }: CompiledPatch, path: ConcretePath): boolean => {
    const paths = filtered?.get(index);
    return paths === undefined
      ? covers(segments, path)
      : isWithin(path, paths.matched) || isWithin(path, paths.host ?? []);
  };
  // The filter has selected the virtual value and not that of the host, which the patch in reverse would not transform.
  const isIrreversible = ({ index }: CompiledPatch, path: ConcretePath): boolean => {
    const paths = filtered?.get(index);
    return paths?.host !== undefined && isWithin(path, paths.matched) && !isWithin(path, paths.host);
  };
  const flowOf = (path: ConcretePath): Flow => {
    const staysOnVirtual = oneWayToVirtual.some((patch) => matches(patch, path));
    const staysOnHost =
      oneWayToHost.some((patch) => matches(patch, path)) ||
      twoWay.some((patch) => isIrreversible(patch, path));
    if (staysOnVirtual) return staysOnHost ? 'none' : 'toVirtual';
    return staysOnHost ? 'toHost' : 'both';
  };
  const located = (patch: CompiledPatch, object: JsonObject): readonly ConcretePath[] =>
    filtered?.get(patch.index)?.matched ?? locate(patch.paths.toVirtual, object);
  return {
    flowOf,
    twoWayPaths: (object) =>
      distinct(twoWay.map((patch) => contentPaths(patch, members, object, located))).filter(
        (path) => flowOf(path) === 'both',
      ),
    hostOwnedPaths: (object) => distinct(oneWayToVirtual.map((patch) => located(patch, object))),
  };
}

/** Paths that the patch matches at or below the members. A patch on the whole object matches each member as a whole. */
function contentPaths(
  patch: CompiledPatch,
  members: readonly string[],
  object: JsonObject,
  located: (patch: CompiledPatch, object: JsonObject) => readonly ConcretePath[],
): readonly ConcretePath[] {
  const [first] = patch.segments;
  if (first === undefined) return members.filter((name) => Object.hasOwn(object, name)).map((name) => [name]);
  const mayBeContent =
    first.kind === 'wildcard' ||
    first.kind === 'filter' ||
    (first.kind === 'key' && members.includes(first.key));
  return mayBeContent ? located(patch, object).filter(([root]) => members.includes(String(root))) : [];
}

/** Both sides can keep what they have where this patch fails: annotations, labels, and members of the content's elements. An element has no place
 * without its patch, the objects that a reference names would no longer be imported, and nothing else is merged. */
export function mayBeKept({ segments, config }: CompiledPatch, members: readonly string[]): boolean {
  const [first, second] = segments;
  const last = segments.at(-1);
  if (first?.kind !== 'key' || second === undefined || config.reference !== undefined) return false;
  if (first.key === 'metadata')
    return second.kind === 'key' && (second.key === 'annotations' || second.key === 'labels');
  return members.includes(first.key) && last?.kind === 'key' && last.index === undefined;
}

export function keptPaths(patches: readonly CompiledPatch[]): KeptPaths {
  return {
    covers: (path) => patches.some(({ segments }) => covers(segments, path)),
    locate: (object) => distinct(patches.map(({ paths }) => locate(paths.toHost, object))),
  };
}

/** The version of the patches that reach a place on the way to the host: what a record calls the rules that made a value. `vcluster`: what expressions
 * see as `context.vcluster`. Where one reads it, another configuration is another rule. */
export function ruleVersions(
  patches: readonly CompiledPatch[],
  vcluster: VclusterContext,
): FlowRules['rulesOf'] {
  const rules = patches.map((patch) => ({ patch, version: versionOf(patch, { ...vcluster }) }));
  return (path) => {
    const versions = rules.flatMap(({ patch, version }) => (covers(patch.segments, path) ? [version] : []));
    if (versions.length < 2) return versions[0];
    return versions.includes(UNPROVABLE) ? UNPROVABLE : shortHash(versions.join(''));
  };
}

function versionOf(
  { actions: { toHost }, filters, config, paths }: CompiledPatch,
  vcluster: JsonObject,
): string {
  const programs = filters.map(({ program }) => program);
  if (toHost.kind === 'evaluate') programs.push(toHost.program);
  if (programs.some(readsHostObject)) return UNPROVABLE;
  const { path, expression, reverseExpression: _back, reference, labels, ...others } = config;
  const read = programs.flatMap(({ reads }) => reads.vcluster.map((one) => valueAt(vcluster, one)));
  // Records have the hash, so that of a patch of these modes must stay.
  const own = [path, expression, reference, labels, paths.toHost.matchesMissing, read];
  return shortHash(JSON.stringify(Object.keys(others).length === 0 ? own : [...own, others]));
}

export function readsHostObject({ reads }: Program): boolean {
  return reads.hostObject.length > 0;
}

/** Two patches may match the same path; one matches each once. */
function distinct(ofPatches: readonly (readonly ConcretePath[])[]): readonly ConcretePath[] {
  const [first = [], ...others] = ofPatches.filter(({ length }) => length > 0);
  if (others.length === 0) return first;
  const paths = [first, ...others].flat();
  const byText = new Map(paths.map((path) => [printPath(path), path]));
  return byText.size === paths.length ? paths : [...byText.values()];
}
