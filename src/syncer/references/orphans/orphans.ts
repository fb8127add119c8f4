/** Finds imports that are no longer referenced, and decides whether they may be removed. */

import type { KubeObject } from '../../../kube/object.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { copiedFrom } from '../decide/observe-reference.ts';
import { isImport } from '../import/import-forge.ts';
import { referenceIdOf, type ReferenceId } from '../index/reference-id.ts';
import type { ReferenceIndex, ReferrerId } from '../index/reference-index.ts';
import type { KindCaches } from '../kinds/kind-caches.ts';

export interface OrphansOptions {
  readonly index: ReferenceIndex;
  readonly names: NameTranslator;
  readonly allCaches: () => readonly KindCaches[];
  /** The host object at the place of a referrer's copy. */
  readonly hostCopy: (id: ReferrerId) => KubeObject | undefined;
  /** Adds a reference to the importer's queue, which removes an import without referrers. */
  readonly enqueue: (id: ReferenceId) => void;
}

export class Orphans {
  readonly #options: OrphansOptions;
  #isComplete = false;

  constructor(options: OrphansOptions) {
    this.#options = options;
  }

  /** The index is complete: an import without referrers is an orphan from now on. */
  completed(): void {
    this.#isComplete = true;
    this.#enqueueAll();
  }

  /** Called when the references of a copy become known: unknown references protect all imports. */
  referrerKnown(): void {
    if (this.#isComplete) this.#enqueueAll();
  }

  /** Called when a kind was opened. */
  kindOpened(caches: KindCaches): void {
    if (this.#isComplete) this.#enqueueImportsOf(caches);
  }

  /** False while the host copy of an object that cannot be translated may reference this import. */
  isDispensable({ metadata: { name } }: KubeObject): boolean {
    const { index, hostCopy } = this.#options;
    if (!index.isComplete) return false;
    for (const referrer of index.unknown) {
      const copy = hostCopy(referrer);
      if (copy !== undefined && JSON.stringify(copy).includes(name)) return false;
    }
    return true;
  }

  #enqueueAll(): void {
    for (const caches of this.#options.allCaches()) this.#enqueueImportsOf(caches);
  }

  #enqueueImportsOf(caches: KindCaches): void {
    const { names, enqueue } = this.#options;
    for (const copy of caches.copies.list()) {
      const virtual = copiedFrom(copy, caches.kind, names);
      if (virtual !== undefined) enqueue(referenceIdOf(caches.kind.id, virtual));
    }
    for (const object of caches.virtualCache.list()) {
      if (!isImport(object, names.vcluster)) continue;
      const { namespace = '', name } = object.metadata;
      enqueue(referenceIdOf(caches.kind.id, { namespace, name }));
    }
  }
}
