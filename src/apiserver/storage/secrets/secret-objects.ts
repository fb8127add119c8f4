/** Reads and writes objects by requests to the host, so that every replica sees the writes of all others. A write is one request with a precondition. */

import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../../../base/json.ts';
import type { Random } from '../../../base/random.ts';
import type { ListWatch } from '../../../kube/informer/list-watch.ts';
import { type KubeObject, orderedKey } from '../../../kube/object.ts';
import { StatusError } from '../../../kube/status-error.ts';
import type { RequestOptions } from '../../../kube/types.ts';
import {
  StoreError,
  type ListPage,
  type ListResult,
  type StoredEntry,
  type StoreKey,
  type StoreRange,
} from '../store.ts';
import {
  failureKindOf,
  rejectedByHost,
  unreadable,
  type HostSecrets,
  type RetryBudget,
  type SecretList,
} from './host-secrets.ts';
import type { PendingWrite, SecretCache, Sought } from './secret-cache.ts';
import {
  encodeSecret,
  revisionOf,
  updatePatch,
  type SecretDecoder,
  type SecretNames,
} from './secret-codec.ts';

type LookUp =
  | { readonly state: 'entry'; readonly entry: StoredEntry; readonly writeId: string }
  | { readonly state: 'missing' }
  /** The Secret is not a valid object of the store; `why` is for the operator. */
  | { readonly state: 'damaged'; readonly why: string }
  /** The Secret is being deleted, but has a finalizer. */
  | { readonly state: 'terminating'; readonly why: string };

interface SecretObjectsOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly decoder: SecretDecoder;
  readonly listWatch: Pick<ListWatch, 'newestVersion' | 'observe'>;
  readonly random: Random;
  /** Timeout of waiting for the event of a write. */
  readonly eventWaitMs: number;
}

/** A complete, ordered range at a revision. It is immutable, so it can be cached. */
interface Snapshot {
  readonly revision: number;
  readonly entries: readonly StoredEntry[];
}

/** Number of cached lists that clients are paging through. They share most entries with the cache. */
const SNAPSHOTS_MAX = 4;

/** One write, which is sent until its outcome is known. */
interface Write {
  readonly key: StoreKey;
  readonly sought: Sought;
  /** The revision that it replaces or removes; undefined: a create. */
  readonly expectedRevision: number | undefined;
  readonly budget: RetryBudget;
  send(request: RequestOptions, pending: PendingWrite): Promise<StoredEntry>;
}

const MISSED = 'the events that would tell the outcome were missed';

export class SecretObjects {
  readonly #options: SecretObjectsOptions;
  /** By range and revision. */
  readonly #snapshots = new LRUCache<string, Snapshot>({ max: SNAPSHOTS_MAX });
  readonly #newWriteId: () => string;

  constructor(options: SecretObjectsOptions) {
    this.#options = options;
    this.#newWriteId = writeIds(options.random);
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
    if (remaining > 0) this.#snapshots.set(this.#keyOf(range, snapshot.revision), snapshot);
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

  /** A restored host assigns revisions again. */
  #keyOf({ resource, namespace }: StoreRange, revision: number): string {
    return JSON.stringify([resource, namespace ?? null, revision, this.#options.cache.restarts]);
  }

  /** Creates the object, or replaces its state at `expectedRevision`. */
  async put(
    key: StoreKey,
    value: JsonObject,
    expectedRevision: number | undefined,
    budget: RetryBudget,
  ): Promise<StoredEntry> {
    const { names, secrets } = this.#options;
    const writeId = this.#newWriteId();
    const secret = await encodeSecret(names, { key, value, writeId });
    const sent = (request: RequestOptions): Promise<KubeObject> =>
      expectedRevision === undefined
        ? secrets.create(secret, request)
        : secrets.patch(secret.metadata.name, updatePatch(secret, expectedRevision), request);
    return this.#persist({
      key,
      sought: { writeId },
      expectedRevision,
      budget,
      send: async (request) => ({ key, value, revision: revisionOf(await sent(request)) }),
    });
  }

