/** Updates a pair: the three-way merge and its writes, in an order that loses no change. */

import { invariant } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { parseKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { isConflict } from '../../kube/status-error.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { CacheRefresh } from './cache-refresh.ts';
import type { DriftVerdict, KeyVerdict } from './guards/contention.ts';
import type { MergedCopy } from './copy-forge.ts';
import type { CopyCreation } from './create-copy.ts';
import type { Observation } from './decide/decide.ts';
import { needsWrite } from './write/diff.ts';
import { contestedKeyNotice, contestedNotice, echoNotice } from './notices.ts';
import { pairOf, recordOf, type PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import { DECIDE_AGAIN, UNCHANGED, type ReconcileResult } from './result.ts';
import type { StatusFlow } from './status-flow.ts';

const FROM_HOST = 'changed on the host';
/** While the virtual object keeps what another syncer has copied back, for want of what was there before. */
const ECHO_RECHECK_MS = 1000;

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
    const { contention, keyContests, arrivals } = this.#options;
    const contestedMs = this.#contestedWaitMs(seen);
    if (contestedMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs: contestedMs };
    if (await this.#parts.caches.isVirtualBehind(virtual, host)) return DECIDE_AGAIN;
    const record = recordOf(host);
    const held = keyContests.held(key);
    const merged = await this.#merged(seen, held);
    const uncertainMs = merged.isUncertain ? arrivals.uncertainWaitMs(key, record) : 0;
    if (uncertainMs > 0)
      return { outcome: 'waiting', reason: 'change is in progress', waitMs: uncertainMs, isTransient: true };
    this.#parts.memory.reportNotAllowed(seen, merged.notAllowed);
    const isDrift = this.#isOverwritten(seen, merged);
    const isEchoed = merged.echo !== undefined;
    const verdict = isDrift ? contention.noteDrift(key, isEchoed) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) return this.#waitWhileContested(seen, merged, verdict);
    if (merged.echo !== undefined) this.#parts.memory.report(seen, echoNotice(virtual, merged.echo));
    const contested = keyContests.note(key, merged.flows);
    if (contested.length > 0) return this.#withoutContested(seen, contested);
    const result = await this.#write(seen, merged);
    if (!isDrift && result.outcome !== 'unchanged') contention.noteChange(key);
    return this.#untilDue(key, result, held);
  }

  /** Both sides keep rewriting these annotations or labels. They are left alone, and the rest is synced. */
  async #withoutContested(seen: SeenPair, contested: readonly KeyVerdict[]): Promise<ReconcileResult> {
    const { memory } = this.#parts;
    for (const { id, waitMs, isReportable } of contested)
      if (isReportable) memory.report(seen, contestedKeyNotice(seen, id, waitMs));
    const held = this.#options.keyContests.held(seen.key);
    const result = await this.#write(seen, await this.#merged(seen, held));
    return this.#untilDue(seen.key, result, held);
  }

  /** The key is requeued for annotations and labels that were left alone. */
  #untilDue(key: ObjectKey, result: ReconcileResult, held: ReadonlyMap<string, number>): ReconcileResult {
    if (held.size === 0) return result;
    this.#parts.memory.keepOpen(key);
    const waitMs = Math.ceil(Math.min(result.waitMs ?? Infinity, ...held.values()));
    return result.outcome === 'unchanged'
      ? { outcome: 'waiting', reason: 'Contested', waitMs }
      : { ...result, waitMs };
  }

  #merged(seen: SeenPair, held: ReadonlyMap<string, number>): Promise<MergedCopy> {
    const { forge, arrivals, contention } = this.#options;
    const { key, host } = seen;
    return forge.merged({ ...pairOf(seen), host }, arrivals.of(key, recordOf(host)), {
      agreed: this.#parts.memory.agreed(key, seen.virtual),
      restoresEchoes: contention.waitMs(key) === 0,
      held: new Set(held.keys()),
    });
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
    // Values that another syncer has copied back are left: their delay has not passed, or the earlier values are unknown.
    memory.remember(seen, virtual, copy, merged.echo !== undefined);
    if (merged.host !== undefined) return memory.rerunAfterWrite(key, { outcome: 'updated', reason });
    memory.endReruns(key);
    if (merged.echo !== undefined)
      return { outcome: 'waiting', reason: 'Contested', waitMs: ECHO_RECHECK_MS };
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
    const isEchoLeft = (merged.echo?.left.length ?? 0) > 0;
    memory.remember(seen, patched ?? seen.virtual, copy, merged.echo !== undefined);
    // The host follows the restored values in the next reconcile: they may translate to others than before.
    if (merged.echo !== undefined) return { ...result, waitMs: isEchoLeft ? ECHO_RECHECK_MS : 0 };
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
      if (stored !== undefined) {
        arrivals.note(key, record, 'arrived');
        this.#options.patched(stored);
      }
      return stored;
    } catch (error) {
      // Without a response, the patch may have been applied; then the virtual object shows its values. That it was applied and reverted
      // meanwhile is far less likely than that it was lost.
      arrivals.note(key, record, 'due');
      if (isConflict(error)) await this.#parts.caches.readVirtual(virtual);
      throw error;
    }
  }

  /** Another client changed our data since our last write: on the host, or on the virtual side to what the host has; no user changed it. */
  #isOverwritten(seen: Observation, { correctsDrift, echo }: MergedCopy): boolean {
    const { memory } = this.#parts;
    const isDamaged = correctsDrift || (seen.host !== undefined && recordOf(seen.host) === undefined);
    const isOverwritten = echo !== undefined || (isDamaged && !memory.isHostUnchanged(seen));
    return isOverwritten && memory.isVirtualUnchanged(seen);
  }

  /** Only corrections are delayed. Changes of the virtual object or of its references are written immediately. */
  #contestedWaitMs(seen: Observation): number {
    const { references, contention } = this.#options;
    const isCorrection = this.#parts.memory.isVirtualUnchanged(seen) && !references.isStale(seen.key);
    return isCorrection ? contention.waitMs(seen.key) : 0;
  }

  #waitWhileContested(
    seen: SeenPair,
    { echo }: MergedCopy,
    { waitMs, isReportable }: DriftVerdict,
  ): ReconcileResult {
    const notice =
      echo === undefined ? contestedNotice(seen.host, waitMs) : echoNotice(seen.virtual, echo, waitMs);
    if (isReportable) this.#parts.memory.report(seen, notice);
    return { outcome: 'waiting', reason: 'Contested', note: notice.note, waitMs };
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
