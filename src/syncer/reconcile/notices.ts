/** The texts of Kubernetes Events: what happened, where, and what to do about it. */

import type { RecordedEvent } from '../../kube/types.ts';
import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { ObjectReference } from '../patch/types.ts';
import { FIELD_MANAGER } from './write/writer.ts';

export function syncedNotice(copy: KubeObject): RecordedEvent {
  return {
    type: 'Normal',
    reason: 'Synced',
    note: `Synced to ${copy.kind ?? ''} "${objectKey(copy)}" on the host.`,
  };
}

/** An object of another controller was overwritten. A warning, because the rate limit can drop normal Events. */
export function takenOverNotice(copy: KubeObject): RecordedEvent {
  return {
    type: 'Warning',
    reason: 'TakenOver',
    note:
      `Endpoints "${objectKey(copy)}" on the host, which its endpoints controller created before the Service lost its selector, ` +
      'is the copy of this object now.',
  };
}

export function keepsDeletingNotice(hint: string): RecordedEvent {
  return warning(
    'SyncError',
    'Another client on the host keeps deleting the copy of this object; it is recreated with increasing delays.' +
      hint,
  );
}

export function contestedNotice(host: KubeObject, waitMs: number): RecordedEvent {
  return warning(
    'Contested',
    `Field manager "${otherManager(host)}" keeps overwriting the host copy; it is corrected again in ${waitMs / 1000} s. ` +
      'Changes of this object are still written immediately. ' +
      'Stop the other writer, or opt this object out with the label vcluster.loft.sh/controlled-by.',
  );
}

export function contestedStatusNotice(virtual: KubeObject, waitMs: number): RecordedEvent {
  return warning(
    'Contested',
    `Field manager "${otherManager(virtual)}" keeps overwriting the status that comes from the host copy; it is written again in ${waitMs / 1000} s. ` +
      'Stop the other writer, or opt this object out with the label vcluster.loft.sh/controlled-by.',
  );
}

export function notAllowedNotice(reference: ObjectReference): RecordedEvent {
  const { patchIndex, path, apiVersion, kind, namespace, name } = reference;
  return warning(
    'ReferenceNotAllowed',
    `patches[${patchIndex}], path ${path}: it names ${apiVersion} ${kind} "${namespace}/${name}", a kind that the configuration ` +
      'does not allow, so the reference is left as it is. Name the kind in a reference patch, or enable it under sync.toHost.',
  );
}

export function warning(reason: string, note: string): RecordedEvent {
  return { type: 'Warning', reason, note };
}

/** The manager of the latest write by another client, from managedFields. */
function otherManager(host: KubeObject): string {
  const others = (host.metadata.managedFields ?? []).filter(({ manager }) => manager !== FIELD_MANAGER);
  const latest = others.toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? 1 : -1))[0];
  return latest?.manager ?? 'unknown';
}
