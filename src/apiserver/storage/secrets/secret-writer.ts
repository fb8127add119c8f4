/** Create, update and delete: each is one request to the host with a precondition. */

import { type KubeObject, orderedKey } from '../../../kube/object.ts';
import type { JsonObject } from '../../../base/json.ts';
import { type StoredEntry, StoreError, type StoreKey } from '../store.ts';
import {
  failureKindOf,
  rejectedByHost,
  unreadable,
  type HostSecrets,
  type RetryBudget,
} from './host-secrets.ts';
import type { SecretCache, PendingWrite, WriteLedger } from './secret-cache.ts';
import type { LookUp, SecretReader } from './secret-reader.ts';
import { encodeSecret, revisionOf, updatePatch, type SecretNames } from './secret-codec.ts';
import type { RequestOptions } from '../../../kube/types.ts';
import type { StatusError } from '../../../kube/status-error.ts';

export interface SecretWriterOptions {
  readonly namespace: string;
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly reader: SecretReader;
  readonly cache: SecretCache;
  readonly ledger: WriteLedger;
  /** Unique among all replicas. */
  readonly newWriteId: () => string;
  /** Timeout of waiting for the event of a write. */
  readonly eventWaitMs: number;
}

const MISSED = 'the events that would tell the outcome were missed';

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
        settle: () => this.#outcomeOf(key, { writeId, pending, budget }),
        rejection: async (error) => {
          // The namespace does not exist.
          if (error.code === 404) throw rejectedByHost(error, namespace);
          const found = await reader.lookUp(key, budget);
          return found.state === 'missing' ? undefined : exists(key, found);
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
        settle: () => this.#outcomeOf(key, { writeId, pending, budget, expectedRevision }),
        rejection: () => this.#mismatch(key, expectedRevision, budget),
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
        settle: () => this.#outcomeOfDeletion(last, pending, budget),
        rejection: () => this.#mismatch(key, expectedRevision, budget),
      });
    } finally {
      pending.close();
    }
  }

  /**
   * The last state at the revision of its deletion, which only the event has. Without the event in time, the current revision is used.
   */
  async #deletion(last: StoredEntry, pending: PendingWrite, budget: RetryBudget): Promise<StoredEntry> {
    const isOver = (): boolean => pending.seen !== undefined || pending.isBlind;
    await this.#until(isOver, budget, this.#options.eventWaitMs);
    if (pending.seen !== undefined) return pending.seen;
    // The deletion has happened: a later error must not claim the opposite.
    budget.markOutcomeUnknown();
    return { ...last, revision: await this.#options.reader.revision(budget) };
  }

  /** The outcome of a write whose response was lost. */
  async #outcomeOf(
    key: StoreKey,
    write: { writeId: string; pending: PendingWrite; budget: RetryBudget; expectedRevision?: number },
  ): Promise<StoredEntry | undefined> {
    const { writeId, pending, budget, expectedRevision } = write;
    const { reader } = this.#options;
    if (pending.seen !== undefined) return pending.seen;
    const found = await reader.lookUp(key, budget);
    if (found.state === 'entry') {
      const { entry } = found;
      if (found.writeId === writeId) return entry;
      if (entry.revision === expectedRevision) return undefined;
    }
    if (found.state === 'missing' && expectedRevision === undefined) {
      // Without an object and without an event, the create has not happened.
      const isOver = (): boolean => pending.seen !== undefined || pending.isBlind;
      await this.#until(isOver, budget, this.#options.eventWaitMs);
      if (pending.seen === undefined && pending.isBlind) throw budget.exhausted(MISSED);
      return pending.seen;
    }
    // Another write came later, perhaps after this one: the cache receives the events of both.
    return await this.#fromEvents(key, found, { pending, budget, expectedRevision: expectedRevision ?? 0 });
  }

  /** The outcome of a deletion whose response was lost. */
  async #outcomeOfDeletion(
    last: StoredEntry,
    pending: PendingWrite,
    budget: RetryBudget,
  ): Promise<StoredEntry | undefined> {
    if (pending.seen !== undefined) return pending.seen;
    const found = await this.#options.reader.lookUp(last.key, budget);
    if (found.state === 'entry' && found.entry.revision === last.revision) return undefined;
    return await this.#fromEvents(last.key, found, { pending, budget, expectedRevision: last.revision });
  }

  /** Waits until the cache has reached the state that was `found`; its events then tell whether this write happened before. */
  async #fromEvents(
    key: StoreKey,
    found: LookUp,
    write: { pending: PendingWrite; budget: RetryBudget; expectedRevision: number },
  ): Promise<StoredEntry | undefined> {
    const { cache, names } = this.#options;
    const { pending, budget, expectedRevision } = write;
    const name = names.object(key);
    const hasCaughtUp = (): boolean =>
      found.state === 'entry'
        ? cache.revision >= found.entry.revision
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
    const found = await this.#options.reader.lookUp(key, budget);
    if (found.state === 'entry' && found.entry.revision === expectedRevision) return found.entry;
    throw mismatch(key, expectedRevision, found);
  }

  async #mismatch(
    key: StoreKey,
    expectedRevision: number,
    budget: RetryBudget,
  ): Promise<StoreError | undefined> {
    const found = await this.#options.reader.lookUp(key, budget);
    if (found.state === 'entry' && found.entry.revision === expectedRevision) return undefined;
    return mismatch(key, expectedRevision, found);
  }

  async #until(isMet: () => boolean, budget: RetryBudget, timeoutMs: number): Promise<void> {
    await this.#options.cache.until(isMet, Math.min(budget.leftMs, timeoutMs));
    budget.checkOpen();
  }
}

function written(key: StoreKey, value: JsonObject, secret: KubeObject): StoredEntry {
  return { key, value, revision: revisionOf(secret) };
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

interface Attempt<T> {
  send(request: RequestOptions): Promise<T>;
  /** After a lost response: the result of the write, or undefined when it has not happened. Throws when the outcome cannot be determined. */
  settle(): Promise<T | undefined>;
  /** The error that a 404, 409 or 410 stands for; undefined when the state has changed since, so that a retry makes sense. */
  rejection(error: StatusError): Promise<Error | undefined>;
}

/** INVARIANT: after a lost response the write is looked for before it is sent again, so it never happens twice and never conflicts with itself. */
async function persist<T>(
  budget: RetryBudget,
  namespace: string,
  attempt: Attempt<NonNullable<T>>,
): Promise<NonNullable<T>> {
  for (;;) {
    let failure: unknown;
    try {
      return await attempt.send(budget.request);
    } catch (error) {
      failure = error;
    }
    budget.checkOpen();
    const kind = failureKindOf(failure);
    if (kind === 'permanent') throw rejectedByHost(failure, namespace);
    if (kind === 'outcome-unknown') budget.markOutcomeUnknown();
    if (budget.isOutcomeUnknown) {
      const done = await attempt.settle();
      if (done !== undefined) return done;
    }
    if (kind === 'decided') {
      const rejection = await attempt.rejection(failure as StatusError); // only a StatusError is `decided`
      if (rejection !== undefined) throw rejection;
    }
    await budget.pause(failure);
  }
}
