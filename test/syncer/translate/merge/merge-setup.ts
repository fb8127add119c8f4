/** One sync of a pair as the engine does it, in memory: translate, patch, merge. */

import { ENDPOINTS, type GroupVersionKind, type KubeObject } from '../../../../src/kube/object.ts';
import { endpointsContent } from '../../../../src/syncer/kinds/endpoints.ts';
import { NO_CONTENT } from '../../../../src/syncer/translate/content.ts';
import { backTranslate, forgeHostObject } from '../../../../src/syncer/translate/forge.ts';
import {
  detectChanges,
  resolveChanges,
  settleChanges,
  type MergedPair,
} from '../../../../src/syncer/translate/merge/merge.ts';
import type { MergeMemory } from '../../../../src/syncer/translate/merge/merge-plan.ts';
import type { Arrival } from '../../../../src/syncer/translate/merge/incoming.ts';
import type { FlowRules } from '../../../../src/syncer/translate/types.ts';
import { translators, type TestTranslators } from '../setup.ts';

/** Patches as functions on whole objects of the host's form. */
export interface TestPatches extends FlowRules {
  forward(object: KubeObject): KubeObject;
  reverse(object: KubeObject): KubeObject;
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

export interface Pair {
  readonly virtual: KubeObject;
  readonly host: KubeObject | undefined;
  readonly kind?: GroupVersionKind;
  readonly excluded?: readonly string[];
  readonly patches?: TestPatches;
  readonly with?: TestTranslators;
  readonly arrival?: Arrival;
  readonly memory?: MergeMemory;
}

export function mergePair(pair: Pair): MergedPair {
  const { virtual, host, kind = ENDPOINTS, excluded, patches = noPatches } = pair;
  const { names, labels } =
    pair.with ?? translators(undefined, { ...(excluded && { excludeAnnotations: excluded }) });
  const { name, namespace = '' } = virtual.metadata;
  const target = names.toHost({ name, namespace }) ?? { name: '', namespace: '' };
  const content = kind === ENDPOINTS ? endpointsContent : NO_CONTENT;
  const forward = (object: KubeObject): KubeObject =>
    patches.forward(forgeHostObject(object, { kind, content, target, names, labels }));
  const changes = detectChanges({
    virtual,
    host,
    desired: forward(virtual),
    labels,
    content,
    flows: patches,
    ...(pair.arrival && { arrival: pair.arrival }),
    memory: pair.memory,
  });
  if (!changes.needsReverse || host === undefined) return resolveChanges(changes, undefined);
  const reversed = backTranslate(
    patches.reverse(host),
    { name, namespace },
    { names, labels, content },
    virtual,
  );
  const merged = resolveChanges(changes, reversed);
  if (!merged.isVirtualChanged) return merged;
  return resolveChanges(settleChanges(changes, forward(merged.virtual)), reversed);
}
