/** Create, update and delete: each is one conditional request to the host. */

import type { KubeObject } from '../../../../kube/object.ts';
import type { JsonObject } from '../../../../base/json.ts';
import { orderedKey, StoreError, type StoredEntry, type StoreKey } from '../../store.ts';
import { refusedByHost, unreadable } from '../host/host-errors.ts';
import type { HostSecrets } from '../host/host-secrets.ts';
import type { SecretCache } from '../read/secret-cache.ts';
import type { RetryBudget } from '../host/retry-budget.ts';
import { persist } from './persist.ts';
import type { SecretReader, Seen } from '../read/secret-reader.ts';
import { encodeSecret, revisionOf, updatePatch } from '../codec/secret-codec.ts';
import type { SecretNames } from '../codec/secret-names.ts';
import type { PendingWrite, WriteLedger } from './write-ledger.ts';

export interface SecretWriterOptions {
  readonly namespace: string;
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly reader: SecretReader;
  readonly cache: SecretCache;
  readonly ledger: WriteLedger;
  /** Another text for each write, of any replica. */
  readonly newWriteId: () => string;
  /** How long the event of a write is waited for where it is needed. */
  readonly eventWaitMs: number;
}

const MISSED = 'the events that would tell were missed';

export class SecretWriter {
  readonly #options: SecretWriterOptions;

  constructor(options: SecretWriterOptions) {
    this.#options = options;
  }

  async create(key: StoreKey, value: JsonObject, budget: RetryBudget): Promise<StoredEntry> {
    const { names, secrets, ledger, reader, namespace } = this.#options;
    const writeId = this.#options.newWriteId();
    const secret = await encodeSecret(names, { key, value, writeId });
    const { name } = secret.metadata;
    const pending = ledger.open(name, { writeId });
    try {
      return await persist(budget, namespace, {
        send: async (request) => written(key, value, await secrets.create(secret, request)),
        settle: () => this.#whatBecameOf(key, { writeId, pending, budget }),
        refusal: async (error) => {
          // A 404 speaks of the namespace: the host has nothing to create in.
          if (error.code === 404) throw refusedByHost(error, namespace);
          const seen = await reader.see(key, budget);
          return seen.state === 'missing' ? undefined : taken(key, seen);
        },
      });
    } finally {
      pending.close();
    }
  }

  async update(
    key: StoreKey,
    value: JsonObject,
    expectedRevision: number,
    budget: RetryBudget,
  ): Promise<StoredEntry> {
    const { names, secrets, ledger, namespace } = this.#options;
    const writeId = this.#options.newWriteId();
    const secret = await encodeSecret(names, { key, value, writeId });
    const { name } = secret.metadata;
    const body = updatePatch(secret, expectedRevision);
    const pending = ledger.open(name, { writeId });
    try {
      return await persist(budget, namespace, {
        send: async (request) => written(key, value, await secrets.patch(name, body, request)),
        settle: () => this.#whatBecameOf(key, { writeId, pending, budget, expectedRevision }),
        refusal: () => this.#mismatch(key, expectedRevision, budget),
      });
    } finally {
      pending.close();
    }
  }

  async delete(key: StoreKey, expectedRevision: number, budget: RetryBudget): Promise<StoredEntry> {
    const { names, secrets, ledger, cache, namespace } = this.#options;
    const name = names.object(key);
    const known = cache.held(name)?.entry;
    const last =
      known?.revision === expectedRevision ? known : await this.#expect(key, expectedRevision, budget);
    const pending = ledger.open(name, { deletedRevision: expectedRevision });
    try {
      return await persist(budget, namespace, {
        send: async (request) => {
          await secrets.delete(name, expectedRevision, request);
          return await this.#deletion(last, pending, budget);
        },
        settle: () => this.#whatBecameOfDeletion(last, { pending, budget }),
        refusal: () => this.#mismatch(key, expectedRevision, budget),
      });
    } finally {
      pending.close();
    }
  }

  /**
   * The last state at the revision of its deletion; that is in the event, and nowhere else. When the event does not come in time, a
   * revision after it has to do.
   */
  async #deletion(last: StoredEntry, pending: PendingWrite, budget: RetryBudget): Promise<StoredEntry> {
    const isOver = (): boolean => pending.seen !== undefined || pending.isBlind;
    await this.#until(isOver, budget, this.#options.eventWaitMs);
    if (pending.seen !== undefined) return pending.seen;
    // It has happened: whatever goes wrong from here on must not say that it has not.
    budget.markOutcomeUnknown();
    return { ...last, revision: await this.#options.reader.revision(budget) };
  }

