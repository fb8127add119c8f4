/** Who deletes an object: the client that has marked it, where a finalizer delays its end. */

import type { Change } from '../../../src/kube/memory-cluster.ts';

export class Deleters {
  /** By uid, of objects that are marked. */
  readonly #managers = new Map<string, string>();

  /** The deleter of an object that a change ends; undefined: it is there. Call for each change once. */
  note({ object, previous, manager, isDeletion }: Change): string | undefined {
    const { uid = '' } = object.metadata;
    if (isMarking(object, previous) && !isDeletion) this.#managers.set(uid, manager);
    return isDeletion ? (this.#managers.get(uid) ?? manager) : undefined;
  }
}

export function isMarking(object: Change['object'], previous: Change['previous']): boolean {
  return (
    object.metadata.deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined
  );
}
