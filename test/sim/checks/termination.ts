/** Objects that are being deleted: no value of one on the host reaches the virtual cluster, and none is deleted again and again. */

import { textAt } from '../../../src/base/json.ts';
import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import type { Change } from '../../../src/kube/memory-cluster.ts';
import { DAEMON_MANAGER } from '../daemon/sim-daemon.ts';
import { ingressOf } from '../world/service-storage.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import { TERMINATING } from '../world/user.ts';

/** `violation` is called for each write of the program to the virtual cluster that has such a value. */
export function watchTermination(
  { host, virtual }: Readonly<Record<'host' | 'virtual', SimCluster>>,
  violation: (message: string) => void,
): void {
  /** Annotations that others gave to objects that are not being deleted: a client may have applied the text of a copy under another name. */
  const live = new Set<string>();
  /** The number of the change that marked the host object, or created the virtual one, by uid. */
  const changedAt = new Map<string, number>();
  /** The host object that has got an address, by the address. */
  const balanced = new Map<string, string>();
  let changes = 0;
  host.subscribe(({ object, isDeletion }) => {
    changes += 1;
    const { uid = '', deletionTimestamp } = object.metadata;
    if (deletionTimestamp === undefined) {
      noteLive(object, live);
      // The restore of a backup makes it live again.
      changedAt.delete(uid);
    } else if (!changedAt.has(uid)) changedAt.set(uid, changes);
    if (!isDeletion && object.kind === 'Service')
      for (const ip of addressesOf(object)) if (!balanced.has(ip)) balanced.set(ip, uid);
  });
  virtual.subscribe((change) => {
    changes += 1;
    const { object, previous, manager } = change;
    const { uid = '' } = object.metadata;
    if (previous === undefined) changedAt.set(uid, changes);
    if (manager !== DAEMON_MANAGER) return noteLive(object, live);
    const value = newTexts(change).find((text) => text.endsWith(TERMINATING) && !live.has(text));
    if (value !== undefined)
      violation(`${objectKey(object)} gets ${value}, which only a host object has that is being deleted`);
    const address = newAddresses(change).find((ip) => {
      const markedAt = changedAt.get(balanced.get(ip) ?? '');
      return markedAt !== undefined && markedAt < (changedAt.get(uid) ?? 0);
    });
    if (address !== undefined)
      violation(
        `${objectKey(object)} gets ${address}, of a host Service that was being deleted before it was created`,
      );
  });
}

/** More than caches that are behind explain. */
const DELETIONS_MAX = 20;

/** For each deletion of an object that is being deleted already, which has no effect. */
export function deletionLimit(violation: (message: string) => void): (object: KubeObject) => void {
  const counts = new Map<string, number>();
  return (object) => {
    const { uid = '' } = object.metadata;
    const count = (counts.get(uid) ?? 0) + 1;
    counts.set(uid, count);
    if (count === DELETIONS_MAX)
      violation(`${objectKey(object)} is deleted again and again while a finalizer keeps it`);
  };
}

function noteLive(object: KubeObject, live: Set<string>): void {
  for (const text of textsOf(object)) live.add(text);
}

function textsOf({ metadata: { annotations = {} } }: KubeObject): string[] {
  return Object.entries(annotations).map(([key, value]) => `${key} ${value.replace(/^team-/, '')}`);
}

function newTexts({ object, previous }: Change): string[] {
  const before = new Set(previous === undefined ? [] : textsOf(previous));
  return textsOf(object).filter((text) => !before.has(text));
}

function newAddresses({ object, previous, plural }: Change): string[] {
  if (plural !== 'services') return [];
  const before = new Set(previous === undefined ? [] : addressesOf(previous));
  return addressesOf(object).filter((ip) => !before.has(ip));
}

function addressesOf(service: KubeObject): string[] {
  return ingressOf(service).map((one) => textAt(one, 'ip'));
}
