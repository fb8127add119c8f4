/** The directions in which each path of an object is synced, given the patches on it. */

import { covers, type CompiledPatch } from './compile.ts';
import { printPath } from './paths/print-path.ts';
import type { PatchPipeline } from './types.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ConcretePath, Flow } from '../translate/types.ts';

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
