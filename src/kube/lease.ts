/** Leader election with a Lease of coordination.k8s.io, with client-go's rules: times in the Lease are informative; every process measures on
 * its own monotonic clock since it observed the last change of the Lease. The holder considers itself the holder only for
 * `renewDeadlineMs` after it sent the last successful renewal. Others wait for `leaseDurationMs` after they observed it, which ends later.
 */

import { messageOf } from '../base/errors.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { textAt, isJsonObject, type JsonObject } from '../base/json.ts';
import type { Logger } from '../base/logger.ts';
import { OutageLog } from '../base/outage-log.ts';
import type { Random } from '../base/random.ts';
import {
  microTime,
  namespacedResource,
  type KubeObject,
  type NamespacedName,
  type StringMap,
} from './object.ts';
import { isAlreadyExists, isConflict, isNotFound } from './status-error.ts';
import { TransportError, type ClusterClient, type RequestOptions, type WatchClient } from './types.ts';

export const LEASES = namespacedResource('coordination.k8s.io/v1', 'Lease', 'leases');

export interface LeaseOptions {
  readonly client: ClusterClient;
  readonly lease: NamespacedName;
  /** Unique per process, restarts included. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly fieldManager: string;
  /** Written with every claim and renewal. */
  readonly annotations?: () => StringMap;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** The last observed state of a Lease, and since when it is unchanged. */
interface Seen {
  readonly object: KubeObject;
  readonly spec: JsonObject;
  readonly text: string;
  readonly sinceMs: number;
}

/** A graceful exit waits this long for the release of its Lease. Otherwise others take it when it expires. */
const RELEASE_TIMEOUT_MS = 1000;
/** A candidate reads the Lease twice per retry period, so that it acquires a released Lease within one period. */
const READS_PER_PERIOD = 2;

/** At most one process holds it. */
export interface Lock {
  /** Of this process. */
  readonly identity: string;
  /** Checked before each write. False once the lock has expired, even if the process was suspended. */
  readonly isHeld: boolean;
  /** Identity of the last observed holder; '' for none. */
  readonly holder: string;
  /** Resolves true when this process holds the lock, false when `signal` aborts before. */
  acquire(signal: AbortSignal): Promise<boolean>;
  /** Renews until `signal` aborts; resolves earlier when the lock is lost. {@link isHeld} is false then. */
  hold(signal: AbortSignal): Promise<void>;
  /** Releases the lock, so that the next process need not wait for its expiry. Does nothing if it is not held. */
  release(): Promise<void>;
}

export class LeaseLock implements Lock {
  readonly #options: LeaseOptions;
  #seen: Seen | undefined;
  #heldUntilMs = -Infinity;
  /** When it is renewed next. */
  #dueMs = Infinity;
  #term = 0;
  readonly #outage: OutageLog;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#outage = new OutageLog(options.logger, 'lease cannot be read or written, retrying');
  }

  get identity(): string {
    return this.#options.identity;
  }

  get isHeld(): boolean {
    return this.#options.clock.monotonicMs() < this.#heldUntilMs;
  }

  /** It is held, and its next renewal has no response yet: what takes the time of the process has to wait. */
  get isDue(): boolean {
    return this.isHeld && this.#options.clock.monotonicMs() >= this.#dueMs;
  }

  /** Another number whenever the Lease was not held in between, even if a late response has renewed it. */
  get term(): number {
    return this.#term;
  }

  get holder(): string {
    return textAt(this.#seen?.spec, 'holderIdentity');
  }

  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random, retryPeriodMs } = this.#options;
    while (!signal.aborted) {
      if (await this.#attempt(this.#timeoutMs)) return true;
      const periodMs = (retryPeriodMs / READS_PER_PERIOD) * (0.8 + 0.2 * random());
      // Not a period after it expires.
      const expiresMs = this.#expiresInMs;
      await sleep(clock, expiresMs > 0 ? Math.min(periodMs, expiresMs) : periodMs, signal);
    }
    return false;
  }

