/** Computes the desired host copy of a pair and the changes to sync back: translation, patches, three-way merge. Writes nothing. Of a large object,
 * others get a turn of the event loop between two steps. */

import { setImmediate } from 'node:timers/promises';
import {
  asJson,
  asObject,
  isTerminating,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type ObjectMeta,
  type StringMap,
} from '../../kube/object.ts';
import {
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  textLengthOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { TerminalError, type PatchError } from '../../base/errors.ts';
import type {
  FailedPatches,
  ObjectReference,
  PatchedObject,
  PatchPipeline,
  TranslatedReference,
} from '../patch/types.ts';
import type { Budget } from '../../expressions/local/budget.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../translate/bookkeeping.ts';
import { backTranslate, forgeHostObject } from '../translate/forge.ts';
import { mergePair, type Forwarded, type MergedPair, type Reversed } from '../translate/merge.ts';
import type { MergeMemory } from '../translate/merge-metadata.ts';
import { type Arrival, recordedRevision, withRevision, kindsToRecord } from '../translate/last-synced.ts';
import { contentEquals, memberEquals, memberOf, metadataEquals, withMembers } from '../translate/content.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import type { CopyOwner } from './environment.ts';
import { refuseForeignService, type Refusal } from './decide.ts';

/** Of the body of a request: kube-apiserver 1.36 answers "Request entity too large: limit is 3145728". */
const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Of keys and values together: Kubernetes' limit for annotations. It has none for labels, of which each takes as long. */
const MAP_BYTES_MAX = 256 * 1024;
const LARGE_BYTES = 64 * 1024;

/** The patched copy would get the traffic of this host Service of others. */
export interface RefusedCopy {
  readonly refusal: Refusal;
  readonly service: ObjectKey;
}

export function isRefused(result: object): result is RefusedCopy {
  return 'refusal' in result;
}

/** The host Service at this key, unless it is the copy of the virtual Service of `virtual`, or of any if that is undefined. Undefined: none. */
export type ForeignService = (
  key: ObjectKey | undefined,
  virtual: KubeObject | undefined,
) => ObjectKey | undefined;

export interface CopyForgeOptions {
  readonly kind: SyncedKind;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
  readonly owner: Pick<CopyOwner, 'current'>;
  readonly foreignService: ForeignService;
}

export interface PlacedPair {
  readonly virtual: KubeObject;
  readonly target: NamespacedName;
  readonly host: KubeObject | undefined;
  /** What the evaluations of this reconcile may still cost, in both directions; undefined: each has all of it. */
  readonly budget?: Budget | undefined;
  /** The host has no Service that the copy belongs to, and the copy is marked for the host's controllers. */
  readonly isUnserved?: boolean;
}

interface PatchedParts {
  readonly notAllowed: readonly ObjectReference[];
  readonly references: readonly TranslatedReference[];
  /** Of a patch that was left out, in either direction; undefined: none failed. */
  readonly failure: PatchError | undefined;
}

export interface ForgedCopy extends PatchedParts {
  readonly host: KubeObject;
  /** Another syncer had copied the copy before this one back to the virtual object. */
  readonly isEchoed: boolean;
}

export interface MergedCopy
  extends PatchedParts, Omit<MergedPair<PatchedCopy>, 'host' | 'forwarded' | 'failed'> {
  /** The host object to write, before the virtual object; undefined: no write is needed. */
  readonly host: KubeObject | undefined;
  /** Data on the host, not only bookkeeping, differs from the desired state. */
  readonly correctsDrift: boolean;
}

interface PatchedCopy extends Forwarded {
  readonly patched: PatchedObject;
}

export class CopyForge {
  readonly #options: CopyForgeOptions;
  readonly #rules;

  constructor(options: CopyForgeOptions) {
    this.#options = options;
    this.#rules = { labels: options.labels, flows: options.pipeline, content: options.kind.content };
  }

  /** The copy for a creation: nothing of `pair.host` is kept. */
  async fresh(
    pair: PlacedPair,
    lastSync: Omit<MergeMemory, 'restoresEchoes'> = { agreed: undefined },
  ): Promise<ForgedCopy | RefusedCopy> {
    const { virtual } = pair;
    const pause = pausesFor(virtual);
    if (pause !== undefined) {
      await pause();
      checkCopySize(virtual);
    }
    const memory = { ...lastSync, restoresEchoes: false };
    const { host, echo, forwarded, failed } = await mergePair(
      { ...this.#rules, virtual, host: undefined, memory },
      { forward: () => forward(pair, this.#options), pause },
    );
    const parts = this.#parts(host, virtual, forwarded, failed);
    if (isRefused(parts)) return parts;
    return {
      ...parts,
      host,
      // A record on the virtual object, even an unreadable one, is removed by the next merge.
      isEchoed: echo !== undefined || virtual.metadata.annotations?.[LAST_SYNCED] !== undefined,
    };
  }

  async merged(
    pair: PlacedPair & { readonly host: KubeObject },
    arrival?: Arrival,
    memory?: MergeMemory,
  ): Promise<MergedCopy | RefusedCopy> {
    const { kind } = this.#options;
    const pause = pausesFor(pair.virtual) ?? pausesFor(pair.host);
    if (pause !== undefined) {
      await pause();
      checkCopySize(pair.virtual);
    }
    let failedBack: FailedPatches | undefined;
    // Other clients may still write to an object that is being deleted, and an object that replaces it has none of its history.
    const isOneWay = isTerminating(pair.host) || isTerminating(pair.virtual);
    const reverse = async (): Promise<Reversed> => {
      const { name, namespace = '' } = pair.virtual.metadata;
      const from = { original: pair.virtual, budget: pair.budget };
      const reversed = await reverseCopy(pair.host, { name, namespace }, this.#options, from);
      failedBack = reversed.failed;
      return reversed;
    };
    const { host, forwarded, failed, ...merged } = await mergePair(
      { ...this.#rules, virtual: pair.virtual, host: pair.host, arrival, memory },
      {
        forward: (virtual) => forward({ ...pair, virtual }, this.#options),
        ...(isOneWay ? {} : { reverse }),
        pause,
      },
    );
    if (pause !== undefined) await pause();
    const parts = this.#parts(host, pair.virtual, forwarded, failed);
    if (isRefused(parts)) return parts;
    const isSameContent = contentEquals(host, pair.host, kind.content);
    const isSame = isSameContent && metadataEquals(host.metadata, pair.host.metadata);
    return {
      ...merged,
      ...parts,
      failure: firstOf(parts.failure, failedBack?.errors),
      host: isSame ? undefined : withCurrentRevision(host, pair.virtual),
      correctsDrift:
        !isSameContent || !metadataEquals(withoutRecord(host.metadata), withoutRecord(pair.host.metadata)),
    };
  }

  #parts(
    host: KubeObject,
    virtual: KubeObject,
    { patched: { notAllowed, references }, desired }: PatchedCopy,
    failed: readonly PatchedCopy[],
  ): PatchedParts | RefusedCopy {
    const { kind, foreignService } = this.#options;
    const failure = failureOf(host, desired, failed, kind);
    // Judged after the patches, which can change the labels that select a Service.
    const service = foreignService(kind.hostService(host), virtual);
    if (service !== undefined) return { refusal: refuseForeignService(service), service };
    return { notAllowed, references, failure };
  }
}

/** Throws a `TerminalError` if the copy would be more than the host's API server accepts, before it takes any work. An object that needs no
 * {@link pausesFor pauses} is within all limits. */
export function checkCopySize(virtual: KubeObject): void {
  const { annotations = {}, labels = {} } = virtual.metadata;
  for (const [name, map] of Object.entries({ annotations, labels }))
    if (isBeyond(map, MAP_BYTES_MAX))
      throw new TerminalError(
        `its ${name} have more than ${MAP_BYTES_MAX} bytes, keys and values together: remove some`,
      );
  const copied = { ...asJson(virtual), metadata: { annotations, labels } };
  if (textLengthOf(copied, BODY_BYTES_MAX) > BODY_BYTES_MAX)
    throw new TerminalError(
      `it has more than ${BODY_BYTES_MAX} bytes, and no API server accepts more: divide it into several objects`,
    );
}

function isBeyond(map: Readonly<StringMap>, bytesMax: number): boolean {
  let bytes = 0;
  for (const key in map) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(map[key] ?? '');
    if (bytes > bytesMax) return true;
  }
  return false;
}

/** Lets others have a turn of the event loop; undefined for an object on which each step is short. */
export function pausesFor(object: KubeObject): (() => Promise<void>) | undefined {
  return textLengthOf(asJson(object), LARGE_BYTES) > LARGE_BYTES ? () => setImmediate() : undefined;
}

/** With the others; of one patch, only the first failure. */
function firstOf(
  failure: PatchError | undefined,
  ...more: readonly (readonly PatchError[] | undefined)[]
): PatchError | undefined {
  const all = [
    ...(failure === undefined ? [] : [failure, ...failure.others]),
    ...more.flatMap((each) => each ?? []),
  ];
  if (all.length === 0) return undefined;
  const [first, ...others] = new Map(all.toReversed().map((error) => [error.index, error]))
    .values()
    .toArray()
    .toReversed();
  return first?.with(others);
}

/** Throws it if the copy is invalid with what its paths keep. What the other patches wrote is validated already. */
function failureOf(
  host: KubeObject,
  desired: KubeObject,
  failed: readonly PatchedCopy[],
  { validate, content }: SyncedKind,
): PatchError | undefined {
  const failure = firstOf(undefined, ...failed.map(({ patched }) => patched.failed?.errors));
  if (failure === undefined) return undefined;
  const kept = { ...asJson(host) };
  for (const member of content.ownMembers) delete kept[member];
  if (validate(asJson(desired), kept) !== undefined) throw failure;
  return failure;
}

async function forward(pair: PlacedPair, options: CopyForgeOptions): Promise<PatchedCopy> {
  const { virtual, target, host, budget, isUnserved = false } = pair;
  const { resource, content } = options.kind;
  const owner = options.owner.current;
  const forged = forgeHostObject(virtual, { ...options, kind: resource, content, target, owner, host });
  const input = asJson(forged);
  const applied = options.pipeline.apply('toHost', input, {
    objectNamespace: virtual.metadata.namespace ?? '',
    virtualObject: asJson(virtual),
    hostObject: host === undefined ? null : asJson(host),
    budget,
  });
  const patched = applied instanceof Promise ? await applied : applied;
  const copy = asObject(patched.object);
  const isPatched = content.afterPatches !== undefined && patched.object !== input;
  const desired = isPatched ? withMembers(copy, content.afterPatches(copy, virtual, host)) : copy;
  const { flows = options.pipeline, failed } = patched;
  return {
    desired,
    kinds: kindsToRecord(patched.references),
    patched,
    flows,
    kept: failed?.kept,
    isUnserved,
  };
}

/** What a host object alone translates back to. Rejects with a `PatchError` also for a reference that no virtual object has on the host. */
export async function translatedBack(
  host: KubeObject,
  name: NamespacedName,
  parts: ReverseParts,
  original?: KubeObject,
): Promise<KubeObject> {
  const { virtual, unresolved, failed } = await reverseCopy(host, name, parts, { original });
  const first = failed?.errors[0] ?? unresolved[0]?.error;
  if (first !== undefined) throw first;
  return virtual;
}

type ReverseParts = Pick<CopyForgeOptions, 'kind' | 'names' | 'labels' | 'pipeline'>;

async function reverseCopy(
  host: KubeObject,
  name: NamespacedName,
  parts: ReverseParts,
  { original, budget }: { readonly original: KubeObject | undefined; readonly budget?: Budget | undefined },
): Promise<Reversed & Pick<PatchedObject, 'failed' | 'unresolved'>> {
  const { object, unresolved, failed } = await parts.pipeline.apply('toVirtual', asJson(host), {
    objectNamespace: name.namespace,
    virtualObject: original === undefined ? null : asJson(original),
    hostObject: asJson(host),
    budget,
  });
  const { content } = parts.kind;
  return {
    virtual: backTranslate(asObject(object), name, { ...parts, content }, original),
    unresolved,
    kept: failed?.kept,
    ...(failed && { failed }),
  };
}

function withCurrentRevision(host: KubeObject, { metadata: { resourceVersion } }: KubeObject): KubeObject {
  const { annotations = {} } = host.metadata;
  const record = annotations[LAST_SYNCED];
  if (record === undefined || recordedRevision(record) === resourceVersion) return host;
  const current = { ...annotations, [LAST_SYNCED]: withRevision(record, resourceVersion) };
  return { ...host, metadata: { ...host.metadata, annotations: current } };
}

function withoutRecord(metadata: ObjectMeta): ObjectMeta {
  const annotations = { ...metadata.annotations };
  delete annotations[LAST_SYNCED];
  delete annotations[MANAGED_ANNOTATIONS];
  return { ...metadata, annotations };
}

/** Guarded by the version and the uid of `from`. */
export function virtualPatch({ content }: SyncedKind, from: KubeObject, to: KubeObject): JsonObject {
  const { uid = null, resourceVersion = null } = from.metadata;
  const metadata: JsonObject = { uid, resourceVersion };
  for (const member of ['annotations', 'labels'] as const) {
    const changes = objectPatch(from.metadata[member] ?? {}, to.metadata[member] ?? {});
    if (Object.keys(changes).length > 0) metadata[member] = changes;
  }
  const patch: JsonObject = { metadata };
  for (const member of content.members) {
    const [before, after] = [memberOf(from, member), memberOf(to, member)];
    if (!memberEquals(content, member, before, after)) patch[member] = valuePatch(before, after);
  }
  return patch;
}

/** A JSON merge patch for a value: it replaces lists. */
function valuePatch(before: JsonValue, after: JsonValue): JsonValue {
  return isJsonObject(before) && isJsonObject(after) ? objectPatch(before, after) : after;
}

function objectPatch(before: Readonly<JsonObject>, after: Readonly<JsonObject>): JsonObject {
  const patch: JsonObject = {};
  for (const [key, value] of Object.entries(after)) {
    const old = ownValue(before, key);
    if (!jsonEquals(old, value)) setOwn(patch, key, old === undefined ? value : valuePatch(old, value));
  }
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) setOwn(patch, key, null);
  return patch;
}
