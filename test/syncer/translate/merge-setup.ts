/** One sync of a pair as the engine does it, in memory: translate, patch, merge. */

import { ENDPOINTS, type GroupVersionKind, type KubeObject } from '../../../src/kube/object.ts';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { NO_CONTENT } from '../../../src/syncer/translate/content.ts';
import { backTranslate, forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { mergePair, type Forwarded, type MergedPair } from '../../../src/syncer/translate/merge.ts';
import type { MergeMemory } from '../../../src/syncer/translate/merge-metadata.ts';
import type { Arrival } from '../../../src/syncer/translate/last-synced.ts';
import type { FlowRules, KeptPaths } from '../../../src/syncer/translate/types.ts';
import { translators, type TestTranslators } from './setup.ts';

/** Patches as functions on whole objects of the host's form. */
export interface TestPatches extends FlowRules {
  forward(object: KubeObject): KubeObject;
  reverse(object: KubeObject): KubeObject;
  /** Where they fail on this object, and leave it unpatched; undefined: nowhere. */
  failures?(direction: 'forward' | 'reverse', object: KubeObject): KeptPaths | undefined;
}

/** No patches: metadata flow both ways, content does not. */
export const plainFlows: FlowRules = {
  flowOf: () => 'both',
  twoWayPaths: () => [],
  hostOwnedPaths: () => [],
};

export const noPatches: TestPatches = {
  ...plainFlows,
  forward: (object) => object,
  reverse: (object) => object,
};

export interface TestPair {
  readonly virtual: KubeObject;
  readonly host: KubeObject | undefined;
  readonly kind?: GroupVersionKind;
  readonly excluded?: readonly string[];
  readonly patches?: TestPatches;
  readonly with?: TestTranslators;
  readonly arrival?: Arrival;
  readonly memory?: MergeMemory;
}

/** `virtual`: the pair's own where nothing flows back. */
export interface Merged extends Omit<MergedPair<Forwarded>, 'virtual' | 'forwarded'> {
  readonly virtual: KubeObject;
  readonly isVirtualChanged: boolean;
}

export async function merge(pair: TestPair): Promise<Merged> {
  const { virtual, host, kind = ENDPOINTS, excluded, patches = noPatches, arrival, memory } = pair;
  const { names, labels } =
    pair.with ?? translators(undefined, { ...(excluded && { excludeAnnotations: [...excluded] }) });
  const { name, namespace = '' } = virtual.metadata;
  const target = names.toHost({ name, namespace }) ?? { name: '', namespace: '' };
  const content = kind === ENDPOINTS ? endpointsContent : NO_CONTENT;
  const merged = await mergePair(
    { virtual, host, labels, content, flows: patches, arrival, memory },
    {
      forward: async (object) => {
        const forged = forgeHostObject(object, { kind, content, target, names, labels });
        return { desired: patches.forward(forged), kept: patches.failures?.('forward', forged) };
      },
      reverse: async () => {
        const reversed = patches.reverse(host ?? virtual);
        return {
          kept: patches.failures?.('reverse', host ?? virtual),
          virtual: backTranslate(reversed, { name, namespace }, { names, labels, content }, virtual),
        };
      },
    },
  );
  return { ...merged, virtual: merged.virtual ?? virtual, isVirtualChanged: merged.virtual !== undefined };
}
