/** vCluster deletes the virtual object of a copy that another client has deleted: where the daemon knows that vCluster syncs the kind, none because of
 * a deletion of the daemon. */

import { keyOf, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { SYNCED_PLURALS } from '../history/operations.ts';
import type { Change } from '../../../src/kube/memory-cluster.ts';
import { DAEMON_MANAGER } from '../daemon/sim-daemon.ts';
import { SERVICE_NAME } from '../world/host-controllers.ts';
import { hostPlaceOf, type NameSettings } from '../world/names.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import { VCLUSTER_MANAGER } from '../world/vcluster-syncer.ts';
import { Deleters } from './deleters.ts';

/** Such a copy is deleted in any case: its Service on the host is no copy, or that of another Service. On a slice, vCluster may just have written the
 * name that the Service has in the virtual cluster. */
function getsTrafficOfOthers(
  plural: string,
  { metadata }: KubeObject,
  host: SimCluster,
  names: NameSettings,
): boolean {
  const { namespace = '', labels = {}, annotations: copied = {} } = metadata;
  const name = plural === 'endpoints' ? metadata.name : (labels[SERVICE_NAME] ?? '');
  const translated = hostPlaceOf({ namespace: copied[`${PREFIX}object-namespace`] ?? '', name }, names);
  return [{ namespace, name }, translated].some((place) => {
    const service = host.get('services', keyOf(place));
    if (service === undefined) return false;
    const { annotations = {} } = service.metadata;
    const isOther = (member: string): boolean => annotations[PREFIX + member] !== copied[PREFIX + member];
    return isOther('object-namespace') || (plural === 'endpoints' && isOther('object-name'));
  });
}

const PREFIX = 'vcluster.loft.sh/';

interface Options {
  /** Plurals. */
  readonly known: () => readonly string[];
  readonly names: () => NameSettings;
  readonly nowMs: () => number;
  readonly violation: (message: string) => void;
}

/** vCluster has the time to delete the copy of an object that is gone. */
const OWN_TIME_MS = 9000;

export function watchVclusterDeletions(
  { host, virtual }: Readonly<Record<'host' | 'virtual', SimCluster>>,
  { known, names, nowMs, violation }: Options,
): void {
  /** Copies that the daemon deleted and that were not created again since, by plural and host key. */
  const deleted = new Set<string>();
  /** By the same: when the object went. */
  const goneMs = new Map<string, number>();
  const deleters = new Deleters();
  const idAt = (plural: string, { metadata: { namespace = '', name } }: KubeObject): string =>
    `${plural} ${keyOf(hostPlaceOf({ namespace, name }, names()))}`;
  host.subscribe((change) => {
    const { plural, object } = change;
    const deleter = deleters.note(change);
    const id = `${plural} ${objectKey(object)}`;
    if (deleter === undefined) return void deleted.delete(id);
    const isTooEarly =
      virtual.list(plural).some((one) => idAt(plural, one) === id) ||
      nowMs() - (goneMs.get(id) ?? -Infinity) < OWN_TIME_MS;
    const isLeft = deleter === DAEMON_MANAGER && isTooEarly && known().includes(plural);
    if (isLeft && !getsTrafficOfOthers(plural, object, host, names())) deleted.add(id);
  });
  virtual.subscribe(({ plural, object, manager, isDeletion }: Change) => {
    if (!isDeletion || !SYNCED_PLURALS.some((one) => one === plural)) return;
    const id = idAt(plural, object);
    goneMs.set(id, nowMs());
    if (manager === VCLUSTER_MANAGER && deleted.has(id))
      violation(`vCluster deletes ${plural} ${objectKey(object)}, whose copy the daemon has deleted`);
  });
}
