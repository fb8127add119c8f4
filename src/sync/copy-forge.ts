/**
 * The host copy that a pair should have, and what flows back: translation, then patches, then the three-way merge. Decides only;
 * nothing is written here.
 */

import { asJson, ENDPOINTS, type KubeObject, type NamespacedName } from '../kube/object.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ObjectReference, PatchedObject, PatchPipeline, TranslatedReference } from '../patch/types.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../translate/bookkeeping.ts';
import { backTranslate, forgeHostObject, type OwnerReference } from '../translate/forge.ts';
import { detectChanges, resolveChanges, type MergeInput } from '../translate/merge.ts';
import { subsetsEqual } from '../translate/subsets-equality.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import { mapPatch, needsWrite } from '../write/diff.ts';
import { kindsToRecord } from './references/sweep.ts';

export interface CopyForgeOptions {
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
  /** Owns what is made in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
  /** Makes known what can be known of the objects behind these references. True: their names may be others now. */
  readonly learn?: (references: readonly ObjectReference[]) => Promise<boolean>;
}

/** The virtual object, where its copy belongs, and what is there. */
export interface Pair {
  readonly virtual: KubeObject;
  readonly target: NamespacedName;
  readonly host: KubeObject | undefined;
}

export interface CopyForge {
  /** A copy as if there had never been one: nothing of `pair.host` stays. */
  fresh(pair: Pair): Promise<ForgedCopy>;
  /** Both sides brought together. */
  merged(pair: Pair & { readonly host: KubeObject }): Promise<MergedCopy>;
}

export interface ForgedCopy {
  readonly host: KubeObject;
  /** References of kinds that the configuration does not allow; they were left untouched. */
  readonly notAllowed: readonly ObjectReference[];
  readonly references: readonly TranslatedReference[];
}

export interface MergedCopy {
  /** The host object to write; undefined: it is right already. */
  readonly host: KubeObject | undefined;
  /** Data on the host, not only bookkeeping, is not what it should be. */
  readonly putsRight: boolean;
  /** The virtual object after what flows back; the pair's own when nothing does. */
  readonly virtual: KubeObject;
  /** A merge patch, guarded by resourceVersion; undefined: nothing flows back. */
  readonly virtualPatch: JsonObject | undefined;
  readonly notAllowed: readonly ObjectReference[];
  readonly references: readonly TranslatedReference[];
}

export function createCopyForge(options: CopyForgeOptions): CopyForge {
  const { labels, pipeline } = options;
  const input = async (pair: Pair): Promise<{ input: MergeInput; patched: PatchedObject }> => {
    const patched = await forward(pair, options);
    const desired = patched.object as unknown as KubeObject; // patches leave the metadata of an object in place
    const kinds = kindsToRecord(patched.references);
    return {
      input: { virtual: pair.virtual, host: pair.host, desired, labels, flows: pipeline, kinds },
      patched,
    };
  };
  return {
    async fresh(pair) {
      const { input: merge, patched } = await input(pair);
      const { host } = resolveChanges(detectChanges({ ...merge, host: undefined }), undefined);
      return { host, notAllowed: patched.notAllowed, references: patched.references };
    },
    async merged(pair) {
      const { input: merge, patched } = await input(pair);
      const changes = detectChanges(merge);
      const reversed = changes.needsReverse ? await reverse(pair, options) : undefined;
      const { host, virtual, isVirtualChanged } = resolveChanges(changes, reversed);
      return {
        host: needsWrite(host, pair.host) ? host : undefined,
        putsRight: needsWrite(withoutRecord(host), withoutRecord(pair.host)),
        virtual,
        virtualPatch: isVirtualChanged ? virtualPatch(pair.virtual, virtual) : undefined,
        notAllowed: patched.notAllowed,
        references: patched.references,
      };
    },
  };
}

async function forward(pair: Pair, options: CopyForgeOptions): Promise<PatchedObject> {
  const { virtual, target, host } = pair;
  const forged = forgeHostObject(virtual, { ...options, kind: ENDPOINTS, target });
  const apply = (): PatchedObject | Promise<PatchedObject> =>
    options.pipeline.apply('toHost', asJson(forged), {
      objectNamespace: virtual.metadata.namespace ?? '',
      virtualObject: asJson(virtual),
      hostObject: host === undefined ? null : asJson(host),
    });
  const patched = await apply();
  if (patched.references.length === 0 || options.learn === undefined) return patched;
  return (await options.learn(patched.references)) ? apply() : patched;
}

/** A host object after its reverse patches, names and labels still those of the host. */
export async function reverseObject(
  host: KubeObject,
  virtual: KubeObject | undefined,
  objectNamespace: string,
  pipeline: PatchPipeline,
): Promise<KubeObject> {
  const virtualObject = virtual === undefined ? null : asJson(virtual);
  const { object } = await pipeline.apply('toVirtual', asJson(host), {
    objectNamespace,
    virtualObject,
    hostObject: asJson(host),
  });
  return object as unknown as KubeObject; // patches leave the metadata of an object in place
}

async function reverse(
  { virtual, host }: Pair & { readonly host: KubeObject },
  options: CopyForgeOptions,
): Promise<KubeObject> {
  const { name, namespace = '' } = virtual.metadata;
  const reversed = await reverseObject(host, virtual, namespace, options.pipeline);
  return backTranslate(reversed, { name, namespace }, options, virtual);
}

function withoutRecord(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations };
  delete annotations[LAST_SYNCED];
  delete annotations[MANAGED_ANNOTATIONS];
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** The smallest merge patch that turns one state of the virtual object into the other. */
function virtualPatch(from: KubeObject, to: KubeObject): JsonObject {
  const metadata: JsonObject = { resourceVersion: from.metadata.resourceVersion ?? null };
  const annotations = mapPatch(from.metadata.annotations ?? {}, to.metadata.annotations ?? {});
  const labels = mapPatch(from.metadata.labels ?? {}, to.metadata.labels ?? {});
  if (annotations !== undefined) metadata['annotations'] = annotations;
  if (labels !== undefined) metadata['labels'] = labels;
  const [before, after] = [asJson(from)['subsets'] ?? null, asJson(to)['subsets'] ?? null];
  return subsetsEqual(before, after) ? { metadata } : { metadata, subsets: after };
}
