/** Computes the desired host copy of a pair and the changes to sync back: translation, patches, three-way merge. Writes nothing.
 */

import { asJson, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { ObjectReference, PatchedObject, PatchPipeline, TranslatedReference } from '../patch/types.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../translate/metadata/bookkeeping.ts';
import { backTranslate, forgeHostObject, type OwnerReference } from '../translate/forge.ts';
import { detectChanges, resolveChanges, settleChanges } from '../translate/merge/merge.ts';
import type { MergeInput } from '../translate/merge/merge-plan.ts';
import type { Arrival } from '../translate/merge/incoming.ts';
import { hasIncoming, recordedRevision, withRevision } from '../translate/merge/last-synced.ts';
import { memberEquals, memberOf } from '../translate/content.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import { mapPatch, needsWrite } from './write/diff.ts';
import { kindsToRecord } from '../translate/merge/recorded-kinds.ts';

export interface CopyForgeOptions {
  readonly kind: SyncedKind;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
  /** Owner of the copies in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
}

/** The virtual object, the target of its copy, and the host object at that target. */
export interface Pair {
  readonly virtual: KubeObject;
  readonly target: NamespacedName;
  readonly host: KubeObject | undefined;
}

export interface CopyForge {
  /** The copy for a creation: nothing of `pair.host` is kept. */
  fresh(pair: Pair): Promise<ForgedCopy>;
  /** Merges both sides. `arrival`: whether values that the record marks as incoming have arrived. */
  merged(pair: Pair & { readonly host: KubeObject }, arrival?: Arrival): Promise<MergedCopy>;
}

export interface ForgedCopy {
  readonly host: KubeObject;
  /** References to kinds that the configuration does not allow; left unchanged. */
  readonly notAllowed: readonly ObjectReference[];
  readonly references: readonly TranslatedReference[];
}

export interface MergedCopy {
  /** The host object to write, before the virtual object; undefined: no write is needed. */
  readonly host: KubeObject | undefined;
  /** Data on the host, not only bookkeeping, differs from the desired state. */
  readonly correctsDrift: boolean;
  /** See `DetectedChanges`. */
  readonly isUncertain: boolean;
  /** The record of the copy, as stored or as to be written, has values that are on their way to the virtual side. */
  readonly hasIncoming: boolean;
  /** The virtual object with the changes from the host; the pair's own if there are none. */
  readonly virtual: KubeObject;
  /** A merge patch with resourceVersion precondition; undefined: nothing to sync back. */
  readonly virtualPatch: JsonObject | undefined;
  readonly notAllowed: readonly ObjectReference[];
  readonly references: readonly TranslatedReference[];
}

export function createCopyForge(options: CopyForgeOptions): CopyForge {
  const { labels, pipeline, kind } = options;
  const { content } = kind;
  const input = async (pair: Pair): Promise<{ input: MergeInput; patched: PatchedObject }> => {
    const patched = await forward(pair, options);
    const desired = patched.object as unknown as KubeObject; // patches leave the metadata of an object in place
    const kinds = kindsToRecord(patched.references);
    return {
      input: { virtual: pair.virtual, host: pair.host, desired, labels, flows: pipeline, content, kinds },
      patched,
    };
  };
  return {
    async fresh(pair) {
      const { input: merge, patched } = await input(pair);
      const { host } = resolveChanges(detectChanges({ ...merge, host: undefined }), undefined);
      return { host, notAllowed: patched.notAllowed, references: patched.references };
    },
    async merged(pair, arrival) {
      const { input: merge, patched: first } = await input(pair);
      const changes = detectChanges({ ...merge, arrival });
      const reversed = changes.needsReverse ? await reverse(pair, options) : undefined;
      const detected = resolveChanges(changes, reversed);
      // Without patches, a value from the host translates to itself.
      const settled =
        detected.isVirtualChanged && !pipeline.isEmpty
          ? await input({ ...pair, virtual: detected.virtual })
          : undefined;
      const patched = settled?.patched ?? first;
      const { host, virtual, isVirtualChanged } =
        settled === undefined
          ? detected
          : resolveChanges(settleChanges(changes, settled.input.desired), reversed);
      return {
        host: needsWrite(host, pair.host, content) ? withCurrentRevision(host, pair.virtual) : undefined,
        isUncertain: changes.isUncertain,
        hasIncoming: isVirtualChanged || hasIncoming(changes.record),
        correctsDrift: needsWrite(withoutRecord(host), withoutRecord(pair.host), content),
        virtual,
        virtualPatch: isVirtualChanged ? virtualPatch(kind, pair.virtual, virtual) : undefined,
        notAllowed: patched.notAllowed,
        references: patched.references,
      };
    },
  };
}

async function forward(pair: Pair, options: CopyForgeOptions): Promise<PatchedObject> {
  const { virtual, target, host } = pair;
  const { resource, content } = options.kind;
  const forged = forgeHostObject(virtual, { ...options, kind: resource, content, target, host });
  return options.pipeline.apply('toHost', asJson(forged), {
    objectNamespace: virtual.metadata.namespace ?? '',
    virtualObject: asJson(virtual),
    hostObject: host === undefined ? null : asJson(host),
  });
}

/** A host object after its reverse patches, before names and labels are translated back. */
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
  const { content } = options.kind;
  return backTranslate(reversed, { name, namespace }, { ...options, content }, virtual);
}

/** Records the version of the virtual object, if the copy is written anyway. */
function withCurrentRevision(host: KubeObject, { metadata: { resourceVersion } }: KubeObject): KubeObject {
  const { annotations = {} } = host.metadata;
  const record = annotations[LAST_SYNCED];
  if (record === undefined || recordedRevision(record) === resourceVersion) return host;
  const current = { ...annotations, [LAST_SYNCED]: withRevision(record, resourceVersion) };
  return { ...host, metadata: { ...host.metadata, annotations: current } };
}

function withoutRecord(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations };
  delete annotations[LAST_SYNCED];
  delete annotations[MANAGED_ANNOTATIONS];
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** The smallest merge patch that turns one state of the virtual object into the other. */
function virtualPatch({ content }: SyncedKind, from: KubeObject, to: KubeObject): JsonObject {
  const metadata: JsonObject = { resourceVersion: from.metadata.resourceVersion ?? null };
  const annotations = mapPatch(from.metadata.annotations ?? {}, to.metadata.annotations ?? {});
  const labels = mapPatch(from.metadata.labels ?? {}, to.metadata.labels ?? {});
  if (annotations !== undefined) metadata['annotations'] = annotations;
  if (labels !== undefined) metadata['labels'] = labels;
  const patch: JsonObject = { metadata };
  for (const member of content.members) {
    const [before, after] = [memberOf(from, member), memberOf(to, member)];
    if (!memberEquals(content, member, before, after)) patch[member] = after;
  }
  return patch;
}
