/** Keeps a pair in step: merges both sides, writes the host and then the virtual object, and backs off from others that overwrite either. */

import { invariant, type PatchError } from '../../base/errors.ts';
import { isTerminating, parseKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { isConflict } from '../../kube/status-error.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import { KEEPING_REASONS, type SyncedKind } from '../kinds/kind.ts';
import { vclusterRemedy } from '../kinds/synced-kinds.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';
import { needsWrite } from '../translate/content.ts';
import { correctedValues } from '../translate/echoes.ts';
import { recordOf } from '../translate/last-synced.ts';
import { isVirtualBehind, readVirtual } from './cache-refresh.ts';
import { STALE, UNCHANGED } from './controller.ts';
import {
  isRefused,
  virtualPatch,
  type ForgedCopy,
  type MergedCopy,
  type PlacedPair,
  type RefusedCopy,
} from './copy.ts';
import { deleteToRecreate } from './copy-deletion.ts';
import { isRecreated, type Observation } from './decide.ts';
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
  again,
  anotherRun,
  earliest,
  later,
  retry,
  waitMsOf,
  type Done,
  type Left,
  type ReconcileResult,
  type Wait,
} from './left.ts';
import {
  alteredNotice,
  contestedKeyNotice,
  contestedNotice,
  contestedStatusNotice,
  echoNotice,
  notAllowedNotice,
} from './notices.ts';
import { changedPaths } from './object-diff.ts';
import { ALTERED, cachedAs } from './object-state.ts';

const FROM_HOST = 'changed on the host';
/** While the virtual object keeps what another syncer has copied back, for want of what was there before. */
const ECHO_RECHECK_MS = 1000;
/** Limit for an expression that reads the host object and changes it in every run. */
const RERUNS_MAX = 4;

/** Why something is left to do. */
const ECHOED = 'another syncer has copied the host copy back';
const HELD = 'both sides keep rewriting a key';
const OVERWRITTEN = 'another writer keeps overwriting what was written';
const FAILED = 'a patch has failed';
const REREAD = 'an expression reads the host object, which was written';

/** Admission has removed the record of the sync. */
const RECORD_PATH = `metadata.annotations["${LAST_SYNCED}"]`;

type SeenPair = Observation & PlacedPair & { readonly host: KubeObject };

export async function updatePair(
  sync: KindSync,
  observation: Observation,
): Promise<ReconcileResult | RefusedCopy> {
  const seen = asPair(sync, observation);
  const { host, virtual, key } = seen;
  const state = sync.states.of(key);
  const record = recordOf(host);
  state.noteRecord(virtual, record);
  const contestedMs = contestedWaitMs(sync, seen);
  if (contestedMs > 0) return contested(state.left?.reason ?? OVERWRITTEN, contestedMs);
  if (await isVirtualBehind(sync, virtual, host)) return STALE;
  const held = heldKeys(state.keyContests, sync.nowMs());
  const merged = await mergedCopy(sync, seen, held);
  if (isRefused(merged)) return merged;
  const uncertainMs = merged.isUncertain ? state.arrivals.uncertainWaitMs(sync.nowMs(), record) : 0;
  if (uncertainMs > 0) return { outcome: 'again', left: later('change is in progress', uncertainMs) };
  for (const reference of merged.notAllowed) sync.report(seen.virtual, notAllowedNotice(reference));
  const overwrites = overwritesOf(sync, seen, merged);
  const isDrift = overwrites !== undefined;
  const verdict = isDrift ? state.noteDrift(sync.nowMs(), overwrites) : undefined;
  if (verdict !== undefined && verdict.waitMs > 0) return waitWhileContested(sync, seen, merged, verdict);
  if (merged.echo !== undefined)
    sync.report(seen.virtual, echoNotice(virtual, merged.echo, vclusterRemedy(sync.environment.config)));
  const { contests, verdicts } = noteKeyChanges(state.keyContests, merged.flows, sync.nowMs());
  state.keyContests = contests;
  if (verdicts.length > 0) return withoutContested(sync, seen, verdicts);
  const synced = await writePair(sync, seen, merged);
  if (!isDrift && synced.result.outcome !== 'unchanged') state.contest = noteChange(state.contest);
  return concluded(sync, key, synced, { held, failure: merged.failure });
}