  async hold(signal: AbortSignal): Promise<void> {
    const { clock, retryPeriodMs } = this.#options;
    while (!signal.aborted) {
      const waitMs = Math.min(retryPeriodMs, this.#leftMs);
      this.#dueMs = clock.monotonicMs() + waitMs;
      await sleep(clock, waitMs, signal);
      if (signal.aborted) return;
      if (!this.isHeld) return;
      await this.#attempt(Math.min(this.#leftMs, this.#timeoutMs));
      if (!this.isHeld) return;
    }
  }

  async release(): Promise<void> {
    const { logger } = this.#options;
    const seen = this.#seen;
    if (!this.isHeld || seen === undefined) return;
    this.#heldUntilMs = -Infinity;
    const spec = releasedSpec(seen.spec, microTime(this.#options.clock.now()));
    try {
      await this.#write(seen.object, spec, RELEASE_TIMEOUT_MS);
    } catch (error) {
      logger.warn(
        { error: messageOf(error) },
        'lease was not released, other replicas take it when it expires',
      );
    }
  }

  get #leftMs(): number {
    return Math.max(0, this.#heldUntilMs - this.#options.clock.monotonicMs());
  }

  /** Of one request. On a busy machine, a response may take longer than a retry period. */
  get #timeoutMs(): number {
    const { retryPeriodMs, renewDeadlineMs } = this.#options;
    return Math.max(retryPeriodMs, renewDeadlineMs / 2);
  }

  /** One attempt to acquire or renew the Lease. An unknown outcome counts as a failure. */
  async #attempt(timeoutMs: number): Promise<boolean> {
    try {
      return await this.#takeOrRenew(timeoutMs);
    } catch (error) {
      if (!isOvertaken(error)) return this.#failed(error);
      this.#seen = undefined;
      if (!this.isHeld) return isNotFound(error) ? this.#failed(error) : false;
    }
    // The holder must find out immediately whether another process has acquired the Lease.
    try {
      return await this.#takeOrRenew(timeoutMs);
    } catch (error) {
      return this.#failed(error);
    }
  }

  #failed(error: unknown): false {
    this.#outage.failed({ lease: this.#options.lease.name, error: messageOf(error) });
    return false;
  }

  async #takeOrRenew(timeoutMs: number): Promise<boolean> {
    const { clock, identity, leaseDurationMs, renewDeadlineMs } = this.#options;
    const isHolder = this.isHeld && this.#seen !== undefined;
    // A Lease that has expired since it was last read is taken without another request: its version guards the write.
    if (!isHolder && !(this.#isOfAnother && this.#expiresInMs <= 0)) await this.#look(timeoutMs);
    if (this.#isOfAnother && this.#expiresInMs > 0) {
      this.#heldUntilMs = -Infinity;
      return false;
    }
    const seen = this.#seen;
    const sentMs = clock.monotonicMs();
    const seconds = Math.max(1, Math.ceil(leaseDurationMs / 1000));
    const claim = claimedSpec(seen?.spec, { identity, seconds, now: microTime(clock.now()) });
    await this.#write(seen?.object, claim, timeoutMs);
    if (!this.isHeld) this.#term += 1;
    this.#heldUntilMs = sentMs + renewDeadlineMs;
    return this.isHeld;
  }

  /** Reads the current Lease. */
  async #look(timeoutMs: number): Promise<void> {
    const { client, lease, clock, leaseDurationMs, renewDeadlineMs } = this.#options;
    const sentMs = clock.monotonicMs();
    try {
      const object = await client.get(LEASES, lease, { timeoutMs, isRetried: false });
      // The holder may have renewed it while this request was under way, and counts from then: half of what it stops earlier is for that.
      const slackMs = (leaseDurationMs - renewDeadlineMs) / 2;
      this.#observe(object, Math.max(sentMs, clock.monotonicMs() - slackMs));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#seen = undefined;
    }
  }

