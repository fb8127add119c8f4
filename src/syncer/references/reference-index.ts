/** The references of all synced objects, and the objects that have them. In memory only: after a start, it is complete once every synced object has
 * been reconciled, and until then, no import may be removed as unreferenced. */

import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
  type NamespacedName,
} from '../../kube/object.ts';
import type { Lister } from '../../kube/types.ts';
import type { TranslatedReference } from '../patch/types.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';
import type { NameTranslator } from '../translate/types.ts';

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

/** A synced kind, as a `KindSync` is one. */
export interface ReferrerKind {
  readonly kind: { readonly resource: Resource };
  readonly virtual: Pick<Lister, 'get' | 'list'>;
  readonly host: Pick<Lister, 'get'>;
  enqueue(key: ObjectKey): void;
}

export interface Referrer {
  readonly object: KubeObject;
  readonly resource: Resource;
}

interface Recorded {
  /** References that were added, removed or renamed. */
  readonly changed: readonly ReferenceId[];
  readonly wasUnknown: boolean;
}

/** Reference → key of the host object that the host copy references for it; '' if the value was not translated. */
type NamedObjects = ReadonlyMap<ReferenceId, ObjectKey>;

const NO_OBJECTS: NamedObjects = new Map();
const NO_REFERRERS: ReadonlySet<ReferrerId> = new Set();

export class ReferenceIndex {
  readonly #kinds: readonly ReferrerKind[];
  readonly #translator: Pick<NameTranslator, 'toHost'>;
  readonly #named = new Map<ReferrerId, NamedObjects>();
  readonly #referrers = new Map<ReferenceId, Set<ReferrerId>>();
  readonly #pending = new Set<ReferrerId>();
  /** The first reconcile failed, so the references of the copies are unknown. */
  readonly #unknown = new Set<ReferrerId>();
  /** To be translated again, although neither side of the pair changed. */
  readonly #stale = new Set<ReferrerId>();
  #isBegun = false;

  /** `kinds`: all of them once it {@link begin}s. */
  constructor(kinds: readonly ReferrerKind[], translator: Pick<NameTranslator, 'toHost'>) {
    this.#kinds = kinds;
    this.#translator = translator;
  }

  begin(): void {
    for (const { kind, virtual } of this.#kinds)
      for (const object of virtual.list()) this.#pending.add(referrerIdOf(kind.resource, objectKey(object)));
    this.#isBegun = true;
  }

  get isComplete(): boolean {
    return this.#isBegun && this.#pending.size === 0;
  }

  get unknown(): ReadonlySet<ReferrerId> {
    return this.#unknown;
  }

  record(referrer: ReferrerId, references: readonly TranslatedReference[]): Recorded {
    const wasUnknown = this.#unknown.delete(referrer);
    this.#pending.delete(referrer);
    this.#stale.delete(referrer);
    return { changed: this.#replace(referrer, namedBy(references)), wasUnknown };
  }

  /** If no reconcile has succeeded since the start, the references of its copy are unknown. */
  markReconciled(referrer: ReferrerId): void {
    if (this.#pending.delete(referrer)) this.#unknown.add(referrer);
  }

  isStale(referrer: ReferrerId): boolean {
    return this.#stale.has(referrer);
  }

  /** Its references are to be translated again. */
  decideAgain(referrer: ReferrerId): void {
    this.#stale.add(referrer);
    const found = this.#find(referrer);
    found?.kind.enqueue(found.key);
  }

  referrer(id: ReferrerId): Referrer | undefined {
    const found = this.#find(id);
    const object = found?.kind.virtual.get(found.key);
    return object && found && { object, resource: found.kind.kind.resource };
  }

  /** The host object at the place of the copy. */
  hostCopy(id: ReferrerId): KubeObject | undefined {
    const found = this.#find(id);
    const target = found && this.#translator.toHost(parseKey(found.key));
    return target && found.kind.host.get(keyOf(target));
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

  #find(id: ReferrerId): { readonly kind: ReferrerKind; readonly key: ObjectKey } | undefined {
    const colon = id.indexOf(':');
    const kind = this.#kinds.find(({ kind: { resource } }) => resource.plural === id.slice(0, colon));
    return kind && { kind, key: id.slice(colon + 1) };
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