/** Both sides keep rewriting these annotations or labels. They are left alone, and the rest is synced. */
async function withoutContested(
  sync: KindSync,
  seen: SeenPair,
  verdicts: readonly KeyVerdict[],
): Promise<ReconcileResult | RefusedCopy> {
  for (const { id, waitMs, isReportable } of verdicts)
    if (isReportable) sync.report(seen.virtual, contestedKeyNotice(seen, id, waitMs));
  const held = heldKeys(sync.states.of(seen.key).keyContests, sync.nowMs());
  const merged = await mergedCopy(sync, seen, held);
  if (isRefused(merged)) return merged;
  return concluded(sync, seen.key, await writePair(sync, seen, merged), { held, failure: merged.failure });
}

async function mergedCopy(
  sync: KindSync,
  seen: SeenPair,
  held: ReadonlyMap<string, number>,
): Promise<MergedCopy | RefusedCopy> {
  const { key, host } = seen;
  const [state, nowMs] = [sync.states.of(key), sync.nowMs()];
  const merged = await sync.forge.merged(seen, state.arrivals.of(recordOf(host)), {
    ...state.lastSync(seen.virtual, nowMs),
    restoresEchoes: correctionWaitMs(state.contest, nowMs) === 0,
    held: new Set(held.keys()),
  });
  // At the time of the merge: what it has believed is not forgotten.
  if (!isRefused(merged)) state.noteEchoes(merged.echo?.keys ?? [], nowMs);
  return merged;
}

/** Writes the host first. Its record lists the values on their way to the virtual side, so neither a crash nor a concurrent edit alone loses them.
 * The virtual write completes the sync. */
async function writePair(sync: KindSync, seen: SeenPair, merged: MergedCopy): Promise<Synced> {
  const { writers } = sync;
  const { host, key } = seen;
  const reason = merged.correctsDrift ? 'differs from the virtual object' : 'bookkeeping';
  if (merged.host !== undefined && isRecreated(sync.decide, merged.host, host, seen.virtual)) {
    // A change of the host would be lost with the copy.
    if (merged.virtual !== undefined) await patchVirtual(sync, seen, merged.virtual, recordOf(host));
    return { result: await deleteToRecreate(sync, seen, host, merged.host) };
  }
  // Before the write, because its response may be lost.
  if (merged.host !== undefined && merged.virtual !== undefined)
    sync.states.of(key).arrivals.note(recordOf(merged.host), 'due');
  if (merged.host !== undefined) noteWrite(sync, seen, merged.host);
  const stored = merged.host && (await writers.host.update(merged.host, reason));
  sync.recordReferences(key, merged.references);
  const copy = stored ?? host;
  const result = await (merged.virtual === undefined
    ? finishHost(sync, seen, merged, { copy, reason })
    : writeVirtual(sync, seen, merged, merged.virtual, copy));
  return { result, isAltered: isAltered(sync, merged.host, stored) };
}

function noteWrite(sync: KindSync, { key, host, virtual }: SeenPair, written: KubeObject): void {
  const [state, nowMs] = [sync.states.of(key), sync.nowMs()];
  const { agreed } = state.lastSync(virtual, nowMs);
  state.noteReplaced(recordOf(host));
  state.noteCorrected(correctedValues(host, written, agreed?.host), nowMs);
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
  const isEchoed = merged.echo !== undefined;
  if (merged.host !== undefined)
    return {
      outcome: 'updated',
      reason,
      left: earliest(rereading(sync, key), isEchoed ? retry(ECHOED) : undefined),
    };
  return isEchoed ? contested(ECHOED, ECHO_RECHECK_MS) : UNCHANGED;
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
  if (isAlteredByAdmission)
    return { ...result, left: again('the virtual cluster has changed what was written') };
  const copied = await copyStatus(sync, seen, patched ?? seen.virtual, copy);
  if (copied !== undefined) return copied;
  const isEchoLeft = (merged.echo?.left.length ?? 0) > 0;
  remember(sync, seen, patched ?? seen.virtual, copy, merged.echo !== undefined);
  // A label from the host may decide that the object is not synced, and our own write causes no event.
  if (patched !== undefined && !isGateOpen(sync, seen, patched))
    return { ...result, left: again('what came from the host decides that it is not synced') };
  // The host follows the restored values in the next reconcile: they may translate to others than before.
  if (merged.echo !== undefined)
    return { ...result, left: isEchoLeft ? later(ECHOED, ECHO_RECHECK_MS) : again(ECHOED) };
  return { ...result, left: rereading(sync, seen.key) };
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
  const state = sync.states.of(seen.key);
  const isByAdmission = merged.echo === undefined && state.isAltered(seen.host);
  const reason = merged.echo !== undefined ? ECHOED : isByAdmission ? ALTERED : OVERWRITTEN;
  state.left = later(reason, waitMs);
  return { outcome: 'contested', reason: 'Contested', note: notice.note, left: state.left };
}

