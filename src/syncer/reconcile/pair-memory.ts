/** In-memory state of the pairs that this process has written, and the Events that it reports for them. */

import { objectKey, type KubeObject, type ObjectKey, type StringMap } from '../../kube/object.ts';
import type { EventRecorder, Informer, RecordedEvent } from '../../kube/types.ts';
import type { ObjectReference } from '../patch/types.ts';
import type { Observation } from './decide.ts';
import { notAllowedNotice } from './notices.ts';
import type { ReferenceRecords } from './environment.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { ReconcileResult } from './controller.ts';
import { jsonEquals, type JsonObject } from '../../base/json.ts';
import { isBookkeepingAnnotation } from '../translate/bookkeeping.ts';
import { recordOf } from '../translate/last-synced.ts';
import type { MergeMemory } from '../translate/merge.ts';

/** A pair at its last sync. The objects are those of the caches, so they take no memory of their own. */
export interface SyncedPair {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
  /** Version of the Service at that time; '' for none. */
  readonly serviceVersion: string;
  /** Both objects when they were in step last; another pair of objects only while something of another syncer is left in `virtual`. */
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** The last record of the copy, before another syncer replaced it. */
  readonly record: string | undefined;
  /** Something is left to do once a delay has passed. */
  readonly isOpen: boolean;
}

export type SyncedPairs = Map<ObjectKey, SyncedPair>;

/** True when both objects and the Service are exactly those of the last sync. */
export function isPairUnchanged(pair: SyncedPair | undefined, seen: Observation): boolean {
  return (
    pair !== undefined &&
    !pair.isOpen &&
    isSameVersion(pair.virtual, seen.virtual) &&
    isSameVersion(pair.host, seen.host) &&
    (seen.service?.metadata.resourceVersion ?? '') === pair.serviceVersion
  );
}

export function isSameVersion(a: KubeObject, b: KubeObject | undefined): boolean {
  return a.metadata.resourceVersion === b?.metadata.resourceVersion && a.metadata.uid === b?.metadata.uid;
}

/**
 * True if the virtual object differs from that of the last sync only by what another syncer has copied back from the host copy: that is no
 * change of a user.
 */
export function isEchoOnly(pair: SyncedPair, { metadata, ...content }: KubeObject): boolean {
  const { metadata: before, ...contentBefore } = pair.virtual;
  if (metadata.uid !== before.uid || !jsonEquals(content as JsonObject, contentBefore as JsonObject))
    return false;
  return (
    isMapEcho(metadata.annotations, [before.annotations, pair.host.metadata.annotations]) &&
    isMapEcho(metadata.labels, [before.labels, pair.host.metadata.labels])
  );
}

function isMapEcho(
  now: StringMap = {},
  [before = {}, host = {}]: readonly [StringMap | undefined, StringMap | undefined],
): boolean {
  const keys = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...keys].every(
    (key) => now[key] === before[key] || isBookkeepingAnnotation(key) || now[key] === host[key],
  );
}

/** Limit for an expression that reads the host object and changes it in every run. */
const RERUNS_MAX = 4;

export interface PairMemoryOptions {
  readonly kind: SyncedKind;
  readonly pairs: SyncedPairs;
  readonly host: { readonly cache: Informer };
  readonly virtual: { readonly cache: Informer };
  /** An expression towards the host reads `context.hostObject`. */
  readonly readsHostObject: boolean;
  readonly recorder: EventRecorder;
  readonly references: ReferenceRecords;
}

export class PairMemory {
  readonly #options: PairMemoryOptions;
  /** Keys whose expressions read a host object that our own write has changed, with the number of consecutive runs. */
  readonly #reruns = new Map<ObjectKey, number>();

  /** Uid of an object, and why it was ignored at its last reconcile. */
  readonly #ignored = new Map<ObjectKey, string>();

  constructor(options: PairMemoryOptions) {
    this.#options = options;
  }

