/** What follows a write of the copy: the status is copied, the pair remembered, and the key reconciled again where something is left to do. */

import type { PatchError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { KubeObject, ObjectKey } from '../../kube/object.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { needsWrite } from '../translate/content.ts';
import type { ReconcileResult } from './controller.ts';
import type { Observation } from './decide.ts';
import type { KindSync } from './kind-sync.ts';
import { contestedStatusNotice } from './notices.ts';
import { cachedAs } from './object-state.ts';

/** The virtual object may have the status of an earlier copy, and a new virtual object has none yet. */
export async function rememberWithStatus(
  sync: KindSync,
  seen: Observation,
  virtual: KubeObject,
  host: KubeObject,
  isEchoed = false,
): Promise<void> {
  if ((await copyStatus(sync, seen, virtual, host)) === undefined)
    remember(sync, seen, virtual, host, isEchoed);
}

export function remember(
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
  const notice = sync.kind.noticeOf(pair.virtual, seen.service);
  if (notice !== undefined) sync.report(seen.virtual, notice);
  sync.states.of(seen.key).remember(pair, seen.service, isEchoed);
}

/** Copies the status of the host copy in a separate write. `virtual`, `host`: their state after the other writes. Undefined: it has it. */
export async function copyStatus(
  sync: KindSync,
  seen: Observation,
  virtual: KubeObject,
  host: KubeObject,
): Promise<ReconcileResult | undefined> {
  const { kind } = sync;
  const patch = kind.statusPatch(virtual, host);
  if (patch === undefined) return undefined;
  // The pair was in sync with this state of the host, so another client of the virtual cluster has written the status since.
  const state = sync.states.of(seen.key);
  const verdict = state.isHostUnchanged(host) ? state.noteDrift(sync.nowMs()) : undefined;
  if (verdict !== undefined && verdict.waitMs > 0) {
    if (verdict.isReportable) sync.report(seen.virtual, contestedStatusNotice(virtual, verdict.waitMs));
    return { outcome: 'waiting', reason: 'Contested', waitMs: verdict.waitMs };
  }
  const reason = 'status of the host copy';
  const patched = await patchStatus(sync, virtual, patch, reason);
  remember(sync, seen, patched ?? virtual, host);
  return { outcome: 'updated', reason };
}

export async function clearStatus(sync: KindSync, { virtual }: Observation, host: KubeObject): Promise<void> {
  const { kind } = sync;
  if (virtual === undefined || kind.statusPatch(virtual, host) !== undefined) return;
  const patch = kind.statusPatch(virtual, undefined);
  if (patch !== undefined) await patchStatus(sync, virtual, patch, 'the host copy is deleted');
}

function patchStatus(
  sync: KindSync,
  virtual: KubeObject,
  patch: JsonObject,
  reason: string,
): Promise<KubeObject | undefined> {
  const { name, namespace = '', uid = null, resourceVersion = null } = virtual.metadata;
  const body = { ...patch, metadata: { uid, resourceVersion } };
  return sync.writers.virtual.mergePatch({ name, namespace }, body, reason, 'status');
}

export function rerunAfterWrite(sync: KindSync, key: ObjectKey, result: ReconcileResult): ReconcileResult {
  const isRerun = sync.pipeline.readsHostObject && sync.states.of(key).countRerun();
  return isRerun ? { ...result, waitMs: 0 } : result;
}

/** Everything but the path of a failed patch is written. The error is reported like one that stops the whole object. */
export function unlessFailed(
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
export function unlessAltered(
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

export function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}
