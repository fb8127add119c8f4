/** The references of all synced objects. The reconcilers write it and the importer observes it; neither calls the other. In memory only: after a
 * start, it is complete once every synced object has been reconciled, and until then, no import may be removed as unreferenced. */

import {
  keyOf,
  type KubeObject,
  type ObjectKey,
  type Resource,
  type NamespacedName,
} from '../../kube/object.ts';
import type { TranslatedReference } from '../patch/types.ts';
import type { ReferenceRecords } from '../reconcile/environment.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';

/** A referenced object by its virtual name: `v1 Secret default/tls`. */
export type ReferenceId = string;

export function referenceIdOf(kind: KindId, virtual: NamespacedName): ReferenceId {
  return `${kind} ${keyOf(virtual)}`;
}

export interface ReferenceParts {
  readonly kind: KindId;
  readonly namespace: string;
  readonly name: string;
}

export function parseReferenceId(id: ReferenceId): ReferenceParts {
  const space = id.lastIndexOf(' ');
  const slash = id.indexOf('/', space);
  return { kind: id.slice(0, space), namespace: id.slice(space + 1, slash), name: id.slice(slash + 1) };
}

/** A synced object that references others: its kind and key, such as `endpoints:namespace/name`. */
export type ReferrerId = string;

export function referrerIdOf({ plural }: Resource, key: ObjectKey): ReferrerId {
  return `${plural}:${key}`;
}

export function parseReferrerId(id: ReferrerId): { readonly plural: string; readonly key: ObjectKey } {
  const colon = id.indexOf(':');
  return { plural: id.slice(0, colon), key: id.slice(colon + 1) };
}

export interface Referrer {
  readonly object: KubeObject;
  readonly resource: Resource;
}

export interface Referrers {
  virtual(id: ReferrerId): Referrer | undefined;
  /** The host object at the place of its copy. */
  hostCopy(id: ReferrerId): KubeObject | undefined;
  enqueue(id: ReferrerId): void;
  all(): readonly ReferrerId[];
}

export interface RecordedReferences {
  readonly referrer: ReferrerId;
  readonly references: readonly TranslatedReference[];
  /** References that were added, removed or renamed. */
  readonly changed: readonly ReferenceId[];
  readonly wasUnknown: boolean;
}

export interface ReferenceObserver {
  recorded(record: RecordedReferences): void;
  /** Every synced object has been reconciled since the start. Called once. */
  completed(): void;
}

/** Reference → key of the host object that the host copy references for it; '' if the value was not translated. */
type NamedObjects = ReadonlyMap<ReferenceId, ObjectKey>;

const NO_OBJECTS: NamedObjects = new Map();
const NO_REFERRERS: ReadonlySet<ReferrerId> = new Set();

export class ReferenceIndex {
  readonly #named = new Map<ReferrerId, NamedObjects>();
  readonly #referrers = new Map<ReferenceId, Set<ReferrerId>>();
  readonly #pending = new Set<ReferrerId>();
  /** The first reconcile failed, so the references of the copies are unknown. */
  readonly #unknown = new Set<ReferrerId>();
  /** To be translated again, although neither side of the pair changed. */
  readonly #stale = new Set<ReferrerId>();
  readonly #observers: ReferenceObserver[] = [];
  #isBegun = false;
  #isCompleted = false;

  observe(observer: ReferenceObserver): void {
    this.#observers.push(observer);
  }

  recordsOf(resource: Resource): ReferenceRecords {
    const idOf = (key: ObjectKey): ReferrerId => referrerIdOf(resource, key);
    return {
      isStale: (key) => this.#stale.has(idOf(key)),
      recordReferences: (key, references) => this.recordReferences(idOf(key), references),
      clearReferences: (key) => this.recordReferences(idOf(key), []),
      markReconciled: (key) => this.markReconciled(idOf(key)),
    };
  }

  begin(referrers: Iterable<ReferrerId>): void {
    for (const id of referrers) this.#pending.add(id);
    this.#isBegun = true;
    this.#completeIfDone();
  }

  get isComplete(): boolean {
    return this.#isBegun && this.#pending.size === 0;
  }

  get unknown(): ReadonlySet<ReferrerId> {
    return this.#unknown;
  }

  recordReferences(referrer: ReferrerId, references: readonly TranslatedReference[]): void {
    const wasUnknown = this.#unknown.delete(referrer);
    this.#pending.delete(referrer);
    this.#stale.delete(referrer);
    const changed = this.#replace(referrer, namedBy(references));
    for (const observer of this.#observers) observer.recorded({ referrer, references, changed, wasUnknown });
    this.#completeIfDone();
  }

  /** If no reconcile has succeeded since the start, the references of its copy are unknown. */
  markReconciled(referrer: ReferrerId): void {
    if (!this.#pending.delete(referrer)) return;
    this.#unknown.add(referrer);
    this.#completeIfDone();
  }

  markStale(referrer: ReferrerId): void {
    this.#stale.add(referrer);
  }

  referrersOf(id: ReferenceId): ReadonlySet<ReferrerId> {
    return this.#referrers.get(id) ?? NO_REFERRERS;
  }

  isReferenced(id: ReferenceId): boolean {
    return this.#referrers.has(id);
  }

  writtenBy(referrer: ReferrerId, id: ReferenceId): ObjectKey | undefined {
    return this.#named.get(referrer)?.get(id);
  }

  references(): Iterable<ReferenceId> {
    return this.#referrers.keys();
  }

  #replace(referrer: ReferrerId, named: NamedObjects): readonly ReferenceId[] {
    const before = this.#named.get(referrer) ?? NO_OBJECTS;
    const changed = [...named].filter(([id, hostKey]) => before.get(id) !== hostKey).map(([id]) => id);
    const removed = [...before.keys()].filter((id) => !named.has(id));
    for (const id of removed) this.#unlink(id, referrer);
    for (const id of changed) this.#link(id, referrer);
    if (named.size === 0) this.#named.delete(referrer);
    else this.#named.set(referrer, named);
    return [...changed, ...removed];
  }

  #link(id: ReferenceId, referrer: ReferrerId): void {
    const referrers = this.#referrers.get(id);
    if (referrers === undefined) this.#referrers.set(id, new Set([referrer]));
    else referrers.add(referrer);
  }

  #unlink(id: ReferenceId, referrer: ReferrerId): void {
    const referrers = this.#referrers.get(id);
    referrers?.delete(referrer);
    if (referrers?.size === 0) this.#referrers.delete(id);
  }

  #completeIfDone(): void {
    if (this.#isCompleted || !this.isComplete) return;
    this.#isCompleted = true;
    for (const observer of this.#observers) observer.completed();
  }
}

function namedBy(references: readonly TranslatedReference[]): NamedObjects {
  return new Map(
    references.map((reference) => [
      referenceIdOf(kindIdOf(reference), reference),
      reference.written === undefined ? '' : keyOf(reference.written),
    ]),
  );
}
