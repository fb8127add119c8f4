/** Reads the state from the host, so that every replica sees the writes of all others: objects, and lists whose pages show one revision. */

import { orderedKey } from '../../../kube/object.ts';
import { StatusError } from '../../../kube/status-error.ts';
import {
  StoreError,
  type ListPage,
  type ListResult,
  type StoredEntry,
  type StoreKey,
  type StoreRange,
} from '../store.ts';
import { type DamageReport, decodeSecret, type SecretNames } from './secret-codec.ts';
import type { HostSecrets, SecretList, RetryBudget } from './host-secrets.ts';
import type { SecretCache } from './secret-cache.ts';

/** The result of looking up a key. */
export type LookUp =
  | { readonly state: 'entry'; readonly entry: StoredEntry; readonly writeId: string }
  | { readonly state: 'missing' }
  /** The Secret is not a valid object of the store; `why` is for the operator. */
  | { readonly state: 'damaged'; readonly why: string }
  /** The Secret is being deleted, but has a finalizer. */
  | { readonly state: 'terminating'; readonly why: string };

/** The newest revision of the host that this replica knows. */
export interface KnownRevisions {
  newest(): string;
  /** `knownWhenSent`: the {@link newest} when a request was sent whose response cannot show an older revision, unless the host was restored. */
  observe(revision: number, knownWhenSent?: string): void;
}

export interface SecretReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly damage: DamageReport;
  readonly revisions: KnownRevisions;
}

/** A complete, ordered range at a revision. It is immutable, so it can be cached. */
interface Snapshot {
  readonly revision: number;
  readonly entries: readonly StoredEntry[];
}

/** Number of cached lists that clients are paging through. They share most entries with the cache. */
const SNAPSHOTS_MAX = 4;

export class SecretReader {
  readonly #options: SecretReaderOptions;
  /** By range and revision, least recently used first. */
  readonly #snapshots = new Map<string, Snapshot>();

  constructor(options: SecretReaderOptions) {
    this.#options = options;
  }

  async lookUp(key: StoreKey, budget: RetryBudget): Promise<LookUp> {
    const { names, secrets, cache, damage, revisions } = this.#options;
    const name = names.object(key);
    const secret = await budget.read((request) => secrets.get(name, request));
    if (secret === undefined) return { state: 'missing' };
    const decoded = decodeSecret(names, secret, cache.held(name));
    switch (decoded.state) {
      case 'held':
        revisions.observe(decoded.entry.revision);
        return { state: 'entry', entry: decoded.entry, writeId: decoded.writeId };
      case 'damaged':
        damage.found(secret, decoded.why);
        return {
          state: 'damaged',
          why: `its Secret ${name} cannot be read, ${decoded.why}: restore it from a backup, or delete it`,
        };
      case 'terminating':
        return {
          state: 'terminating',
          why: `its Secret ${name} is being deleted but has a finalizer: remove the finalizer`,
        };
    }
  }

  /** The current revision. */
  async revision(budget: RetryBudget): Promise<number> {
    const { secrets, revisions } = this.#options;
    const known = revisions.newest();
    const revision = await budget.read((request) => secrets.revision(request));
    revisions.observe(revision, known);
    return revision;
  }

  /** `page.atRevision`, when set, must have happened. Rejects with `StoreError` `compacted`. */
  async list(range: StoreRange, page: ListPage, budget: RetryBudget): Promise<ListResult> {
    const snapshot = await this.#snapshot(range, page.atRevision, budget);
    const all = page.after === undefined ? snapshot.entries : entriesAfter(snapshot.entries, page.after);
    const limit = page.limit ? page.limit : all.length;
    const remaining = Math.max(0, all.length - limit);
    if (remaining > 0) this.#keep(range, snapshot);
    return { entries: all.slice(0, limit), revision: snapshot.revision, remaining };
  }

  /** The revisions of the host have restarted. */
  forget(): void {
    this.#snapshots.clear();
  }

  async #snapshot(range: StoreRange, atRevision: number | undefined, budget: RetryBudget): Promise<Snapshot> {
    if (atRevision !== undefined) {
      const kept = this.#snapshots.get(snapshotKey(range, atRevision));
      if (kept !== undefined) return kept;
    }
    const selector = this.#options.names.objectSelector(range);
    const { secrets, revisions } = this.#options;
    const known = atRevision === undefined ? revisions.newest() : undefined;
    const list = await budget
      .read((request) => secrets.list(selector, request, atRevision))
      .catch((error: unknown) => {
        throw listError(error, atRevision);
      });
    revisions.observe(list.revision, known);
    // The resourceVersion of an exact list is not specified.
    return { revision: atRevision ?? list.revision, entries: this.#decoded(list) };
  }

  #decoded({ secrets }: SecretList): readonly StoredEntry[] {
    const { names, cache, damage } = this.#options;
    const found: [string, StoredEntry][] = [];
    for (const secret of secrets) {
      const decoded = decodeSecret(names, secret, cache.held(secret.metadata.name));
      if (decoded.state === 'damaged') damage.found(secret, decoded.why);
      if (decoded.state === 'held') found.push([orderedKey(decoded.entry.key), decoded.entry]);
    }
    return found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, entry]) => entry);
  }

  #keep(range: StoreRange, snapshot: Snapshot): void {
    const key = snapshotKey(range, snapshot.revision);
    this.#snapshots.delete(key);
    this.#snapshots.set(key, snapshot);
    if (this.#snapshots.size <= SNAPSHOTS_MAX) return;
    for (const oldest of this.#snapshots.keys()) {
      this.#snapshots.delete(oldest);
      return;
    }
  }
}

function snapshotKey({ resource, namespace }: StoreRange, revision: number): string {
  return JSON.stringify([resource, namespace ?? null, revision]);
}

function entriesAfter(entries: readonly StoredEntry[], after: string): readonly StoredEntry[] {
  const index = entries.findIndex(({ key }) => orderedKey(key) > after);
  return index < 0 ? [] : entries.slice(index);
}

function listError(error: unknown, atRevision: number | undefined): unknown {
  if (!(error instanceof StatusError) || error.code !== 410) return error;
  return new StoreError(
    'compacted',
    `the host cluster has compacted revision ${atRevision ?? 'of this list'}`,
  );
}
