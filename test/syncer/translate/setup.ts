/** Helpers of this folder: translators of one virtual cluster, and small objects. */

import type { Config } from '../../../src/syncer/config/config.ts';
import type { NamespaceMode } from '../../../src/syncer/translate/types.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { createLabelTranslator } from '../../../src/syncer/translate/labels.ts';
import { isCopiedByKind } from '../../../src/syncer/kinds/synced-kinds.ts';
import { createNameTranslator } from '../../../src/syncer/translate/names.ts';
import type { LabelTranslator, NameTranslator } from '../../../src/syncer/translate/types.ts';

export const LEADER = 'control-plane.alpha.kubernetes.io/leader';
export const SINGLE: NamespaceMode = { kind: 'single' };
export const LEGACY: NamespaceMode = { kind: 'legacy-multi' };

export function mappings(byName: Record<string, string>, mappingsOnly = false): NamespaceMode {
  return { kind: 'mappings', byName, mappingsOnly };
}

export interface TestTranslators {
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
}

export function translators(
  mode: NamespaceMode = SINGLE,
  {
    vcluster = 'suffix',
    hostNamespace = 'test',
    excludeAnnotations = [LEADER],
    excludeLabels = [],
  }: { vcluster?: string; hostNamespace?: string } & Partial<Config['metadata']> = {},
): TestTranslators {
  return {
    names: createNameTranslator({ vcluster, hostNamespace, mode, referenceNaming: 'short', isCopiedByKind }),
    labels: createLabelTranslator(vcluster, mode, { excludeAnnotations, excludeLabels }),
  };
}

export function endpoints(
  metadata: Partial<KubeObject['metadata']>,
  rest: Partial<KubeObject> = {},
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    ...rest,
    metadata: { name: 'web', namespace: 'shop', ...metadata },
  };
}
