/** Keeps a pair in step: merges both sides, writes the host and then the virtual object, and backs off from others that overwrite either. */

import { invariant, type PatchError } from '../../base/errors.ts';
import { isTerminating, parseKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { isConflict } from '../../kube/status-error.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import { KEEPING_REASONS, type SyncedKind } from '../kinds/kind.ts';
import { Budget } from '../../expressions/local/budget.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';
import { needsWrite } from '../translate/content.ts';
import { recordOf } from '../translate/last-synced.ts';
import { isVirtualBehind, readVirtual } from './cache-refresh.ts';
import { STALE, UNCHANGED, type Done, type ReconcileResult } from './controller.ts';
import { virtualPatch, type ForgedCopy, type MergedCopy, type PlacedPair } from './copy.ts';
import { deleteToRecreate } from './copy-deletion.ts';
import type { Observation } from './decide.ts';
import {
  AUTOMATIC_OVERWRITES_MAX,
  correctionWaitMs,
  heldKeys,
  noteChange,
  noteKeyChanges,
  OVERWRITES_MAX,
  type DriftVerdict,
  type KeyVerdict,
} from './guards.ts';
import type { KindSync } from './kind-sync.ts';
import {
  alteredNotice,
  contestedKeyNotice,
  contestedNotice,
  contestedStatusNotice,
  echoNotice,
  notAllowedNotice,
} from './notices.ts';
import { changedPaths } from './object-diff.ts';
import { cachedAs } from './object-state.ts';

const FROM_HOST = 'changed on the host';
/** While the virtual object keeps what another syncer has copied back, for want of what was there before. */
const ECHO_RECHECK_MS = 1000;

/** Admission has removed the record of the sync. */
const RECORD_PATH = `metadata.annotations["${LAST_SYNCED}"]`;

type SeenPair = Observation & PlacedPair & { readonly host: KubeObject };

export async function updatePair(sync: KindSync, observation: Observation): Promise<ReconcileResult> {
  const seen = asPair(observation);
  const { host, virtual, key } = seen;
  const state = sync.states.of(key);
  const record = recordOf(host);
  state.noteRecord(virtual, record);
  const contestedMs = contestedWaitMs(sync, seen);
  if (contestedMs > 0) return { outcome: 'contested', reason: 'Contested', waitMs: contestedMs };
  if (await isVirtualBehind(sync, virtual, host)) return STALE;
  const held = heldKeys(state.keyContests, sync.nowMs());
  const merged = await mergedCopy(sync, seen, held);
  const uncertainMs = merged.isUncertain ? state.arrivals.uncertainWaitMs(sync.nowMs(), record) : 0;
  if (uncertainMs > 0) return { outcome: 'again', reason: 'change is in progress', waitMs: uncertainMs };
  sync.report(seen.virtual, ...merged.notAllowed.map(notAllowedNotice));
  const overwrites = overwritesOf(sync, seen, merged);
  const isDrift = overwrites !== undefined;
  const verdict = isDrift ? state.noteDrift(sync.nowMs(), overwrites) : undefined;
  if (verdict !== undefined && verdict.waitMs > 0) return waitWhileContested(sync, seen, merged, verdict);
  if (merged.echo !== undefined) sync.report(seen.virtual, echoNotice(virtual, merged.echo));
  const { contests, verdicts } = noteKeyChanges(state.keyContests, merged.flows, sync.nowMs());
  state.keyContests = contests;
  if (verdicts.length > 0) return withoutContested(sync, seen, verdicts);
  const result = await writePair(sync, seen, merged);
  if (!isDrift && result.outcome !== 'unchanged') state.contest = noteChange(state.contest);
  return unlessFailed(sync, key, untilDue(sync, key, result, held), merged.failure);
}

/** Both sides keep rewriting these annotations or labels. They are left alone, and the rest is synced. */
async function withoutContested(
  sync: KindSync,
  seen: SeenPair,
  contested: readonly KeyVerdict[],
): Promise<ReconcileResult> {
  for (const { id, waitMs, isReportable } of contested)
    if (isReportable) sync.report(seen.virtual, contestedKeyNotice(seen, id, waitMs));
  const held = heldKeys(sync.states.of(seen.key).keyContests, sync.nowMs());
  const merged = await mergedCopy(sync, seen, held);
  const result = untilDue(sync, seen.key, await writePair(sync, seen, merged), held);
  return unlessFailed(sync, seen.key, result, merged.failure);
}

/** The key is requeued for annotations and labels that were left alone. */
function untilDue(
  sync: KindSync,
  key: ObjectKey,
  result: ReconcileResult,
  held: ReadonlyMap<string, number>,
): ReconcileResult {
  if (held.size === 0) return result;
  sync.states.of(key).isOpen = true;
  const waitMs = Math.ceil(Math.min(result.waitMs ?? Infinity, ...held.values()));
  return result.outcome === 'unchanged'
    ? { outcome: 'contested', reason: 'Contested', waitMs }
    : { ...result, waitMs };
}

function mergedCopy(sync: KindSync, seen: SeenPair, held: ReadonlyMap<string, number>): Promise<MergedCopy> {
  const { key, host } = seen;
  const state = sync.states.of(key);
  return sync.forge.merged(seen, state.arrivals.of(recordOf(host)), {
    ...state.lastSync(seen.virtual),
    restoresEchoes: correctionWaitMs(state.contest, sync.nowMs()) === 0,
    held: new Set(held.keys()),
  });
}

/** Writes the host first. Its record lists the values on their way to the virtual side, so neither a crash nor a concurrent edit alone loses them.
 * The virtual write completes the sync. */
async function writePair(sync: KindSync, seen: SeenPair, merged: MergedCopy): Promise<ReconcileResult> {
  const { kind, writers } = sync;
  const { host, key } = seen;
  const reason = merged.correctsDrift ? 'differs from the virtual object' : 'bookkeeping';
  if (merged.host !== undefined && kind.needsRecreation(merged.host, host)) {
    // A change of the host would be lost with the copy.
    if (merged.virtual !== undefined) await patchVirtual(sync, seen, merged.virtual, recordOf(host));
    return deleteToRecreate(sync, seen, host, merged.host);
  }
  // Before the write, because its response may be lost.
  if (merged.host !== undefined && merged.virtual !== undefined)
    sync.states.of(key).arrivals.note(recordOf(merged.host), 'due');
  if (merged.host !== undefined) sync.states.of(key).noteReplaced(recordOf(host));
  const stored = merged.host && (await writers.host.update(merged.host, reason));
  sync.recordReferences(key, merged.references);
  const copy = stored ?? host;
  const result = await (merged.virtual === undefined
    ? finishHost(sync, seen, merged, { copy, reason })
    : writeVirtual(sync, seen, merged, merged.virtual, copy));
  return merged.host === undefined ? result : unlessAltered(sync, key, result, merged.host, stored);
}

async function finishHost(
  sync: KindSync,
  seen: SeenPair,
  merged: MergedCopy,
  { copy, reason }: { readonly copy: KubeObject; readonly reason: string },
): Promise<ReconcileResult> {
  const { key, virtual } = seen;
  const state = sync.states.of(key);
  if (merged.hasIncoming) state.arrivals.note(recordOf(copy), 'arrived');
  const copied = await copyStatus(sync, seen, virtual, copy);
  if (copied !== undefined) return copied;
  // Values that another syncer has copied back are left: their delay has not passed, or the earlier values are unknown.
  remember(sync, seen, virtual, copy, merged.echo !== undefined);
  if (merged.host !== undefined) return rerunAfterWrite(sync, key, { outcome: 'updated', reason });
  state.reruns = 0;
  if (merged.echo !== undefined)
    return { outcome: 'contested', reason: 'Contested', waitMs: ECHO_RECHECK_MS };
  return UNCHANGED;
}

async function writeVirtual(
  sync: KindSync,
  seen: SeenPair,
  merged: MergedCopy,
  wanted: KubeObject,
  copy: KubeObject,
): Promise<ReconcileResult> {
  const patched = await patchVirtual(sync, seen, wanted, recordOf(merged.host ?? seen.host));
  const result = { outcome: 'updated', reason: FROM_HOST } as const;
  const isAlteredByAdmission = patched !== undefined && !isStoredAs(sync.kind, patched, wanted);
  if (isAlteredByAdmission) return { ...result, waitMs: 0 };
  const copied = await copyStatus(sync, seen, patched ?? seen.virtual, copy);
  if (copied !== undefined) return copied;
  const isEchoLeft = (merged.echo?.left.length ?? 0) > 0;
  remember(sync, seen, patched ?? seen.virtual, copy, merged.echo !== undefined);
  // A label from the host may decide that the object is not synced, and our own write causes no event.
  if (patched !== undefined && !isGateOpen(sync, seen, patched)) return { ...result, waitMs: 0 };
  // The host follows the restored values in the next reconcile: they may translate to others than before.
  if (merged.echo !== undefined) return { ...result, waitMs: isEchoLeft ? ECHO_RECHECK_MS : 0 };
  return rerunAfterWrite(sync, seen.key, result);
}

function isGateOpen(sync: KindSync, { service }: Observation, virtual: KubeObject): boolean {
  const { kind, decide } = sync;
  const gate = kind.gate(virtual, service, decide);
  return gate === undefined || KEEPING_REASONS.has(gate);
}

async function patchVirtual(
  sync: KindSync,
  { key, virtual }: SeenPair,
  wanted: KubeObject,
  record: string | undefined,
): Promise<KubeObject | undefined> {
  const { arrivals } = sync.states.of(key);
  const body = virtualPatch(sync.kind, virtual, wanted);
  try {
    const stored = await sync.writers.virtual.mergePatch(parseKey(key), body, FROM_HOST);
    if (stored !== undefined) {
      arrivals.note(record, 'arrived');
      sync.patched(stored);
    }
    return stored;
  } catch (error) {
    // Without a response it may have been applied, and the virtual object shows it; applied and reverted is far less likely than lost.
    arrivals.note(record, 'due');
    if (isConflict(error)) await readVirtual(sync, virtual);
    throw error;
  }
}

/** How many times within a minute others may do what they did since our last write. Undefined: nothing, or a user changed the virtual object. */
function overwritesOf(
  sync: KindSync,
  seen: SeenPair,
  { correctsDrift, echo, host, virtual }: MergedCopy,
): number | undefined {
  const state = sync.states.of(seen.key);
  if (!state.isVirtualUnchanged(seen.virtual)) return undefined;
  if (echo !== undefined) return AUTOMATIC_OVERWRITES_MAX;
  // What flows to the virtual side is in agreement then, unless admission changes it each time.
  if (state.isAltered(seen.host) && virtual !== undefined) return OVERWRITES_MAX;
  if (state.isAltered(seen.host) && host !== undefined) return AUTOMATIC_OVERWRITES_MAX;
  const isDamaged = correctsDrift || recordOf(seen.host) === undefined;
  return isDamaged && !state.isHostUnchanged(seen.host) ? OVERWRITES_MAX : undefined;
}

/** Only corrections are delayed. Changes of the virtual object or of its references are written immediately. */
function contestedWaitMs(sync: KindSync, seen: Observation): number {
  const state = sync.states.of(seen.key);
  const waitMs = correctionWaitMs(state.contest, sync.nowMs());
  if (waitMs === 0 || sync.references.isStale(seen.key)) return 0;
  return state.isVirtualUnchanged(seen.virtual) ? waitMs : 0;
}

function waitWhileContested(
  sync: KindSync,
  seen: SeenPair,
  merged: MergedCopy,
  { waitMs, isReportable }: DriftVerdict,
): ReconcileResult {
  const notice = contestNotice(sync, seen, merged, waitMs);
  if (isReportable) sync.report(seen.virtual, notice);
  return { outcome: 'contested', reason: 'Contested', note: notice.note, waitMs };
}

function contestNotice(
  sync: KindSync,
  seen: SeenPair,
  { echo, host, virtual }: MergedCopy,
  waitMs: number,
): RecordedEvent {
  if (echo !== undefined) return echoNotice(seen.virtual, echo, waitMs);
  if (!sync.states.of(seen.key).isAltered(seen.host)) return contestedNotice(seen.host, waitMs);
  const paths =
    virtual === undefined ? changedPaths(host ?? seen.host, seen.host) : changedPaths(virtual, seen.virtual);
  return alteredNotice(seen.host, paths.length === 0 ? [RECORD_PATH] : paths);
}

function asPair(seen: Observation): SeenPair {
  const { virtual, host, target } = seen;
  invariant(virtual && host && target, 'both objects exist when a pair is updated');
  return { ...seen, virtual, host, target, budget: new Budget() };
}

// What follows a write of the copy: the status is copied, the pair remembered, and the key reconciled again where something is left to do.

/** A whole copy was written: created, or in place of what was there. `kept`: what a dry run leaves there. */
export async function finishCopy(
  sync: KindSync,
  seen: Observation & Pick<PlacedPair, 'virtual'>,
  { isEchoed, failure }: ForgedCopy,
  written: { readonly sent: KubeObject; readonly stored: KubeObject | undefined; readonly kept: KubeObject },
  result: Done,
): Promise<ReconcileResult> {
  const { key, virtual } = seen;
  const { sent, stored, kept } = written;
  // The virtual object may have the status of an earlier copy, and a new virtual object has none yet.
  if ((await copyStatus(sync, seen, virtual, stored ?? kept)) === undefined)
    remember(sync, seen, virtual, stored ?? kept, isEchoed);
  if (isEchoed) return { ...result, waitMs: 0 };
  return unlessFailed(
    sync,
    key,
    unlessAltered(sync, key, rerunAfterWrite(sync, key, result), sent, stored),
    failure,
  );
}

function remember(
  sync: KindSync,
  seen: Observation,
  virtual: KubeObject,
  host: KubeObject,
  isEchoed = false,
): void {
  const pair = {
    virtual: cachedAs(sync.virtual, virtual),
    host: cachedAs(sync.host, host),
  };
  sync.report(seen.virtual, ...sync.kind.noticesOf(pair.virtual));
  sync.states.of(seen.key).remember(pair, seen, isEchoed);
}

/** Copies the status of the host copy in a separate write. `virtual`, `host`: their state after the other writes. Undefined: it has it. */
async function copyStatus(
  sync: KindSync,
  seen: Observation,
  virtual: KubeObject,
  host: KubeObject,
): Promise<ReconcileResult | undefined> {
  const { kind } = sync;
  // The address of a copy that is being deleted is on its way out, and a virtual object that is being deleted gets nothing new.
  const patch = isTerminating(virtual)
    ? undefined
    : kind.statusPatch(virtual, isTerminating(host) ? undefined : host);
  if (patch === undefined) return undefined;
  // The pair was in sync with this state of the host, so another client of the virtual cluster has written the status since.
  const state = sync.states.of(seen.key);
  const verdict = state.isHostUnchanged(host) ? state.noteDrift(sync.nowMs()) : undefined;
  if (verdict !== undefined && verdict.waitMs > 0) {
    if (verdict.isReportable) sync.report(seen.virtual, contestedStatusNotice(virtual, verdict.waitMs));
    return { outcome: 'contested', reason: 'Contested', waitMs: verdict.waitMs };
  }
  const reason = 'status of the host copy';
  const patched = await sync.patchStatus(virtual, patch, reason);
  remember(sync, seen, patched ?? virtual, host);
  return { outcome: 'updated', reason };
}

function rerunAfterWrite(sync: KindSync, key: ObjectKey, result: ReconcileResult): ReconcileResult {
  const isRerun = sync.pipeline.readsHostObject && sync.states.of(key).countRerun();
  return isRerun ? { ...result, waitMs: 0 } : result;
}

/** Everything but the path of a failed patch is written. The error is reported like one that stops the whole object. */
function unlessFailed(
  sync: KindSync,
  key: ObjectKey,
  result: ReconcileResult,
  failure: PatchError | undefined,
): ReconcileResult {
  if (failure === undefined) return result;
  sync.states.of(key).isOpen = true;
  if (result.waitMs === undefined) throw failure.ofSyncedRest();
  return result;
}

/** What the host's admission has made of the copy is a change of the host like any other, so the key is reconciled again. */
function unlessAltered(
  sync: KindSync,
  key: ObjectKey,
  result: ReconcileResult,
  sent: KubeObject,
  stored: KubeObject | undefined,
): ReconcileResult {
  if (stored === undefined || isStoredAs(sync.kind, stored, sent)) return result;
  const state = sync.states.of(key);
  state.alteredVersion = stored.metadata.resourceVersion;
  state.isOpen = true;
  return { ...result, waitMs: 0 };
}

function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}
