/** Host objects that are being deleted, and that finalizers keep there: what is still written to them, and what is said about them. */

import { invariant } from '../../base/errors.ts';
import { objectKey, type KubeObject } from '../../kube/object.ts';
import { isRefused, type RefusedCopy } from './copy.ts';
import { clearStatus } from './copy-deletion.ts';
import type { AfterTermination, Observation } from './decide.ts';
import type { KindSync } from './kind-sync.ts';
import { describeTermination } from '../../kube/termination.ts';
import { earliest, later, type ReconcileResult, type Wait } from './left.ts';
import { terminatingNotice } from './notices.ts';
import { updatePair } from './pair-update.ts';

/** Most finalizers are removed within seconds, so an Event says only of others that they are waited for. */
export const REPORTED_AFTER_MS = 30_000;

/** The end of the host object causes an event, and the key is decided again. */
export async function awaitEnd(
  sync: KindSync,
  seen: Observation,
  next: AfterTermination,
): Promise<ReconcileResult | RefusedCopy> {
  const { host } = seen;
  invariant(host, 'a host object that is being deleted is in the cache');
  const waiting = waitForEnd(sync, seen, host, next);
  if (next === 'create') sync.references.clearReferences(seen.key);
  if (next === 'nothing') await clearStatus(sync, seen, host);
  if (next !== 'recreate') return waiting;
  const result = await updatePair(sync, seen);
  if (isRefused(result) || result.outcome === 'again') return result;
  return { ...waiting, left: earliest(result.left, waiting.left) };
}

function waitForEnd(sync: KindSync, seen: Observation, host: KubeObject, next: AfterTermination): Wait {
  const termination = sync.states.of(seen.key).noteTermination(host.metadata.uid, sync.nowMs(), false);
  const waiting: Wait = {
    outcome: 'terminating',
    reason: 'Terminating',
    note: `"${objectKey(host)}" ${describeTermination(host)}`,
  };
  // Without the virtual object, the Event would be lost.
  if (termination.isReported || seen.virtual === undefined) return waiting;
  const leftMs = termination.sinceMs + REPORTED_AFTER_MS - sync.nowMs();
  if (leftMs > 0) return { ...waiting, left: later('its end is waited for', leftMs) };
  termination.isReported = true;
  sync.report(seen.virtual, terminatingNotice(host, next));
  return waiting;
}
