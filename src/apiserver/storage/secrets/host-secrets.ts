/** Requests of the store to the host cluster: one attempt each, what a failure means, retries until a deadline, and since when the host has not responded. */

import { asList } from '../../../kube/client/responses.ts';
import { collectionPath, queryString } from '../../../kube/client/client.ts';
import {
  type ObjectList,
  type RequestOptions,
  type WatchClient,
  TransportError,
} from '../../../kube/types.ts';
import { SECRETS, type KubeObject, orderedKey } from '../../../kube/object.ts';
import { failure, ignoreNotFound, StatusError } from '../../../kube/status-error.ts';
import type { JsonObject } from '../../../base/json.ts';
import { messageOf } from '../../../base/errors.ts';
import { StoreError, type StoreKey, closed } from '../store.ts';
import { sleep, type Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import { RetryDelay } from '../../../base/retry.ts';
import type { Logger } from '../../../base/logger.ts';

export interface SecretList {
  readonly secrets: readonly KubeObject[];
  readonly revision: number;
}

const FIELD_MANAGER = 'endpoint-syncer';
const PAGE_SIZE = 500;
/** A current list is restarted when its continue token expires. */
const LIST_ATTEMPTS = 3;
/** No Secret has this name. A list with it as field selector is empty, and its resourceVersion is the current one. */
const UNUSED_NAME = 'endpoint-syncer.revision';

export interface HostSecretsOptions {
  readonly client: WatchClient;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Deadline of an operation; default 10 s. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

/** Secrets of one namespace. Everything rejects as the client does: `StatusError`, `TransportError`. */
export class HostSecrets {
  readonly #client: WatchClient;
  readonly #options: HostSecretsOptions;
  readonly #signal: AbortSignal;

  /** `signal` aborts when the store closes. */
  constructor(options: HostSecretsOptions, signal: AbortSignal) {
    this.#client = options.client;
    this.#options = options;
    this.#signal = signal;
  }

  get namespace(): string {
    return this.#options.namespace;
  }

  /** For one operation. Throws `closed`. */
  budget(): RetryBudget {
    this.checkOpen();
    return new RetryBudget(this.#options, this.#signal);
  }

  checkOpen(): void {
    if (this.#signal.aborted) throw closed();
  }

  /** The current state: a read without a resourceVersion is never served from a stale cache. */
  async get(name: string, options: RequestOptions): Promise<KubeObject | undefined> {
    return await ignoreNotFound(this.#client.get(SECRETS, { namespace: this.namespace, name }, options));
  }

  async create(secret: KubeObject, options: RequestOptions): Promise<KubeObject> {
    const metadata = { ...secret.metadata, namespace: this.namespace };
    const settings = { ...options, fieldManager: FIELD_MANAGER };
    return await this.#client.create(SECRETS, { ...secret, metadata }, settings);
  }

  /** A merge patch whose `metadata.resourceVersion` is a precondition. */
  async patch(name: string, body: JsonObject, options: RequestOptions): Promise<KubeObject> {
    const settings = { ...options, fieldManager: FIELD_MANAGER };
    const key = { namespace: this.namespace, name };
    return await this.#client.patch(SECRETS, key, { type: 'merge', body }, settings);
  }

  /** Deletes only this revision, so never another Secret with the same name. */
  async delete(name: string, revision: number, options: RequestOptions): Promise<void> {
    const key = { namespace: this.namespace, name };
    await this.#client.delete(SECRETS, key, { resourceVersion: String(revision) }, options);
  }

  /** All pages at one revision: the current one, or `atRevision`. Rejects with 410 when it is compacted. */
  async list(labelSelector: string, options: RequestOptions, atRevision?: number): Promise<SecretList> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pages({ labelSelector, limit: PAGE_SIZE }, options, atRevision);
      } catch (error) {
        const isExpired = error instanceof StatusError && error.code === 410;
        if (!isExpired || atRevision !== undefined || attempt >= LIST_ATTEMPTS) throw error;
      }
    }
  }

  /** The current Secrets of a type, whatever their labels. */
  async listOfType(type: string, options: RequestOptions): Promise<SecretList> {
    return await this.#pages({ fieldSelector: `type=${type}`, limit: PAGE_SIZE }, options, undefined);
  }

  async revision(options: RequestOptions): Promise<number> {
    const { resourceVersion } = await this.#page({ fieldSelector: `metadata.name=${UNUSED_NAME}` }, options);
    return parseRevision(resourceVersion);
  }

  async #pages(
    query: Readonly<Record<string, string | number>>,
    options: RequestOptions,
    atRevision: number | undefined,
  ): Promise<SecretList> {
    const exact =
      atRevision === undefined
        ? {}
        : { resourceVersion: String(atRevision), resourceVersionMatch: 'Exact' as const };
    let page = await this.#page({ ...query, ...exact }, options);
    const secrets = page.items;
    const revision = parseRevision(page.resourceVersion);
    while (page.continueToken !== '') {
      page = await this.#page({ ...query, continue: page.continueToken }, options);
      secrets.push(...page.items);
    }
    return { secrets, revision };
  }

  async #page(
    query: Readonly<Record<string, string | number>>,
    options: RequestOptions,
  ): Promise<ObjectList> {
    const path = collectionPath(SECRETS, this.namespace) + queryString(query);
    return asList(await this.#client.request('GET', path, undefined, options), SECRETS);
  }
}

/** Throws for a resourceVersion that is not a number: it could not be compared. */
export function parseRevision(version: string): number {
  const revision = Number(version);
  if (/^\d+$/.test(version) && Number.isSafeInteger(revision)) return revision;
  throw new Error(
    `the host cluster has the resourceVersion ${JSON.stringify(version)}; the store needs integers, as etcd assigns them`,
  );
}

export type FailureKind =
  /** The host has decided: not found, conflict, gone. */
  | 'decided'
  /** Nothing has happened, and a retry may succeed. */
  | 'retryable'
  /** A write may have happened, or may still happen. */
  | 'outcome-unknown'
  /** A retry does not help. */
  | 'permanent';

/** Codes of failures before any byte of the request was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof TransportError) return wasNeverSent(error) ? 'retryable' : 'outcome-unknown';
  if (!(error instanceof StatusError)) return 'permanent';
  const { code } = error;
  if (code === 404 || code === 409 || code === 410) return 'decided';
  if (code === 429) return 'retryable';
  // After a timeout in the server, etcd may have stored the write.
  return code >= 500 ? 'outcome-unknown' : 'permanent';
}

/** The error for a request that the host has rejected or denied; nothing has happened. */
export function rejectedByHost(error: unknown, namespace: string): unknown {
  if (!(error instanceof StatusError)) return error;
  const text = `${storeIn(namespace)} rejected a request: ${error.message}`;
  switch (error.code) {
    case 401:
    case 403:
      return unavailable(`${text}. Grant the store its Role in that namespace`, error);
    case 404:
      return unavailable(`${text}. Create the namespace`, error);
    default:
      return new StatusError(failure(500, 'InternalError', text).status, { cause: error });
  }
}

/** The error for a request without a response in time. `isOutcomeUnknown`: a write may have happened nevertheless. */
function unreachable(
  error: unknown,
  { namespace, isOutcomeUnknown }: { namespace: string; isOutcomeUnknown: boolean },
): StoreError | StatusError {
  const why = messageOf(error);
  if (!isOutcomeUnknown) {
    return unavailable(`${storeIn(namespace)} cannot be reached at the moment; retry later: ${why}`, error);
  }
  const message =
    `${storeIn(namespace)} did not confirm a write, which may or may not have happened. ` +
    `Read the object before you retry: ${why}`;
  return new StatusError(failure(504, 'Timeout', message).status, { cause: error });
}

/** The Secret of an object is damaged: the store cannot tell whether the object exists. */
export function unreadable(key: StoreKey, why: string): StoreError {
  return new StoreError('unavailable', `${key.resource} ${orderedKey(key)}: ${why}`);
}

function unavailable(message: string, cause: unknown): StoreError {
  return new StoreError('unavailable', message, undefined, { cause });
}

function storeIn(namespace: string): string {
  return `the store, Secrets in namespace ${JSON.stringify(namespace)} of the host cluster,`;
}

function wasNeverSent(error: Error): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    if (first instanceof Error && 'code' in first && NEVER_SENT.has(String(first.code))) return true;
  }
  return false;
}

