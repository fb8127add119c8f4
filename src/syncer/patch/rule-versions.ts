/** The version of the patches that reach a place on the way to the host: what a record calls the rules that made a value. */

import { valueAt, type JsonObject } from '../../base/json.ts';
import type { Program, VclusterContext } from '../../expressions/types.ts';
import { shortHash, UNPROVABLE } from '../translate/last-synced.ts';
import type { FlowRules } from '../translate/types.ts';
import { covers, type CompiledPatch } from './compile.ts';

/** `vcluster`: what expressions see as `context.vcluster`. Where one reads it, another configuration is another rule. */
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
