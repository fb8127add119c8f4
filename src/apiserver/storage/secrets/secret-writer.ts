/** Create, update and delete: each is one request to the host with a precondition. */

import { orderedKey } from '../../../kube/object.ts';
import type { JsonObject } from '../../../base/json.ts';
import { type StoredEntry, StoreError, type StoreKey } from '../store.ts';
import {
  failureKindOf,
  rejectedByHost,
  unreadable,
  type HostSecrets,
  type RetryBudget,
} from './host-secrets.ts';
import type { SecretCache, PendingWrite, Sought } from './secret-cache.ts';
import type { LookUp, SecretReader } from './secret-reader.ts';
import { encodeSecret, revisionOf, updatePatch, type SecretNames } from './secret-codec.ts';
import type { RequestOptions } from '../../../kube/types.ts';
import type { StatusError } from '../../../kube/status-error.ts';

export interface SecretWriterOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly reader: SecretReader;
  readonly cache: SecretCache;
  /** Unique among all replicas. */
  readonly newWriteId: () => string;
  /** Timeout of waiting for the event of a write. */
  readonly eventWaitMs: number;
}

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

export class SecretWriter {
  readonly #options: SecretWriterOptions;

  constructor(options: SecretWriterOptions) {
    this.#options = options;
  }

  async create(key: StoreKey, value: JsonObject, budget: RetryBudget): Promise<StoredEntry> {
    const { names, secrets, newWriteId } = this.#options;
    const writeId = newWriteId();
    const secret = await encodeSecret(names, { key, value, writeId });
    return this.#persist({
      key,
      sought: { writeId },
      expectedRevision: undefined,
      budget,
      send: async (request) => ({ key, value, revision: revisionOf(await secrets.create(secret, request)) }),
    });
  }

  async update(
    key: StoreKey,
    value: JsonObject,
    expectedRevision: number,
    budget: RetryBudget,
  ): Promise<StoredEntry> {
    const { names, secrets, newWriteId } = this.#options;
    const writeId = newWriteId();
    const secret = await encodeSecret(names, { key, value, writeId });
    const { name } = secret.metadata;
    const body = updatePatch(secret, expectedRevision);
    return this.#persist({
      key,
      sought: { writeId },
      expectedRevision,
      budget,
      send: async (request) => ({
        key,
        value,
        revision: revisionOf(await secrets.patch(name, body, request)),
      }),
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
      if (kind === 'outcome-unknown') budget.markOutcomeUnknown();
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
    budget.markOutcomeUnknown();
    return { ...last, revision: await this.#options.reader.revision(budget) };
  }

  /** After a lost response: the result of the write, or undefined when it has not happened. Throws when the outcome cannot be determined. */
  async #outcomeOf(write: Write, pending: PendingWrite): Promise<StoredEntry | undefined> {
    const { key, sought, expectedRevision, budget } = write;
    const { reader, cache, names, eventWaitMs } = this.#options;
    if (pending.seen !== undefined) return pending.seen;
    const found = await reader.lookUp(key, budget);
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
    const found = await this.#options.reader.lookUp(key, budget);
    if (found.state === 'entry' && found.entry.revision === expectedRevision) return found.entry;
    throw mismatch(key, expectedRevision, found);
  }

  /** The error that a 404, 409 or 410 stands for; undefined when the state has changed since, so that a retry makes sense. */
  async #rejection(
    { key, expectedRevision, budget }: Write,
    error: StatusError,
  ): Promise<StoreError | undefined> {
    const { reader, secrets } = this.#options;
    // The namespace does not exist.
    if (expectedRevision === undefined && error.code === 404) throw rejectedByHost(error, secrets.namespace);
    const found = await reader.lookUp(key, budget);
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
