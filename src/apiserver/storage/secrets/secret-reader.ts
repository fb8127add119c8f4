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
import type { SecretDecoder, SecretNames } from './secret-codec.ts';
import type { ListWatch } from '../../../kube/informer/list-watch.ts';
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

export interface SecretReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly decoder: SecretDecoder;
  readonly listWatch: Pick<ListWatch, 'newestVersion' | 'observe'>;
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
    const { names, secrets, cache, decoder, listWatch } = this.#options;
    const name = names.object(key);
    const secret = await budget.read((request) => secrets.get(name, request));
    if (secret === undefined) return { state: 'missing' };
    const decoded = decoder.decode(secret, cache.held(name));
    switch (decoded.state) {
      case 'held':
        listWatch.observe(String(decoded.entry.revision));
        return { state: 'entry', entry: decoded.entry, writeId: decoded.writeId };
      case 'damaged':
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
    const { secrets, listWatch } = this.#options;
    const known = listWatch.newestVersion;
    const revision = await budget.read((request) => secrets.revision(request));
    listWatch.observe(String(revision), known);
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

  async #snapshot(range: StoreRange, atRevision: number | undefined, budget: RetryBudget): Promise<Snapshot> {
    if (atRevision !== undefined) {
      const kept = this.#snapshots.get(this.#keyOf(range, atRevision));
      if (kept !== undefined) return kept;
    }
    const selector = this.#options.names.objectSelector(range);
    const { secrets, listWatch } = this.#options;
    const known = atRevision === undefined ? listWatch.newestVersion : undefined;
    const list = await budget
      .read((request) => secrets.list(selector, request, atRevision))
      .catch((error: unknown) => {
        throw listError(error, atRevision);
      });
    listWatch.observe(String(list.revision), known);
    // The resourceVersion of an exact list is not specified.
    return { revision: atRevision ?? list.revision, entries: this.#decoded(list) };
  }

  #decoded({ secrets }: SecretList): readonly StoredEntry[] {
    const { cache, decoder } = this.#options;
    const found: [string, StoredEntry][] = [];
    for (const secret of secrets) {
      const decoded = decoder.decode(secret, cache.held(secret.metadata.name));
      if (decoded.state === 'held') found.push([orderedKey(decoded.entry.key), decoded.entry]);
    }
    return found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, entry]) => entry);
  }

  #keep(range: StoreRange, snapshot: Snapshot): void {
    const key = this.#keyOf(range, snapshot.revision);
    this.#snapshots.delete(key);
    this.#snapshots.set(key, snapshot);
    if (this.#snapshots.size <= SNAPSHOTS_MAX) return;
    for (const oldest of this.#snapshots.keys()) {
      this.#snapshots.delete(oldest);
      return;
    }
  }

  /** A restored host assigns revisions again. */
  #keyOf({ resource, namespace }: StoreRange, revision: number): string {
    return JSON.stringify([resource, namespace ?? null, revision, this.#options.cache.restarts]);
  }
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
