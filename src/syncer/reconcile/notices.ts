/** The texts of Kubernetes Events: what happened, where, and what to do about it. */

import { describeTermination } from '../../kube/termination.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { ObjectReference } from '../patch/types.ts';
import type { AfterTermination } from './decide.ts';
import { isBookkeepingAnnotation, FIELD_MANAGER } from '../translate/bookkeeping.ts';
import type { Echo } from '../translate/echoes.ts';
import type { KeyId } from '../translate/merge-metadata.ts';
import { listedPaths } from './object-diff.ts';

export function syncedNotice(copy: KubeObject): RecordedEvent {
  return {
    type: 'Normal',
    reason: 'Synced',
    note: `Synced to ${copy.kind ?? ''} "${objectKey(copy)}" on the host.`,
  };
}

/** An object of another controller was overwritten. A warning, because the rate limit can drop normal Events, and because the host's slice controller
 * keeps the slices of a Service that loses its selector as they are (1.36.3, 1.37.2). */
export function takenOverNotice(copy: KubeObject): RecordedEvent {
  const { name, namespace = '' } = copy.metadata;
  return {
    type: 'Warning',
    reason: 'TakenOver',
    note:
      `Endpoints "${objectKey(copy)}" on the host, which its endpoints controller created before the Service lost its selector, ` +
      'is the copy of this object now. EndpointSlices that the host made for the Pods of the Service before stay, and traffic still goes to those ' +
      `addresses. Delete them on the host: kubectl -n ${namespace} delete endpointslices -l kubernetes.io/service-name=${name},` +
      'endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io',
  };
}

/** On the object that does not exist any more. */
export function deletedNotice(): RecordedEvent {
  const note =
    'Another client deleted the copy of this object on the host, so this object was deleted, as endpointSyncer.onHostDelete is deleteVirtual.';
  return { type: 'Warning', reason: 'DeletedWithCopy', note };
}

export function keepsDeletingNotice(hint: string): RecordedEvent {
  return warning(
    'SyncError',
    'Another client on the host keeps deleting the copy of this object; it is recreated with increasing delays.' +
      hint,
  );
}

/** The same note each time, so that it is one Event. */
export function leftToVclusterNotice(copy: KubeObject | undefined): RecordedEvent {
  const named = copy === undefined ? '' : ` "${objectKey(copy)}"`;
  return warning(
    'Contested',
    `The host copy${named} is left as it is: vCluster syncs this object too, and would delete it here together with a copy that is deleted. ` +
      "Disable one of the two syncs: vCluster's in its own values, or that of this program.",
  );
}

const AFTER_END: Readonly<Record<AfterTermination, string>> = {
  recreate:
    'Until then it gets the changes of this object, and nothing is read back from it. It is created again when it is gone.',
  create: 'This object is copied there when it is gone.',
  nothing: 'This object is not synced any more.',
};

export function terminatingNotice(host: KubeObject, next: AfterTermination): RecordedEvent {
  const what = next === 'create' ? 'The object' : 'The copy';
  return warning(
    'Terminating',
    `${what} "${objectKey(host)}" on the host ${describeTermination(host)}. ${AFTER_END[next]} ` +
      'The program that owns a finalizer removes it; if that program is gone, remove the finalizer.',
  );
}

export function contestedNotice(host: KubeObject, waitMs: number): RecordedEvent {
  const [who, remedy] = isWrittenByThisProgram(host)
    ? [
        'Another daemon of this program',
        'Most likely two daemons run for this virtual cluster, with different configurations: stop one of them, or set ' +
          'endpointSyncer.leaderElection.enabled to true in both.',
      ]
    : [
        `Field manager "${otherManager(host)}"`,
        'Stop the other writer, or opt this object out with the label vcluster.loft.sh/controlled-by.',
      ];
  return warning(
    'Contested',
    `${who} keeps overwriting the host copy; it is corrected again in ${waitMs / 1000} s. ` +
      `Changes of this object are still written immediately. ${remedy}`,
  );
}

/** `paths`: what the host stores other than it is sent. The same note each time, so that it is one Event. */
export function alteredNotice(copy: KubeObject, paths: readonly string[]): RecordedEvent {
  return warning(
    'Contested',
    `The host copy "${objectKey(copy)}" was changed by the host's admission: ${listedPaths(paths)}. It is written again with increasing delays, and ` +
      'changes of this object immediately. Exempt the copy from the webhook or policy that changes it, or make a patch write what the host wants; ' +
      'an old API server leaves out fields that it does not know.',
  );
}

/** `remedy`: a sentence of what to set. `waitMs`: until what was copied back is replaced again; 0: now. */
export function echoNotice(
  virtual: KubeObject,
  { keys, left }: Echo,
  remedy: string,
  waitMs = 0,
): RecordedEvent {
  const unknown = waitMs > 0 ? [] : left.filter((key) => !isBookkeepingAnnotation(key));
  const outlook =
    unknown.length > 0
      ? `The values before are not known any more: set ${unknown.join(', ')} again. `
      : waitMs > 0
        ? `It gets its own values back in ${waitMs / 1000} s. `
        : 'It gets its own values back. ';
  return warning(
    'Contested',
    `Field manager "${otherManager(virtual)}" copies the host copy back into this object (${keys.join(', ')}): another syncer, most likely ` +
      `that of vCluster, syncs it too. ${outlook}${remedy}`,
  );
}

/** `remedy`: a sentence of what to set. */
export function recreatedNotice(copy: KubeObject, waitMs: number, remedy: string): RecordedEvent {
  return warning(
    'Contested',
    `Field manager "${otherManager(copy)}" creates the host copy "${objectKey(copy)}" again and again, which this object should not have; ` +
      `it is deleted again in ${Math.ceil(waitMs / 1000)} s. ${remedy}`,
  );
}

export function contestedKeyNotice(
  { virtual, host }: { readonly virtual: KubeObject; readonly host: KubeObject },
  id: KeyId,
  waitMs: number,
): RecordedEvent {
  const [member = '', key = ''] = id.split(' ');
  const isLabel = member === 'labels';
  return warning(
    'Contested',
    `Field managers "${otherManager(virtual)}" in this cluster and "${otherManager(host)}" on the host keep rewriting the ` +
      `${isLabel ? 'label' : 'annotation'} ${key}; it is synced again in ${waitMs / 1000} s, the rest of this object as before. ` +
      `Stop one of them, or list the key under endpointSyncer.metadata.${isLabel ? 'excludeLabels' : 'excludeAnnotations'}.`,
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

/** No other field manager has written as late as this program's. */
function isWrittenByThisProgram(host: KubeObject): boolean {
  const timesOf = (isOurs: boolean): string[] =>
    (host.metadata.managedFields ?? []).flatMap(({ manager, time = '' }) =>
      (manager === FIELD_MANAGER) === isOurs ? [time] : [],
    );
  const ours = timesOf(true).toSorted().at(-1);
  return ours !== undefined && timesOf(false).every((time) => time < ours);
}

/** The manager of the latest write by another client, from managedFields. */
function otherManager(host: KubeObject): string {
  const others = (host.metadata.managedFields ?? []).filter(({ manager }) => manager !== FIELD_MANAGER);
  const latest = others.toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? 1 : -1))[0];
  return latest?.manager ?? 'unknown';
}
