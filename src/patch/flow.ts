/** Which way each place of an object flows because of the patches on it. */

import { covers, type CompiledPatch } from './compile.ts';
import { printPath } from './path.ts';
import type { PatchPipeline } from './types.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ConcretePath, Flow } from '../translate/types.ts';

type FlowQuestions = Pick<PatchPipeline, 'flowOf' | 'twoWayPaths' | 'hostOwnedPaths'>;

export function createFlow(patches: readonly CompiledPatch[]): FlowQuestions {
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
      distinct(twoWay.flatMap((patch) => subsetPaths(patch, object))).filter(
        (path) => flowOf(path) === 'both',
      ),
    hostOwnedPaths: (object) => distinct(oneWayToVirtual.flatMap((patch) => patch.walker.locate(object))),
  };
}

/** Where the patch matches at or below `subsets`; one on the whole object reaches `subsets` as a whole. */
function subsetPaths(patch: CompiledPatch, object: JsonObject): readonly ConcretePath[] {
  const subsets: ConcretePath = ['subsets'];
  if (patch.segments.length === 0) return Object.hasOwn(object, 'subsets') ? [subsets] : [];
  const [first] = patch.segments;
  const mayBeSubsets = first?.kind === 'wildcard' || (first?.kind === 'key' && first.key === 'subsets');
  return mayBeSubsets ? patch.walker.locate(object).filter((path) => path[0] === 'subsets') : [];
}

/** Two entries may match one place; it is listed once. */
function distinct(paths: readonly ConcretePath[]): readonly ConcretePath[] {
  const byText = new Map(paths.map((path) => [printPath(path), path]));
  return byText.size === paths.length ? paths : [...byText.values()];
}