  /** Nothing has changed since the pair was written, so no update is needed. */
  isUnchanged(seen: Observation): boolean {
    const { references, pairs } = this.#options;
    if (references.isStale(seen.key) || this.#reruns.has(seen.key)) return false;
    return isPairUnchanged(pairs.get(seen.key), seen);
  }

  /** No user has changed the virtual object. What another syncer has copied back from the host copy does not count. */
  isVirtualUnchanged({ key, virtual }: Observation): boolean {
    const pair = this.#options.pairs.get(key);
    if (pair === undefined || virtual === undefined) return false;
    return isSameVersion(pair.virtual, virtual) || isEchoOnly(pair, virtual);
  }

  isHostUnchanged({ key, host }: Observation): boolean {
    const pair = this.#options.pairs.get(key);
    return pair !== undefined && isSameVersion(pair.host, host);
  }

  /** Both objects when they were in step last, and the last record, unless `virtual` is another object of that name. */
  lastSync(key: ObjectKey, virtual: KubeObject): Pick<MergeMemory, 'agreed' | 'record'> {
    const pair = this.#options.pairs.get(key);
    if (pair === undefined || pair.virtual.metadata.uid !== virtual.metadata.uid)
      return { agreed: undefined };
    const { agreed, record } = pair;
    return { agreed: agreed?.virtual.metadata.uid === virtual.metadata.uid ? agreed : undefined, record };
  }

  /** `isEchoed`: the virtual object keeps, for now, what another syncer has copied back. */
  remember(seen: Observation, storedVirtual: KubeObject, storedHost: KubeObject, isEchoed = false): void {
    const { kind, pairs } = this.#options;
    const virtual = cachedAs(this.#options.virtual.cache, storedVirtual);
    const host = cachedAs(this.#options.host.cache, storedHost);
    const before = this.lastSync(seen.key, virtual);
    const notice = kind.noticeOf(virtual, seen.service);
    if (notice !== undefined) this.report(seen, notice);
    this.#ignored.delete(seen.key);
    pairs.set(seen.key, {
      virtual,
      host,
      serviceVersion: seen.service?.metadata.resourceVersion ?? '',
      agreed: isEchoed ? before.agreed : { virtual, host },
      record: recordOf(host) ?? before.record,
      isOpen: isEchoed,
    });
  }

  /** Something is left to do once a delay has passed, although neither side changes. */
  keepOpen(key: ObjectKey): void {
    const pair = this.#options.pairs.get(key);
    if (pair !== undefined) this.#options.pairs.set(key, { ...pair, isOpen: true });
  }

  forget(key: ObjectKey): void {
    this.#options.pairs.delete(key);
    this.#ignored.delete(key);
    this.#reruns.delete(key);
  }

  /** Expressions that read the host object run again after each of our writes, until the result is stable. */
  rerunAfterWrite(key: ObjectKey, result: ReconcileResult): ReconcileResult {
    const runs = this.#reruns.get(key) ?? 0;
    if (!this.#options.readsHostObject || runs >= RERUNS_MAX) {
      this.#reruns.delete(key);
      return result;
    }
    this.#reruns.set(key, runs + 1);
    return { ...result, waitMs: 0 };
  }

  endReruns(key: ObjectKey): void {
    this.#reruns.delete(key);
  }

  report({ virtual }: Observation, notice: RecordedEvent): void {
    if (virtual !== undefined) this.#options.recorder.event(virtual, this.#options.kind.resource, notice);
  }

  /** Reports each change of the reason once. */
  reportIgnored(seen: Observation, reason: string): void {
    const ignored = `${seen.virtual?.metadata.uid} ${reason}`;
    if (this.#ignored.get(seen.key) === ignored) return;
    this.#ignored.set(seen.key, ignored);
    const notice = this.#options.kind.noticeOfGate(reason);
    if (notice !== undefined) this.report(seen, notice);
  }

  reportNotAllowed(seen: Observation, references: readonly ObjectReference[]): void {
    for (const reference of references) this.report(seen, notAllowedNotice(reference));
  }
}

/** The object of the cache, where that is the same: a second one would take memory for as long as the pair exists. */
function cachedAs(cache: Informer, object: KubeObject): KubeObject {
  const cached = cache.get(objectKey(object));
  return cached !== undefined && isSameVersion(cached, object) ? cached : object;
}