  /** A write whose answer was lost. */
  async #whatBecameOf(
    key: StoreKey,
    write: { writeId: string; pending: PendingWrite; budget: RetryBudget; expectedRevision?: number },
  ): Promise<StoredEntry | undefined> {
    const { writeId, pending, budget, expectedRevision } = write;
    const { reader } = this.#options;
    if (pending.seen !== undefined) return pending.seen;
    const seen = await reader.see(key, budget);
    if (seen.state === 'entry') {
      const { entry } = seen;
      if (seen.writeId === writeId) return entry;
      if (entry.revision === expectedRevision) return undefined;
    }
    if (seen.state === 'missing' && expectedRevision === undefined) {
      // A create that left nothing behind, not even an event, has not happened.
      const isOver = (): boolean => pending.seen !== undefined || pending.isBlind;
      await this.#until(isOver, budget, this.#options.eventWaitMs);
      if (pending.seen === undefined && pending.isBlind) throw budget.exhausted(MISSED);
      return pending.seen;
    }
    // Somebody has written since, perhaps over what this write made: the cache sees every state go by.
    return await this.#fromEvents(key, seen, { pending, budget, expectedRevision: expectedRevision ?? 0 });
  }

  /** A deletion whose answer was lost. */
  async #whatBecameOfDeletion(
    last: StoredEntry,
    { pending, budget }: { pending: PendingWrite; budget: RetryBudget },
  ): Promise<StoredEntry | undefined> {
    if (pending.seen !== undefined) return pending.seen;
    const seen = await this.#options.reader.see(last.key, budget);
    if (seen.state === 'entry' && seen.entry.revision === last.revision) return undefined;
    return await this.#fromEvents(last.key, seen, { pending, budget, expectedRevision: last.revision });
  }

  /** Waits until the cache has come to what was `seen`; then it knows whether this write was on the way there. */
  async #fromEvents(
    key: StoreKey,
    seen: Seen,
    write: { pending: PendingWrite; budget: RetryBudget; expectedRevision: number },
  ): Promise<StoredEntry | undefined> {
    const { cache, names } = this.#options;
    const { pending, budget, expectedRevision } = write;
    const name = names.object(key);
    const hasCaughtUp = (): boolean =>
      seen.state === 'entry'
        ? cache.revision >= seen.entry.revision
        : cache.revision >= expectedRevision && cache.held(name) === undefined;
    await this.#until(
      () => pending.seen !== undefined || pending.isBlind || hasCaughtUp(),
      budget,
      budget.leftMs,
    );
    if (pending.seen !== undefined) return pending.seen;
    if (!pending.isBlind && hasCaughtUp()) return undefined;
    throw budget.exhausted(MISSED);
  }

  async #expect(key: StoreKey, expectedRevision: number, budget: RetryBudget): Promise<StoredEntry> {
    const seen = await this.#options.reader.see(key, budget);
    if (seen.state === 'entry' && seen.entry.revision === expectedRevision) return seen.entry;
    throw mismatch(key, expectedRevision, seen);
  }

  async #mismatch(
    key: StoreKey,
    expectedRevision: number,
    budget: RetryBudget,
  ): Promise<StoreError | undefined> {
    const seen = await this.#options.reader.see(key, budget);
    if (seen.state === 'entry' && seen.entry.revision === expectedRevision) return undefined;
    return mismatch(key, expectedRevision, seen);
  }

  async #until(isMet: () => boolean, budget: RetryBudget, timeoutMs: number): Promise<void> {
    await this.#options.cache.until(isMet, Math.min(budget.leftMs, timeoutMs));
    budget.checkOpen();
  }
}

function written(key: StoreKey, value: JsonObject, answer: KubeObject): StoredEntry {
  return { key, value, revision: revisionOf(answer) };
}

function taken(key: StoreKey, seen: Exclude<Seen, { state: 'missing' }>): StoreError {
  if (seen.state !== 'entry') return unreadable(key, seen.why);
  return new StoreError('exists', `${key.resource} ${orderedKey(key)} exists`, seen.entry);
}

function mismatch(key: StoreKey, expectedRevision: number, seen: Seen): StoreError {
  const what = `${key.resource} ${orderedKey(key)}`;
  if (seen.state === 'damaged') return unreadable(key, seen.why);
  if (seen.state !== 'entry') return new StoreError('missing', `${what} does not exist`);
  const message = `${what} is at revision ${seen.entry.revision}, not ${expectedRevision}`;
  return new StoreError('conflict', message, seen.entry);
}