function contestNotice(
  sync: KindSync,
  seen: SeenPair,
  { echo, host, virtual }: MergedCopy,
  waitMs: number,
): RecordedEvent {
  if (echo !== undefined)
    return echoNotice(seen.virtual, echo, vclusterRemedy(sync.environment.config), waitMs);
  if (!sync.states.of(seen.key).isAltered(seen.host)) return contestedNotice(seen.host, waitMs);
  const paths =
    virtual === undefined ? changedPaths(host ?? seen.host, seen.host) : changedPaths(virtual, seen.virtual);
  return alteredNotice(seen.host, paths.length === 0 ? [RECORD_PATH] : paths);
}

function asPair(sync: KindSync, seen: Observation): SeenPair {
  const { virtual, host, target } = seen;
  invariant(virtual && host && target, 'both objects exist when a pair is updated');
  return { ...seen, virtual, host, target, budget: sync.newBudget() };
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
  if (isEchoed) return concluded(sync, key, { result: { ...result, left: again(ECHOED) } });
  sync.states.of(key).noteEchoes([], sync.nowMs());
  return concluded(
    sync,
    key,
    { result: { ...result, left: rereading(sync, key) }, isAltered: isAltered(sync, sent, stored) },
    { failure },
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
    return contested(OVERWRITTEN, verdict.waitMs);
  }
  const reason = 'status of the host copy';
  const patched = await sync.patchStatus(virtual, patch, reason);
  remember(sync, seen, patched ?? virtual, host);
  return { outcome: 'updated', reason };
}

/** Expressions that read the host object run again after each of our writes, until the result is stable. */
function rereading(sync: KindSync, key: ObjectKey): Left | undefined {
  if (!sync.pipeline.readsHostObject) return undefined;
  return anotherRun(REREAD, sync.states.of(key).left, RERUNS_MAX);
}

interface Synced {
  readonly result: ReconcileResult;
  /** See {@link ALTERED}. */
  readonly isAltered?: boolean;
}

interface Omitted {
  /** Annotations and labels that were left alone, and for how long. */
  readonly held?: ReadonlyMap<string, number>;
  /** Everything but the paths of failed patches is written. */
  readonly failure?: PatchError | undefined;
}

/** Stores what is left to do. A failure is reported like one that stops the whole object, unless the key is reconciled again anyway. */
function concluded(
  sync: KindSync,
  key: ObjectKey,
  { result, isAltered: isByAdmission = false }: Synced,
  { held = new Map(), failure }: Omitted = {},
): ReconcileResult {
  const heldMs = held.size === 0 ? undefined : Math.ceil(Math.min(...held.values()));
  const left = earliest(
    isByAdmission ? again(ALTERED) : undefined,
    result.left,
    heldMs === undefined ? undefined : later(HELD, heldMs),
    failure && retry(FAILED),
  );
  sync.states.of(key).left = left;
  if (failure !== undefined && waitMsOf(left) === undefined) throw failure.ofSyncedRest();
  if (heldMs !== undefined && result.outcome === 'unchanged')
    return { outcome: 'contested', reason: 'Contested', left };
  return left === undefined ? result : { ...result, left };
}

function contested(reason: string, waitMs: number): Wait {
  return { outcome: 'contested', reason: 'Contested', left: later(reason, waitMs) };
}

function isAltered(sync: KindSync, sent: KubeObject | undefined, stored: KubeObject | undefined): boolean {
  return sent !== undefined && stored !== undefined && !isStoredAs(sync.kind, stored, sent);
}

function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}
