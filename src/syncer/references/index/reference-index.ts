/**
 * Which synced objects name which other objects, forward and back: plain state between two work queues. The reconcilers of synced objects
 * write it, the importer observes it, and neither calls the other. It lives in memory only: after a start it is complete once every
 * synced object has been decided once, and nothing may be removed for lack of references before.
 */

import { keyOf, type ObjectKey, type Resource } from '../../../kube/object.ts';
import type { TranslatedReference } from '../../patch/types.ts';
import type { ReferenceRecords } from '../../reconcile/reconciler-options.ts';
import { kindIdOf } from '../../translate/merge/recorded-kinds.ts';
import { referenceIdOf, type ReferenceId } from './reference-id.ts';

/** A synced object that names others (the referrer): its kind and key, such as `endpoints:namespace/name`. */
export type ReferrerId = string;

export function referrerIdOf({ plural }: Resource, key: ObjectKey): ReferrerId {
  return `${plural}:${key}`;
}

export function parseReferrerId(id: ReferrerId): { readonly plural: string; readonly key: ObjectKey } {
  const colon = id.indexOf(':');
  return { plural: id.slice(0, colon), key: id.slice(colon + 1) };
}

/** What one host copy names now. */
export interface RecordedReferences {
  readonly referrer: ReferrerId;
  readonly references: readonly TranslatedReference[];
  /** References that were added, removed, or go by another name. */
  readonly changed: readonly ReferenceId[];
  /** Nothing was known about this copy before. */
  readonly wasUnknown: boolean;
}

export interface ReferenceObserver {
  recorded(record: RecordedReferences): void;
  /** Every synced object has been decided once since the start. Called once. */
  completed(): void;
}

/** Reference → key of the host object that the host copy names for it; '' where the value stayed as it is. */
type NamedObjects = ReadonlyMap<ReferenceId, ObjectKey>;

const NO_OBJECTS: NamedObjects = new Map();
const NO_REFERRERS: ReadonlySet<ReferrerId> = new Set();

export class ReferenceIndex {
  readonly #named = new Map<ReferrerId, NamedObjects>();
  readonly #referrers = new Map<ReferenceId, Set<ReferrerId>>();
  /** Not decided since the start. */
  readonly #pending = new Set<ReferrerId>();
  /** Decided without success, so that it is not known what their copies name. */
  readonly #unknown = new Set<ReferrerId>();
  /** To be translated again, although neither side of them changed. */
  readonly #stale = new Set<ReferrerId>();
  readonly #observers: ReferenceObserver[] = [];
  #isBegun = false;
  #isCompleted = false;

  observe(observer: ReferenceObserver): void {
    this.#observers.push(observer);
  }

  /** What the reconciler of one kind writes and reads. */
  recordsOf(resource: Resource): ReferenceRecords {
    const idOf = (key: ObjectKey): ReferrerId => referrerIdOf(resource, key);
    return {
      isStale: (key) => this.#stale.has(idOf(key)),
      recordReferences: (key, references) => this.recordReferences(idOf(key), references),
      clearReferences: (key) => this.recordReferences(idOf(key), []),
      markReconciled: (key) => this.markReconciled(idOf(key)),
    };
  }

  /** These are all synced objects that exist at the start. */
  begin(referrers: Iterable<ReferrerId>): void {
    for (const id of referrers) this.#pending.add(id);
    this.#isBegun = true;
    this.#completeIfDone();
  }

  /** Every synced object has been decided once. */
  get isComplete(): boolean {
    return this.#isBegun && this.#pending.size === 0;
  }

  get unknown(): ReadonlySet<ReferrerId> {
    return this.#unknown;
  }

  /** The host copy of this object names exactly these. */
  recordReferences(referrer: ReferrerId, references: readonly TranslatedReference[]): void {
    const wasUnknown = this.#unknown.delete(referrer);
    this.#pending.delete(referrer);
    this.#stale.delete(referrer);
    const changed = this.#replace(referrer, namedBy(references));
    for (const observer of this.#observers) observer.recorded({ referrer, references, changed, wasUnknown });
    this.#completeIfDone();
  }

  /** This object was decided, with or without success. Without any success since the start it is not known what its copy names. */
  markReconciled(referrer: ReferrerId): void {
    if (!this.#pending.delete(referrer)) return;
    this.#unknown.add(referrer);
    this.#completeIfDone();
  }

  /** The copy of this object should name another object now. */
  markStale(referrer: ReferrerId): void {
    this.#stale.add(referrer);
  }

  referrersOf(id: ReferenceId): ReadonlySet<ReferrerId> {
    return this.#referrers.get(id) ?? NO_REFERRERS;
  }

  isReferenced(id: ReferenceId): boolean {
    return this.#referrers.has(id);
  }

  /** What the copy of this object names for the reference. */
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
