/** Who made each host object, and what this program may therefore do to it. */

import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { CONTROLLER_MANAGER, hasSelector } from '../world/host-controllers.ts';
import { HOST_NAMESPACE, hostNameOf, VIRTUAL_NAMES } from '../world/names.ts';
import { DAEMON_MANAGER } from '../daemon/sim-daemon.ts';
import type { Change, SimCluster } from '../world/sim-cluster.ts';

export interface Provenance {
  /** The program made the host object with this uid, or took it over as it may. */
  isOurs(uid: string | undefined): boolean;
}

/** Watches a host cluster, and reports every write of the program that it must not do. */
export function watchProvenance(
  host: SimCluster,
  virtual: SimCluster,
  violation: (message: string) => void,
): Provenance {
  const owners = new Map<string, string>();
  host.subscribe((change) => {
    const { object, previous, manager, plural, isDeletion } = change;
    const uid = object.metadata.uid ?? '';
    const isTakenByController = manager === CONTROLLER_MANAGER && owners.get(uid) !== DAEMON_MANAGER;
    if (previous === undefined || isTakenByController) owners.set(uid, manager);
    if (manager !== DAEMON_MANAGER || plural !== 'endpoints') return;
    const what = `${isDeletion ? 'delete' : previous === undefined ? 'create' : 'update'} of ${objectKey(object)}`;
    const problem =
      (isDeletion ? undefined : misplaced(object)) ??
      (previous && foreignWrite(change, owners.get(uid) ?? '', virtual));
    if (problem !== undefined) violation(`${what}: ${problem}`);
    owners.set(uid, DAEMON_MANAGER);
  });
  return { isOurs: (uid) => owners.get(uid ?? '') === DAEMON_MANAGER };
}

/** A copy names the virtual object whose place it is at. */
function misplaced({ metadata: { name, namespace, annotations = {} } }: KubeObject): string | undefined {
  if (namespace !== HOST_NAMESPACE) return `namespace ${namespace ?? ''} is not the virtual cluster's`;
  const stated = {
    namespace: annotations['vcluster.loft.sh/object-namespace'] ?? '',
    name: annotations['vcluster.loft.sh/object-name'] ?? '',
  };
  const candidates = VIRTUAL_NAMES.filter((one) => hostNameOf(one) === name);
  if (candidates.length === 0) return 'no virtual object belongs there';
  const isNamed = candidates.some((one) => one.name === stated.name && one.namespace === stated.namespace);
  return isNamed ? undefined : `it names ${stated.namespace}/${stated.name}`;
}

/** An object of another client, unless the host's endpoints controller made it for a Service that has lost its selector. */
function foreignWrite(
  { object, isDeletion }: Change,
  owner: string,
  virtual: SimCluster,
): string | undefined {
  if (owner === DAEMON_MANAGER) return undefined;
  if (owner !== CONTROLLER_MANAGER || isDeletion) return `it belongs to ${owner}`;
  const { annotations = {} } = object.metadata;
  const key = `${annotations['vcluster.loft.sh/object-namespace']}/${annotations['vcluster.loft.sh/object-name']}`;
  const service = virtual.get('services', key);
  if (service === undefined) return 'it is taken over although its virtual Service does not exist';
  return hasSelector(service) ? 'it is taken over although its virtual Service has a selector' : undefined;
}