// The retries of one store operation: a deadline, and exponential backoff before it.

const DELAYS = { baseMs: 50, maxMs: 2000 };
/** With less time left, no attempt is made: its timeout would only make the outcome unknown. */
const ATTEMPT_MIN_MS = 500;

export class RetryBudget {
  readonly #options: HostSecretsOptions;
  readonly #signal: AbortSignal;
  readonly #timeoutMs: number;
  readonly #endMs: number;
  readonly #delay: RetryDelay;
  /** The write may have happened, or may still happen: a request without a response may still arrive. */
  isOutcomeUnknown = false;

  constructor(options: HostSecretsOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#delay = new RetryDelay(options.random, DELAYS);
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#endMs = options.clock.monotonicMs() + this.#timeoutMs;
  }

  get leftMs(): number {
    return Math.max(1, Math.ceil(this.#endMs - this.#options.clock.monotonicMs()));
  }

  /** The options of one request. Its timeout is half of the deadline, so that a silent connection leaves time for another attempt. */
  get request(): RequestOptions {
    const timeoutMs = Math.min(this.leftMs, Math.ceil(this.#timeoutMs / 2));
    return { signal: this.#signal, isRetried: false, timeoutMs };
  }

  /** Retries a read until the host responds. Rejects with the error of the host, or with `StoreError` `unavailable` or `closed`. */
  async read<T>(attempt: (request: RequestOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt(this.request);
      } catch (error) {
        this.checkOpen();
        const kind = failureKindOf(error);
        if (kind === 'decided') throw error;
        if (kind === 'permanent') throw rejectedByHost(error, this.#options.namespace);
        await this.pause(error);
      }
    }
  }

  /** Waits before the next attempt; throws when the deadline leaves no time for one. */
  async pause(error: unknown): Promise<void> {
    const { clock } = this.#options;
    const delayMs = this.#delay.next({ error });
    if (clock.monotonicMs() + delayMs + ATTEMPT_MIN_MS >= this.#endMs) throw this.exhausted(error);
    await sleep(clock, delayMs, this.#signal);
    this.checkOpen();
  }

  exhausted(error: unknown): Error {
    return unreachable(error, {
      namespace: this.#options.namespace,
      isOutcomeUnknown: this.isOutcomeUnknown,
    });
  }

  checkOpen(): void {
    if (this.#signal.aborted) throw closed();
  }
}

// Knows whether the host still responds: while it does not, another replica may have changed any object.

/** The host is asked again after this time, in the background. */
const ASK_AFTER_MS = 10_000;
/** While the host fails, what was read last is used for this long: an upgrade of the host cluster must not lock out all users. */
const SILENT_MS_MAX = 10 * 60_000;

export interface HostContactOptions {
  /** A read that only a host that can be reached answers. */
  ask(): Promise<unknown>;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = 'responding' | 'failing' | 'refusing';

export class HostContact {
  readonly #options: HostContactOptions;
  /** Monotonic time of the last request to which the host responded. */
  #respondedMs: number;
  #asking: Promise<void> | undefined;
  #phase: Phase = 'responding';

  constructor(options: HostContactOptions) {
    this.#options = options;
    this.#respondedMs = options.clock.monotonicMs();
  }

  /** Since the last response; 0 while the host responds. */
  get silentMs(): number {
    return this.#phase === 'responding' ? 0 : this.#options.clock.monotonicMs() - this.#respondedMs;
  }

  /** Undefined: the host has responded within ten minutes. Otherwise rejects unless it responds now. */
  confirmed(): Promise<void> | undefined {
    const ageMs = this.#options.clock.monotonicMs() - this.#respondedMs;
    if (ageMs < ASK_AFTER_MS) return undefined;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    if (ageMs >= SILENT_MS_MAX) return this.#asking;
    // Rejected later, after ten minutes.
    this.#asking.catch(() => undefined);
    return undefined;
  }

  async #ask(): Promise<void> {
    const { clock, logger } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      await this.#options.ask();
    } catch (error) {
      this.#failed(error, startedMs);
      throw error;
    }
    this.#respondedMs = startedMs;
    if (this.#phase !== 'responding') logger.info({}, 'the store of the access keys responds again');
    this.#phase = 'responding';
  }

  /** One line when the host stops responding, and one when keys are no longer accepted. */
  #failed(error: unknown, nowMs: number): void {
    const leftMs = this.#respondedMs + SILENT_MS_MAX - nowMs;
    const phase: Phase = leftMs > 0 ? 'failing' : 'refusing';
    if (phase === this.#phase) return;
    this.#phase = phase;
    const { logger } = this.#options;
    if (phase === 'refusing') {
      logger.error(
        { err: error },
        'the store of the access keys has not responded for ten minutes: requests get 503',
      );
      return;
    }
    const secondsLeft = Math.ceil(leftMs / 1000);
    logger.warn(
      { err: error, secondsLeft },
      'the store of the access keys does not respond: keys are accepted as last read, also revoked ones, then requests get 503',
    );
  }
}
