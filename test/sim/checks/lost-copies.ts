/** With `onHostDelete: deleteVirtual`, and where nothing goes wrong, each object is deleted whose copy a user deletes, unless the copy has no Service or
 * had none a while ago, or its owner or namespace is gone: then it may be the host's controllers that delete. */

import { objectKey } from '../../../src/kube/object.ts';
import { SYNCED_PLURALS } from '../history/operations.ts';
import type { Change } from '../../../src/kube/memory-cluster.ts';
import { ownersOf } from '../world/host-controllers.ts';
import { USER_MANAGER } from '../world/user.ts';
import { Deleters } from './deleters.ts';
import { hasService, hostServiceKey } from './provenance.ts';
import { hostKeyOfObject, isOptedOut, rivalsOf, wantsCopy, type World } from './naive-model.ts';

/** The guard of the daemon. */
const EXPECTED_MS = 10 * 60_000;

export class LostCopies {
  /** The virtual objects whose copies were deleted, by uid. */
  readonly #uids = new Set<string>();
  readonly #deleters = new Deleters();
  /** When a host Service was deleted, or a copy that had none, by the key of the Service. */
  readonly #withoutService = new Map<string, number>();
  readonly #endedNamespaces = new Map<string, number>();

  /** Before the daemon has seen it. */
  note(change: Change, world: World, nowMs: number): void {
    const { object } = change;
    const plural = SYNCED_PLURALS.find((one) => one === change.plural);
    const isByUser = this.#deleters.note(change) === USER_MANAGER;
    this.#noteExpected(change, world, nowMs);
    if (plural === undefined || !isByUser || !world.isOurs(object)) return;
    if (!hasService(change, world.host) || this.#isExpected(change, world, nowMs)) return;
    const uid = object.metadata.annotations?.['vcluster.loft.sh/object-uid'];
    const virtual = world.virtual.list(plural).find(({ metadata }) => metadata.uid === uid);
    if (virtual === undefined || isOptedOut(object) || !wantsCopy(plural, virtual, world)) return;
    const isAlone = rivalsOf(plural, virtual, world).length === 1;
    if (isAlone && hostKeyOfObject(virtual, world.settings) === objectKey(object)) this.#uids.add(uid ?? '');
  }

  #noteExpected(change: Change, { host }: World, nowMs: number): void {
    const { plural, object, isDeletion } = change;
    const { namespace = '', deletionTimestamp } = object.metadata;
    if (!host.hasNamespace(namespace)) this.#endedNamespaces.set(namespace, nowMs);
    if (plural === 'services' && isDeletion) this.#withoutService.set(objectKey(object), nowMs);
    const isCopyDeleted = plural !== 'services' && (isDeletion || deletionTimestamp !== undefined);
    if (isCopyDeleted && !hasService(change, host)) this.#withoutService.set(hostServiceKey(change), nowMs);
  }

  #isExpected(change: Change, { host }: World, nowMs: number): boolean {
    const isLately = (lastMs = -Infinity): boolean => nowMs - lastMs < EXPECTED_MS;
    const { namespace = '' } = change.object.metadata;
    const owners = host.list('configmaps').map(({ metadata }) => metadata.uid);
    return (
      isLately(this.#endedNamespaces.get(namespace)) ||
      (change.plural !== 'services' && isLately(this.#withoutService.get(hostServiceKey(change)))) ||
      ownersOf(change.object).some((uid) => !owners.includes(uid))
    );
  }

  survivors({ virtual }: World): string[] {
    return SYNCED_PLURALS.flatMap((plural) =>
      virtual
        .list(plural)
        .filter(({ metadata: { uid = '' } }) => this.#uids.has(uid))
        .map((object) => `${plural} ${objectKey(object)} is still there although its copy was deleted`),
    );
  }
}
