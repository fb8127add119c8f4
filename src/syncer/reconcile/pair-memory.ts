/** In-memory state of the pairs that this process has written, and the Events that it reports for them. */

import { invariant } from '../../base/errors.ts';
import type { KubeObject, ObjectKey } from '../../kube/object.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import type { ObjectReference } from '../patch/types.ts';
import { LAST_SYNCED } from '../translate/metadata/bookkeeping.ts';
import type { Pair } from './copy-forge.ts';
import type { Observation } from './decide/decide.ts';
import { notAllowedNotice } from './notices.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import type { ReconcileResult } from './result.ts';
import { isPairUnchanged, syncedPair } from './decide/synced-pairs.ts';

/** Limit for an expression that reads the host object and changes it in every run. */
const RERUNS_MAX = 4;

export class PairMemory {
  readonly #options: ReconcilerOptions;
  /** Keys whose expressions read a host object that our own write has changed, with the number of consecutive runs. */
  readonly #reruns = new Map<ObjectKey, number>();

  /** Uid of an object, and why it was ignored at its last reconcile. */
  readonly #ignored = new Map<ObjectKey, string>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Nothing has changed since the pair was written, so no update is needed. */
  isUnchanged(seen: Observation): boolean {
    const { references, pairs } = this.#options;
    if (references.isStale(seen.key) || this.#reruns.has(seen.key)) return false;
    return isPairUnchanged(pairs.get(seen.key), seen);
  }

  isVirtualUnchanged({ key, virtual }: Observation): boolean {
    return this.#options.pairs.get(key)?.virtualVersion === virtual?.metadata.resourceVersion;
  }

  isHostUnchanged({ key, host }: Observation): boolean {
    return this.#options.pairs.get(key)?.hostVersion === host?.metadata.resourceVersion;
  }

  remember(seen: Observation, virtual: KubeObject, host: KubeObject): void {
    const notice = this.#options.kind.noticeOf(virtual, seen.service);
    if (notice !== undefined) this.report(seen, notice);
    this.#ignored.delete(seen.key);
    this.#options.pairs.set(seen.key, syncedPair(virtual, host, seen.service));
  }

  forget(key: ObjectKey): void {
    const { pairs, recreation, takeOverBackoff, contention, arrivals, references } = this.#options;
    for (const memory of [recreation, takeOverBackoff, contention, arrivals]) memory.forget(key);
    pairs.delete(key);
    this.#ignored.delete(key);
    this.#reruns.delete(key);
    references.clearReferences(key);
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

export function pairOf({ virtual, target, host }: Observation): Pair {
  invariant(virtual && target, 'an object that is copied exists and has a target');
  return { virtual, target, host };
}

export function recordOf({ metadata: { annotations } }: KubeObject): string | undefined {
  return annotations?.[LAST_SYNCED];
}