  async delete(key: StoreKey, expectedRevision: number, budget: RetryBudget): Promise<StoredEntry> {
    const { names, secrets, cache } = this.#options;
    const name = names.object(key);
    const known = cache.held(name)?.entry;
    const last =
      known?.revision === expectedRevision ? known : await this.#expect(key, expectedRevision, budget);
    return this.#persist({
      key,
      sought: { deletedRevision: expectedRevision },
      expectedRevision,
      budget,
      send: async (request, pending) => {
        await secrets.delete(name, expectedRevision, request);
        return await this.#deletion(last, pending, budget);
      },
    });
  }

  /** INVARIANT: after a lost response the write is looked for before it is sent again, so it never happens twice and never conflicts with itself. */
  async #persist(write: Write): Promise<StoredEntry> {
    const { names, secrets, cache } = this.#options;
    const { key, sought, budget } = write;
    using pending = cache.ledger.open(names.object(key), sought);
    for (;;) {
      let failure: unknown;
      try {
        return await write.send(budget.request, pending);
      } catch (error) {
        failure = error;
      }
      budget.checkOpen();
      const kind = failureKindOf(failure);
      if (kind === 'permanent') throw rejectedByHost(failure, secrets.namespace);
      if (kind === 'outcome-unknown') budget.isOutcomeUnknown = true;
      if (budget.isOutcomeUnknown) {
        const done = await this.#outcomeOf(write, pending);
        if (done !== undefined) return done;
      }
      if (kind === 'decided') {
        const rejection = await this.#rejection(write, failure as StatusError); // only a StatusError is `decided`
        if (rejection !== undefined) throw rejection;
      }
      await budget.pause(failure);
    }
  }

  /**
   * The last state at the revision of its deletion, which only the event has. Without the event in time, the current revision is used.
   */
  async #deletion(last: StoredEntry, pending: PendingWrite, budget: RetryBudget): Promise<StoredEntry> {
    await this.#until(() => isOver(pending), budget, this.#options.eventWaitMs);
    if (pending.seen !== undefined) return pending.seen;
    // The deletion has happened: a later error must not claim the opposite.
    budget.isOutcomeUnknown = true;
    return { ...last, revision: await this.revision(budget) };
  }

  /** After a lost response: the result of the write, or undefined when it has not happened. Throws when the outcome cannot be determined. */
  async #outcomeOf(write: Write, pending: PendingWrite): Promise<StoredEntry | undefined> {
    const { key, sought, expectedRevision, budget } = write;
    const { cache, names, eventWaitMs } = this.#options;
    if (pending.seen !== undefined) return pending.seen;
    const found = await this.lookUp(key, budget);
    if (found.state === 'entry') {
      if ('writeId' in sought && found.writeId === sought.writeId) return found.entry;
      if (found.entry.revision === expectedRevision) return undefined;
    }
    // Without an object and without an event, a create has not happened.
    const isCreateMissing = found.state === 'missing' && expectedRevision === undefined;
    // Otherwise another write came later, perhaps after this one: the cache receives the events of both.
    const hasCaughtUp = (): boolean =>
      found.state === 'entry'
        ? cache.revision >= found.entry.revision
        : cache.revision >= (expectedRevision ?? 0) && cache.held(names.object(key)) === undefined;
    const isKnown = (): boolean => isOver(pending) || (!isCreateMissing && hasCaughtUp());
    await this.#until(isKnown, budget, isCreateMissing ? eventWaitMs : budget.leftMs);
    if (pending.seen !== undefined) return pending.seen;
    if (!pending.isBlind && (isCreateMissing || hasCaughtUp())) return undefined;
    throw budget.exhausted(MISSED);
  }

  async #expect(key: StoreKey, expectedRevision: number, budget: RetryBudget): Promise<StoredEntry> {
    const found = await this.lookUp(key, budget);
    if (found.state === 'entry' && found.entry.revision === expectedRevision) return found.entry;
    throw mismatch(key, expectedRevision, found);
  }

  /** The error that a 404, 409 or 410 stands for; undefined when the state has changed since, so that a retry makes sense. */
  async #rejection(
    { key, expectedRevision, budget }: Write,
    error: StatusError,
  ): Promise<StoreError | undefined> {
    const { secrets } = this.#options;
    // The namespace does not exist.
    if (expectedRevision === undefined && error.code === 404) throw rejectedByHost(error, secrets.namespace);
    const found = await this.lookUp(key, budget);
    if (expectedRevision === undefined) return found.state === 'missing' ? undefined : exists(key, found);
    if (found.state === 'entry' && found.entry.revision === expectedRevision) return undefined;
    return mismatch(key, expectedRevision, found);
  }

  async #until(isMet: () => boolean, budget: RetryBudget, timeoutMs: number): Promise<void> {
    await this.#options.cache.until(isMet, Math.min(budget.leftMs, timeoutMs));
    budget.checkOpen();
  }
}

function isOver({ seen, isBlind }: PendingWrite): boolean {
  return seen !== undefined || isBlind;
}

function exists(key: StoreKey, found: Exclude<LookUp, { state: 'missing' }>): StoreError {
  if (found.state !== 'entry') return unreadable(key, found.why);
  return new StoreError('exists', `${key.resource} ${orderedKey(key)} exists`, found.entry);
}

function mismatch(key: StoreKey, expectedRevision: number, found: LookUp): StoreError {
  const what = `${key.resource} ${orderedKey(key)}`;
  if (found.state === 'damaged') return unreadable(key, found.why);
  if (found.state !== 'entry') return new StoreError('missing', `${what} does not exist`);
  const message = `${what} is at revision ${found.entry.revision}, not ${expectedRevision}`;
  return new StoreError('conflict', message, found.entry);
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

function writeIds(random: Random): () => string {
  const part = (): string => Math.floor(random() * 2 ** 32).toString(36);
  const replica = part() + part();
  let count = 0;
  return () => `${replica}-${(++count).toString(36)}`;
}
