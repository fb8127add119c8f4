/** State, reason and sentence of a referenced object, and of an object that is not synced. Pure. */

import type { Config } from '../../../config/types.ts';
import { keyOf } from '../../../kube/object.ts';
import { disablingSetting } from '../../../syncer/kinds/synced-kinds.ts';
import { CONTROLLED_BY } from '../../../syncer/reconcile/decide/decide.ts';
import type { ReferencePlan } from '../../../syncer/rehearsal.ts';
import type { Target } from './target.ts';
import { otherConfiguration, sentenceOf, type SyncStatus } from './object-status.ts';

export function statusOfImport(
  { seen, isReferenced, decision, changes }: ReferencePlan,
  runsOther = false,
): SyncStatus {
  const { kind, virtual } = seen;
  const what = `${kind.virtual.kind} "${keyOf(virtual)}"`;
  if (decision.problem !== undefined) {
    const { reason, note } = decision.problem;
    return { state: 'refused', reason, sentence: `${what} is not imported: ${sentenceOf(note)}` };
  }
  if (changes.length > 0 && runsOther) return otherConfiguration(what);
  if (changes.length > 0) {
    const reason = changes.map((change) => change.reason).join(', ');
    const verb = changes.every(({ after }) => after === undefined) ? 'deleted' : 'written';
    return {
      state: 'pending',
      reason,
      sentence: `${what} is not in sync: its copy is about to be ${verb}: ${reason}`,
    };
  }
  if (!isReferenced)
    return {
      state: 'skipped',
      reason: 'not referenced',
      sentence: `${what} is not imported: no synced object references it`,
    };
  switch (decision.action) {
    case 'to-host':
      return {
        state: 'synced',
        reason: '',
        sentence: `${what} is imported into the host as "${seen.target === undefined ? '' : keyOf(seen.target)}"`,
      };
    case 'to-virtual': {
      const { namespace = '', name = '' } = seen.source?.metadata ?? {};
      return {
        state: 'synced',
        reason: '',
        sentence: `${what} is imported from the host, where it is "${keyOf({ namespace, name })}"`,
      };
    }
    case 'paused':
      return {
        state: 'skipped',
        reason: 'controlled by another',
        sentence: `${what} is not imported: ${CONTROLLED_BY} assigns it to another controller`,
      };
    case 'none':
      return notImported(what, { seen, decision });
  }
}

function notImported(what: string, { seen, decision }: Pick<ReferencePlan, 'seen' | 'decision'>): SyncStatus {
  const name = decision.name === undefined ? '' : `"${keyOf(decision.name)}"`;
  if (seen.othersCopy !== undefined) {
    return {
      state: 'skipped',
      reason: 'copied by another syncer',
      sentence: `${what} is on the host as ${name}: another syncer manages that copy`,
    };
  }
  if (!seen.kind.isImportable) {
    const reason = 'never imported';
    return {
      state: 'skipped',
      reason,
      sentence: `${what} is not imported: objects of this kind are copied by another syncer; references use the name ${name}`,
    };
  }
  const key = 'syncing of this kind is not enabled under sync.toHost';
  return {
    state: 'skipped',
    reason: 'not configured',
    sentence: `${what} is not imported: ${key}; references use the name ${name}`,
  };
}

/** The state of an existing object that is neither synced nor referenced. */
export function statusOfOther(
  { resource, object, cluster, virtual }: Extract<Target, { kind: 'other' }>,
  config: Config,
): SyncStatus {
  const { namespace = '', name } = object.metadata;
  const what = `${resource.kind} "${keyOf({ namespace, name })}"`;
  const setting = disablingSetting(config, resource);
  if (setting !== undefined)
    return { state: 'skipped', reason: 'disabled', sentence: `${what} is not synced: ${setting}` };
  if (cluster === 'virtual') {
    return {
      state: 'skipped',
      reason: 'not referenced',
      sentence: `${what} is not imported: no synced object references it`,
    };
  }
  const blocks = virtual === undefined ? '' : `; "${keyOf(virtual)}" cannot be synced while it has this name`;
  return {
    state: 'skipped',
    reason: 'NotManaged',
    sentence: `host ${what} is not a copy of an object of this virtual cluster: another client created it, so it is left untouched${blocks}`,
  };
}
