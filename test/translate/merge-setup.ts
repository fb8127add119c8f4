/** One sync of a pair as the engine does it, in memory: translate, patch, merge. */

import { ENDPOINTS, type GroupVersionKind, type KubeObject } from '../../src/kube/object.ts';
import { backTranslate, forgeHostObject } from '../../src/translate/forge.ts';
import { detectChanges, plainFlows, resolveChanges, type MergedPair } from '../../src/translate/merge.ts';
import type { FlowRules } from '../../src/translate/types.ts';
import { translators, type TestTranslators } from './setup.ts';

/** Patches as functions on whole objects of the host's form. */
export interface TestPatches extends FlowRules {
  forward(object: KubeObject): KubeObject;
  reverse(object: KubeObject): KubeObject;
}

export const noPatches: TestPatches = {
  ...plainFlows,
  forward: (object) => object,
  reverse: (object) => object,
};

export interface Pair {
  readonly virtual: KubeObject;
  readonly host: KubeObject | undefined;
  readonly kind?: GroupVersionKind;
  readonly excluded?: ReadonlySet<string>;
  readonly patches?: TestPatches;
  readonly with?: TestTranslators;
}

export function mergePair(pair: Pair): MergedPair {
  const { virtual, host, kind = ENDPOINTS, excluded, patches = noPatches } = pair;
  const { names, labels } = pair.with ?? translators();
  const { name, namespace = '' } = virtual.metadata;
  const target = names.toHost({ name, namespace }) ?? { name: '', namespace: '' };
  const forged = forgeHostObject(virtual, { kind, target, names, labels });
  const changes = detectChanges({
    virtual,
    host,
    desired: patches.forward(forged),
    labels,
    flows: patches,
    ...(excluded && { excludedAnnotations: excluded }),
  });
  if (!changes.needsReverse || host === undefined) return resolveChanges(changes, undefined);
  const reversed = backTranslate(patches.reverse(host), { name, namespace }, { names, labels }, virtual);
  return resolveChanges(changes, reversed);
}
