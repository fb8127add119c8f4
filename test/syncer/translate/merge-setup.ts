/** One sync of a pair as the engine does it, in memory: translate, patch, merge. */

import {
  ENDPOINTS,
  type GroupVersionKind,
  type KubeObject,
  type StringMap,
} from '../../../src/kube/object.ts';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';
import { NO_CONTENT } from '../../../src/syncer/translate/content.ts';
import { backTranslate, forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { mergePair, type Forwarded, type MergedPair } from '../../../src/syncer/translate/merge.ts';
import type { MergeMemory } from '../../../src/syncer/translate/merge-metadata.ts';
import { shortHash, type Arrival } from '../../../src/syncer/translate/last-synced.ts';
import type { ContentRules, Flow, FlowRules, KeptPaths } from '../../../src/syncer/translate/types.ts';
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
  rulesOf: () => undefined,
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
  /** Absent: that of the kind. */
  readonly content?: ContentRules;
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
  const content = pair.content ?? (kind === ENDPOINTS ? endpointsContent : NO_CONTENT);
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

type Changes = Record<string, string | undefined>;

/** The object with some annotations or labels changed; undefined removes one. */
export function touch(object: KubeObject, changes: { annotations?: Changes; labels?: Changes }): KubeObject {
  const { metadata } = object;
  const changed = (map: StringMap = {}, edits: Changes = {}): StringMap =>
    Object.fromEntries(
      Object.entries({ ...map, ...edits }).filter(([, value]) => value !== undefined),
    ) as StringMap;
  const annotations = changed(metadata.annotations, changes.annotations);
  const labels = changed(metadata.labels, changes.labels);
  return { ...object, metadata: { ...metadata, annotations, labels } };
}

/** As an API server counts: every write of the virtual object gives it another version. */
export function written(virtual: KubeObject): KubeObject {
  const resourceVersion = String(Number(virtual.metadata.resourceVersion ?? '0') + 1);
  return { ...virtual, metadata: { ...virtual.metadata, resourceVersion } };
}

export const LOST = { [LAST_SYNCED]: undefined };

export async function copyOf(virtual: KubeObject, patches: TestPatches = noPatches): Promise<KubeObject> {
  return (await merge({ virtual, host: undefined, patches })).host;
}

export function annotationOf(object: KubeObject, key: string): string | undefined {
  return object.metadata.annotations?.[key];
}

/** One annotation `k` with a flow, and the functions of its expressions; undefined removes it. */
export function patchK(
  flow: Flow,
  forward: (value: string | undefined) => string | undefined = (value) => value,
  reverse: (value: string | undefined) => string | undefined = (value) => value,
): TestPatches {
  const patch = (object: KubeObject, change: typeof forward): KubeObject =>
    touch(object, { annotations: { k: change(annotationOf(object, 'k')) } });
  return {
    ...plainFlows,
    flowOf: (path) => (path[2] === 'k' ? flow : 'both'),
    rulesOf: (path) => (path[2] === 'k' ? shortHash(String(forward)) : undefined),
    forward: (object) => patch(object, forward),
    reverse: (object) => patch(object, reverse),
  };
}
