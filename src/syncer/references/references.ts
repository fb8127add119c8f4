/**
 * References of synced objects to other objects: translation of the names, and import of the named objects.
 *
 * The reconcilers record which objects a host copy names, and patches ask {@link References.lookup} for names. Everything else is
 * keyed by referenced object and has a work queue of its own:
 * - `reference-changes.ts`: which of them an event, or a recorded reference, concerns, and which copies have to name another object;
 * - `decide-reference.ts`: what both sides hold of one, its name on the host, and in which direction it is imported;
 * - `importer.ts`: removes the copies that are not needed, and writes the one that is;
 * - `kind-registry.ts`, `former-kinds.ts`: kinds that appear later, that cannot be watched, and that no patch names any more. */

import { groupOf, keyOf, type NamespacedName } from '../../kube/object.ts';
import { Postponed } from '../../base/errors.ts';
import type { CacheEvent, ClusterName } from '../../kube/types.ts';
import type { ReferenceRules } from '../patch/reference-translation.ts';
import type { ObjectReference, ReferenceLookup } from '../patch/types.ts';
import { Controller } from '../reconcile/controller.ts';
import type { VirtualObjectId } from '../reconcile/dry-run.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';
import { isCopiedByKind } from '../kinds/synced-kinds.ts';
import { sourceKeyOf, virtualNamed } from './decide-reference.ts';
import { refusalRules } from './refusals.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { Importer } from './importer.ts';
import { parseReferenceId, type ReferenceId, ReferenceIndex, type ReferrerKind } from './reference-index.ts';
import type { KindCaches } from './kind-caches.ts';
import { KindRegistry } from './kind-registry.ts';
import { partsOfKind, type ReferencedKind } from './referenced-kind.ts';
import { FormerKinds } from './former-kinds.ts';
import { ReferenceChanges } from './reference-changes.ts';
import { ReferenceNotices } from './reference-notices.ts';
import { deleteUnmapped, type UnmappedOptions } from '../reconcile/marked-copies.ts';

export class References {
  /** For patches: the name of an object on the other side, if it differs from the naming rule. */
  readonly lookup: ReferenceLookup;
  /** For patches: starts to watch kinds that only objects name, so that `lookup` knows their objects. */
  readonly prepare: NonNullable<ReferenceRules['prepare']>;
  readonly #environment: ReferenceEnvironment;
  readonly kinds: KindRegistry;
  readonly former: FormerKinds;
  readonly #notices: ReferenceNotices;
  readonly #importer: Importer;
  readonly controller: Controller;
  readonly changes: ReferenceChanges;

  /** `referring`: the synced kinds, all of them once it runs. */
  constructor(
    environment: ReferenceEnvironment,
    named: readonly ReferencedKind[],
    referring: readonly ReferrerKind[],
  ) {
    const { names } = environment;
    const index = new ReferenceIndex(referring, names);
    this.#environment = environment;
    this.#notices = new ReferenceNotices(environment, index);
    this.kinds = new KindRegistry(environment, named, {
      changed: (caches, cluster, event) => this.#onEvent(caches, cluster, event),
      opened: (caches) => this.changes.kindOpened(caches),
      retry: (kind) => this.changes.kindRetried(kind),
    });
    this.former = new FormerKinds(environment, this.kinds);
    const parts = {
      index,
      rules: refusalRules(environment.config),
      kinds: this.kinds,
      notices: this.#notices,
    };
    const enqueue = (id: ReferenceId): void => this.controller.queue.add(id);
    this.changes = new ReferenceChanges({ ...parts, names, enqueue });
    this.#importer = new Importer({ ...parts, environment, changes: this.changes });
    this.controller = new Controller({
      ...environment,
      name: 'references',
      identify: identityOf,
      reconcile: (id) => this.#importer.reconcile(id),
      stateOf: (id) => this.#importer.stateOf(id),
      warn: (id, { reason, note }) => this.#notices.alert(id, reason, note),
    });
    this.lookup = this.#createLookup();
    this.prepare = (kinds) => this.#prepare(kinds.map(kindIdOf));
  }

  get importedKinds(): readonly KindId[] {
    return [...this.kinds.ids, ...this.former.inherited];
  }

  /** The kind is one that an object names, and its API server may be slow. */
  #prepare(kinds: readonly KindId[]): void {
    const opening = this.kinds.open(kinds);
    if (opening !== undefined)
      throw new Postponed('the caches of a kind that it references are filled', opening);
  }

  async run(): Promise<void> {
    this.changes.begin();
    await this.controller.run();
  }

  /** Imports have the owner of the copies. */
  renewAll(): void {
    this.#importer.forgetAllVersions();
    this.changes.recheckImports();
  }

  async sweepUnmapped(attempts: UnmappedOptions['retry']): Promise<void> {
    const { clients, names, logger } = this.#environment;
    const parts = { host: clients.host, names, retry: attempts, logger };
    const ofKind = ({ virtualCache, sides: { host } }: KindCaches): Promise<boolean> =>
      deleteUnmapped({ ...parts, resource: host.resource, virtual: virtualCache, writer: host.writer });
    const kinds = this.kinds.all().filter(({ kind }) => kind.isSynced);
    await Promise.all(kinds.map(ofKind));
  }

  async closed(): Promise<void> {
    await Promise.all([this.former.closed(), this.kinds.closed()]);
  }

  #onEvent(caches: KindCaches, cluster: ClusterName, event: CacheEvent): void {
    for (const id of this.changes.affectedBy(caches, cluster, event)) {
      if (event.mayBeRestored === true) this.#importer.forgetVersions(id);
      // The cache already knows our own deletions, so this one is by another client.
      if (event.type === 'deleted') this.#importer.noteDeletion(id, cluster);
      this.changes.recheck(id);
    }
  }

  #createLookup(): ReferenceLookup {
    return (reference, direction, onHost) => {
      const id = kindIdOf(reference);
      if (this.kinds.isClusterScoped(id)) return { namespace: '', name: reference.name };
      const caches = this.kinds.caches(id);
      if (caches === undefined) return direction === 'toHost' ? this.#kept(reference, onHost?.()) : undefined;
      if (direction === 'toHost') {
        const { name, holder } = this.changes.decide(caches, reference);
        return holder === undefined ? name : { holder };
      }
      return virtualNamed(caches, reference, this.#environment.names);
    };
  }

  /** The copy names an object of the host: while its kind is not watched, no event tells that it is gone. */
  #kept(reference: ObjectReference, onHost: NamespacedName | undefined): NamespacedName | undefined {
    const { policy } = this.kinds;
    const kind = { group: groupOf(reference.apiVersion), kind: reference.kind };
    const parts = { isNamed: policy.isNamed(kind), isImportable: !isCopiedByKind(kind) };
    const source = sourceKeyOf(parts, reference, this.#environment.names);
    return onHost && keyOf(onHost) === source ? onHost : undefined;
  }
}

function identityOf(id: ReferenceId): VirtualObjectId {
  const { kind: kindId, namespace, name } = parseReferenceId(id);
  const { apiVersion, kind } = partsOfKind(kindId);
  return { group: groupOf(apiVersion), kind, key: keyOf({ namespace, name }) };
}
