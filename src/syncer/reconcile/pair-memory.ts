/** What this process remembers of the pairs that it wrote, and the Events that it reports on them. */

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

/** An expression that reads the host object and changes it in every run would run without end. */
const RERUNS_MAX = 4;

export class PairMemory {
  readonly #options: ReconcilerOptions;
  /** Keys whose expressions read a host object that our own write has changed since, with the number of runs in a row. */
  readonly #reruns = new Map<ObjectKey, number>();

  /** Why an object was ignored when it was last decided. */
  readonly #ignored = new Map<ObjectKey, string>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Nothing has changed since the pair was written, so nothing has to be decided. */
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

  /** Expressions that read the host object run again after each of our own writes, until they change nothing. */
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

  /** Once for each reason, however often the object is decided. */
  reportIgnored(seen: Observation, reason: string): void {
    if (this.#ignored.get(seen.key) === reason) return;
    this.#ignored.set(seen.key, reason);
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
