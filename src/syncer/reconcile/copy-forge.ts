/** Computes the desired host copy of a pair and the changes to sync back: translation, patches, three-way merge. Writes nothing.
 */

import { asJson, type KubeObject, type NamespacedName, type ObjectKey } from '../../kube/object.ts';
import { jsonEquals, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { ObjectReference, PatchedObject, PatchPipeline, TranslatedReference } from '../patch/types.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../translate/metadata/bookkeeping.ts';
import { backTranslate, forgeHostObject, type OwnerReference } from '../translate/forge.ts';
import {
  detectChanges,
  resolveChanges,
  settleChanges,
  type Echo,
  type MemberFlow,
} from '../translate/merge/merge.ts';
import type { MergeInput, MergeMemory } from '../translate/merge/merge-plan.ts';
import type { Arrival } from '../translate/merge/incoming.ts';
import { hasIncoming, recordedRevision, withRevision } from '../translate/merge/last-synced.ts';
import { memberEquals, memberOf } from '../translate/content.ts';
import type { ConcretePath, LabelTranslator, NameTranslator } from '../translate/types.ts';
import { refuseForeignService, type Refusal } from './decide/decide.ts';
import type { ForeignService } from './decide/observer.ts';
import { mapPatch, needsWrite } from './write/diff.ts';
import { kindsToRecord } from '../translate/merge/recorded-kinds.ts';

/** The copy must not be written. */
export class RefusedCopy extends Error {
  override readonly name = 'RefusedCopy';
  readonly refusal: Refusal;
  /** The host Service whose traffic it would get. */
  readonly service: ObjectKey;

  constructor(service: ObjectKey) {
    const refusal = refuseForeignService(service);
    super(refusal.note);
    this.refusal = refusal;
    this.service = service;
  }
}

export interface CopyForgeOptions {
  readonly kind: SyncedKind;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
  /** Owner of the copies in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
  readonly foreignService: ForeignService;
}

/** The virtual object, the target of its copy, and the host object at that target. */
export interface Pair {
  readonly virtual: KubeObject;
  readonly target: NamespacedName;
  readonly host: KubeObject | undefined;
}

/** Both methods reject with {@link RefusedCopy} if the patched copy would get the traffic of a host Service of others. */
export interface CopyForge {
  /** The copy for a creation: nothing of `pair.host` is kept. */
  fresh(pair: Pair, agreed?: MergeMemory['agreed']): Promise<ForgedCopy>;
  /** Merges both sides. `arrival`: whether values that the record marks as incoming have arrived. */
  merged(
    pair: Pair & { readonly host: KubeObject },
    arrival?: Arrival,
    memory?: MergeMemory,
  ): Promise<MergedCopy>;
}

export interface ForgedCopy {
  readonly host: KubeObject;
  /** Another syncer had copied the copy before this one back to the virtual object. */
  readonly isEchoed: boolean;
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
  readonly echo: Echo | undefined;
  readonly flows: readonly MemberFlow[];
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
    async fresh(pair, agreed) {
      const { input: merge, patched } = await input(pair);
      const memory = { agreed, restoresEchoes: false };
      const { host, echo } = resolveChanges(detectChanges({ ...merge, host: undefined, memory }), undefined);
      assertAllowed(host, options);
      return {
        host,
        // A record on the virtual object, even an unreadable one, is removed by the next merge.
        isEchoed: echo !== undefined || pair.virtual.metadata.annotations?.[LAST_SYNCED] !== undefined,
        notAllowed: patched.notAllowed,
        references: patched.references,
      };
    },
    async merged(pair, arrival, memory) {
      const { input: merge, patched: first } = await input(pair);
      const changes = detectChanges({ ...merge, arrival, memory });
      const reversed = changes.needsReverse ? await reverse(pair, options) : undefined;
      const detected = resolveChanges(changes, reversed?.virtual);
      assertResolved(reversed?.unresolved, [pair.virtual, memory?.agreed?.virtual], detected.virtual);
      // Without patches, a value from the host translates to itself.
      const settled =
        detected.isVirtualChanged && !pipeline.isEmpty
          ? await input({ ...pair, virtual: detected.virtual })
          : undefined;
      const patched = settled?.patched ?? first;
      const { host, virtual, isVirtualChanged, echo, flows } =
        settled === undefined
          ? detected
          : resolveChanges(settleChanges(changes, settled.input.desired), reversed?.virtual);
      assertAllowed(host, options);
      return {
        host: needsWrite(host, pair.host, content) ? withCurrentRevision(host, pair.virtual) : undefined,
        isUncertain: changes.isUncertain,
        hasIncoming: isVirtualChanged || hasIncoming(changes.record),
        correctsDrift: needsWrite(withoutRecord(host), withoutRecord(pair.host), content),
        virtual,
        virtualPatch: isVirtualChanged ? virtualPatch(kind, pair.virtual, virtual) : undefined,
        echo,
        flows,
        notAllowed: patched.notAllowed,
        references: patched.references,
      };
    },
  };
}

/** Judged after the patches, which can change the labels that select a Service. */
function assertAllowed(host: KubeObject, { foreignService }: CopyForgeOptions): void {
  const service = foreignService(host);
  if (service !== undefined) throw new RefusedCopy(service);
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

/** A host object after its reverse patches, before names and labels are translated back. Rejects with a `PatchError` also for a reference
 * that no virtual object has on the host.
 */
export async function reverseObject(
  host: KubeObject,
  virtual: KubeObject | undefined,
  objectNamespace: string,
  pipeline: PatchPipeline,
): Promise<KubeObject> {
  const { object, unresolved } = await applyReverse(host, virtual, objectNamespace, pipeline);
  const [first] = unresolved;
  if (first !== undefined) throw first.error;
  return object as unknown as KubeObject; // patches leave the metadata of an object in place
}

async function applyReverse(
  host: KubeObject,
  virtual: KubeObject | undefined,
  objectNamespace: string,
  pipeline: PatchPipeline,
): Promise<PatchedObject> {
  const virtualObject = virtual === undefined ? null : asJson(virtual);
  return pipeline.apply('toVirtual', asJson(host), {
    objectNamespace,
    virtualObject,
    hostObject: asJson(host),
  });
}

async function reverse(
  { virtual, host }: Pair & { readonly host: KubeObject },
  options: CopyForgeOptions,
): Promise<{ readonly virtual: KubeObject; readonly unresolved: PatchedObject['unresolved'] }> {
  const { name, namespace = '' } = virtual.metadata;
  const { object, unresolved } = await applyReverse(host, virtual, namespace, options.pipeline);
  const { content } = options.kind;
  const reversed = object as unknown as KubeObject; // patches leave the metadata of an object in place
  const back = backTranslate(reversed, { name, namespace }, { ...options, content }, virtual);
  return { virtual: back, unresolved };
}

/**
 * A name that cannot be translated back is an error where it would reach the virtual object. `known`: the virtual object as it is, and as it
 * was before another syncer copied the name back; what one of them has does not come from the host.
 */
function assertResolved(
  unresolved: PatchedObject['unresolved'] = [],
  known: readonly (KubeObject | undefined)[],
  after: KubeObject,
): void {
  const valueOf = (object: KubeObject, path: ConcretePath): JsonValue =>
    valueAt(asJson(object), path) ?? null;
  const found = unresolved.find(({ path }) =>
    known.every((object) => object === undefined || !jsonEquals(valueOf(object, path), valueOf(after, path))),
  );
  if (found !== undefined) throw found.error;
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
