/** The kinds that a configuration syncs. */

import type { PatchConfig, SyncConfig } from '../../config/types.ts';
import type { Lister } from '../../kube/types.ts';
import { ENDPOINTS } from '../../kube/object.ts';
import { compilePatches, type CompiledPatches } from '../patch/compile.ts';
import { createEndpointSliceKind } from './endpoint-slices.ts';
import { endpointsKind } from './endpoints.ts';
import type { SyncedKind } from './kind.ts';

export interface ConfiguredKind {
  readonly kind: SyncedKind;
  readonly patches: readonly PatchConfig[];
}

/** `virtualCaches`: by plural, of the kinds that are synced; filled later. */
export function syncedKinds(
  { endpoints, endpointSlices }: Pick<SyncConfig, 'endpoints' | 'endpointSlices'>,
  virtualCaches: ReadonlyMap<string, Pick<Lister, 'get'>>,
): readonly ConfiguredKind[] {
  const kinds: ConfiguredKind[] = [];
  if (endpoints.enabled) kinds.push({ kind: endpointsKind, patches: endpoints.patches });
  if (endpointSlices.enabled) {
    const kind = createEndpointSliceKind({
      isEndpointsSynced: endpoints.enabled,
      endpointsOf: (service) => virtualCaches.get(ENDPOINTS.plural)?.get(service),
    });
    kinds.push({ kind, patches: endpointSlices.patches });
  }
  return kinds;
}

export interface CompiledKind {
  readonly kind: SyncedKind;
  readonly patches: CompiledPatches;
}

/** One sandbox runs the programs of all kinds, so each has a number of its own. */
export function compileKinds(kinds: readonly ConfiguredKind[]): readonly CompiledKind[] {
  let programs = 0;
  return kinds.map(({ kind, patches }) => {
    const compiled = compilePatches(patches, programs);
    programs += compiled.programs.length;
    return { kind, patches: compiled };
  });
}
