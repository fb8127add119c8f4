/** Updates a pair: the three-way merge and its writes, in an order that loses no change. */

import { invariant } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { parseKey, type KubeObject } from '../../kube/object.ts';
import { isConflict } from '../../kube/status-error.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { CacheRefresh } from './cache-refresh.ts';
import type { DriftVerdict } from './guards/contention.ts';
import type { MergedCopy } from './copy-forge.ts';
import type { CopyCreation } from './create-copy.ts';
import type { Observation } from './decide/decide.ts';
import { needsWrite } from './write/diff.ts';
import { contestedNotice } from './notices.ts';
import { pairOf, recordOf, type PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import { DECIDE_AGAIN, UNCHANGED, type ReconcileResult } from './result.ts';
import type { StatusFlow } from './status-flow.ts';

const FROM_HOST = 'changed on the host';

/** An observation of a pair: both objects exist. */
type SeenPair = Observation & { readonly virtual: KubeObject; readonly host: KubeObject };

export interface PairUpdateParts {
  readonly memory: PairMemory;
  readonly status: StatusFlow;
  readonly caches: CacheRefresh;
  readonly creation: CopyCreation;
}

export class PairUpdate {
  readonly #options: ReconcilerOptions;
  readonly #parts: PairUpdateParts;

  constructor(options: ReconcilerOptions, parts: PairUpdateParts) {
    this.#options = options;
    this.#parts = parts;
  }

  async update(observation: Observation): Promise<ReconcileResult> {
    const seen = asPair(observation);
    const { host, virtual, key } = seen;
    const { contention, forge, arrivals } = this.#options;
    const contestedMs = this.#contestedWaitMs(seen);
    if (contestedMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs: contestedMs };
    if (await this.#parts.caches.isVirtualBehind(virtual, host)) return DECIDE_AGAIN;
    const record = recordOf(host);
    const merged = await forge.merged({ ...pairOf(seen), host }, arrivals.of(key, record));
    const uncertainMs = merged.isUncertain ? arrivals.uncertainWaitMs(key, record) : 0;
    if (uncertainMs > 0)
      return { outcome: 'waiting', reason: 'change is in progress', waitMs: uncertainMs, isTransient: true };
    this.#parts.memory.reportNotAllowed(seen, merged.notAllowed);
    const isDrift = this.#isOverwritten(seen, merged);
    const verdict = isDrift ? contention.noteDrift(key) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) return this.#waitWhileContested(seen, verdict);
    const result = await this.#write(seen, merged);
    if (!isDrift) contention.noteChange(key);
    return result;
  }

  /** Writes the host first. Its record lists the values on their way to the virtual side, so neither a crash nor a concurrent edit loses
   * them. The virtual write completes the sync.
   */
  async #write(seen: SeenPair, merged: MergedCopy): Promise<ReconcileResult> {
    const { kind, arrivals, references, host: side } = this.#options;
    const { host, key } = seen;
    const reason = merged.correctsDrift ? 'differs from the virtual object' : 'bookkeeping';
    if (merged.host !== undefined && kind.needsRecreation(merged.host, host))
      return this.#parts.creation.deleteToRecreate(seen, host);
    // Before the write, because its response may be lost.
    if (merged.host !== undefined && merged.virtualPatch !== undefined)
      arrivals.note(key, recordOf(merged.host), 'due');
    const stored = merged.host && (await side.writer.update(merged.host, reason));
    references.recordReferences(key, merged.references);
    if (merged.virtualPatch !== undefined)
      return this.#writeVirtual(seen, { merged, patch: merged.virtualPatch, copy: stored ?? host });
    return this.#finishHost(seen, merged, { copy: stored ?? host, reason });
  }

  async #finishHost(
    seen: SeenPair,
    merged: MergedCopy,
    { copy, reason }: { readonly copy: KubeObject; readonly reason: string },
  ): Promise<ReconcileResult> {
    const { memory, status } = this.#parts;
    const { key, virtual } = seen;
    if (merged.hasIncoming) this.#options.arrivals.note(key, recordOf(copy), 'arrived');
    const copied = await status.copy(seen, virtual, copy);
    if (copied !== undefined) return copied;
    memory.remember(seen, virtual, copy);
    if (merged.host !== undefined) return memory.rerunAfterWrite(key, { outcome: 'updated', reason });
    memory.endReruns(key);
    return UNCHANGED;
  }

  async #writeVirtual(
    seen: SeenPair,
    {
      merged,
      patch,
      copy,
    }: { readonly merged: MergedCopy; readonly patch: JsonObject; readonly copy: KubeObject },
  ): Promise<ReconcileResult> {
    const { memory, status } = this.#parts;
    const patched = await this.#patchVirtual(seen, patch, recordOf(merged.host ?? seen.host));
    const result = { outcome: 'updated', reason: FROM_HOST } as const;
    // The virtual cluster stored another state than was sent, for example because of admission. That is a new change to sync.
    if (patched !== undefined && !isStoredAs(this.#options.kind, patched, merged.virtual))
      return { ...result, waitMs: 0 };
    const copied = await status.copy(seen, patched ?? seen.virtual, copy);
    if (copied !== undefined) return copied;
    memory.remember(seen, patched ?? seen.virtual, copy);
    return memory.rerunAfterWrite(seen.key, result);
  }

  async #patchVirtual(
    { key, virtual }: SeenPair,
    body: JsonObject,
    record: string | undefined,
  ): Promise<KubeObject | undefined> {
    const { arrivals, virtual: side } = this.#options;
    try {
      const stored = await side.writer.mergePatch(parseKey(key), body, FROM_HOST);
      if (stored !== undefined) arrivals.note(key, record, 'arrived');
      return stored;
    } catch (error) {
      // Without a response, the patch may have been applied; then the virtual object shows its values. That it was applied and reverted
      // meanwhile is far less likely than that it was lost.
      arrivals.note(key, record, 'due');
      if (isConflict(error)) await this.#parts.caches.readVirtual(virtual);
      throw error;
    }
  }

  /** Another client changed our data on the host since our last write, and the virtual object did not change. */
  #isOverwritten(seen: Observation, { correctsDrift }: MergedCopy): boolean {
    const { memory } = this.#parts;
    return correctsDrift && memory.isVirtualUnchanged(seen) && !memory.isHostUnchanged(seen);
  }

  /** Only corrections are delayed. Changes of the virtual object or of its references are written immediately. */
  #contestedWaitMs(seen: Observation): number {
    const { references, contention } = this.#options;
    const isCorrection = this.#parts.memory.isVirtualUnchanged(seen) && !references.isStale(seen.key);
    return isCorrection ? contention.waitMs(seen.key) : 0;
  }

  #waitWhileContested(seen: SeenPair, { waitMs, isReportable }: DriftVerdict): ReconcileResult {
    if (isReportable) this.#parts.memory.report(seen, contestedNotice(seen.host, waitMs));
    return { outcome: 'waiting', reason: 'Contested', waitMs };
  }
}

function asPair(seen: Observation): SeenPair {
  const { virtual, host } = seen;
  invariant(virtual && host, 'both objects exist when a pair is updated');
  return { ...seen, virtual, host };
}

/** True when the API server stored the object as it was sent. */
function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}