  get #isOfAnother(): boolean {
    return this.holder !== '' && this.holder !== this.#options.identity;
  }

  /** Until then, another holder may be alive. Not positive once the Lease has expired. */
  get #expiresInMs(): number {
    const { clock, leaseDurationMs } = this.#options;
    const seen = this.#seen;
    if (seen === undefined) return 0;
    const seconds = seen.spec['leaseDurationSeconds'];
    const durationMs = typeof seconds === 'number' ? seconds * 1000 : leaseDurationMs;
    return seen.sinceMs + durationMs - clock.monotonicMs();
  }

  /** `object` undefined: creates the Lease. Otherwise its version is the precondition. */
  async #write(object: KubeObject | undefined, spec: JsonObject, timeoutMs: number): Promise<void> {
    const { client, lease, fieldManager, annotations } = this.#options;
    const options = { fieldManager, timeoutMs };
    const written = leaseWith(object, lease, annotations?.() ?? {});
    const stored =
      object === undefined
        ? await client.create(LEASES, { ...written, spec }, options)
        : await client.update(LEASES, { ...written, spec }, options);
    this.#observe(stored, this.#options.clock.monotonicMs());
  }

  #observe(object: KubeObject, atMs: number): void {
    const spec = isJsonObject(object['spec']) ? object['spec'] : {};
    const text = JSON.stringify(spec);
    const isSame = this.#seen?.text === text;
    const sinceMs = isSame && this.#seen ? this.#seen.sinceMs : atMs;
    this.#seen = { object, spec, text, sinceMs };
    this.#outage.ended();
  }
}

/** The Lease with these annotations added. `object` undefined: a new Lease without a holder. */
export function leaseWith(
  object: KubeObject | undefined,
  lease: NamespacedName,
  added: StringMap,
): KubeObject {
  const metadata = object?.metadata ?? { ...lease };
  const annotations = { ...metadata.annotations, ...added };
  return {
    spec: {},
    ...object,
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations },
  };
}

/** What a holder writes, who takes the Lease or renews it. `spec` undefined: it is new. `now`: see {@link microTime}. */
export function claimedSpec(
  spec: JsonObject | undefined,
  { identity, seconds, now }: { readonly identity: string; readonly seconds: number; readonly now: string },
): JsonObject {
  const isOurs = textAt(spec, 'holderIdentity') === identity;
  const transitions = spec?.['leaseTransitions'];
  const before = typeof transitions === 'number' ? transitions : 0;
  return {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: seconds,
    acquireTime: isOurs ? (spec?.['acquireTime'] ?? now) : now,
    renewTime: now,
    leaseTransitions: isOurs || spec === undefined ? before : before + 1,
  };
}

export function releasedSpec(spec: JsonObject, now: string): JsonObject {
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now };
}

/** For {@link guardedClient}. Throws a `TransportError` if this process does not hold the lock. */
export function checkHeld(lock: Lock): void {
  if (!lock.isHeld) throw new TransportError('not sent: this replica does not hold the lease');
}

/**
 * A client that asks `guard` immediately before each write is sent, which throws if writes are not allowed: when a connection is free, not when the
 * request is queued, so a process that was suspended in between sends nothing. Disposing of the result does not dispose of `client`.
 */
export function guardedClient(client: WatchClient, guard: { checkWrite(): void }): WatchClient {
  const beforeSend = (): void => guard.checkWrite();
  const guarded = <T extends RequestOptions>(options: T | undefined): T & RequestOptions => ({
    ...(options ?? ({} as T)), // every member of T is optional
    beforeSend,
  });
  return {
    cluster: client.cluster,
    get: (resource, key, options) => client.get(resource, key, options),
    list: (resource, options) => client.list(resource, options),
    watch: (resource, options, handler) => client.watch(resource, options, handler),
    create: (resource, object, options) => client.create(resource, object, guarded(options)),
    update: (resource, object, options) => client.update(resource, object, guarded(options)),
    patch: (resource, key, patch, options) => client.patch(resource, key, patch, guarded(options)),
    delete: (resource, key, preconditions, options) =>
      client.delete(resource, key, preconditions, guarded(options)),
    request: (method, path, body, options) =>
      client.request(method, path, body, method === 'GET' ? options : guarded(options)),
    // The client is owned by the caller.
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Another client has created, changed or deleted the Lease. */
export function isOvertaken(error: unknown): boolean {
  return isConflict(error) || isAlreadyExists(error) || isNotFound(error);
}
