/** The Lease of a member, held for as long as its replica is live: it is renewed only now and then, for programs that know no fleet. */

import { messageOf } from '../base/errors.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { isJsonObject, jsonEquals, numberField, textAt, type JsonObject } from '../base/json.ts';
import type { Logger } from '../base/logger.ts';
import { OutageLog } from '../base/outage-log.ts';
import type { Random } from '../base/random.ts';
import { claimedSpec, isOvertaken, LEASES, leaseWith, releasedSpec, type Lock } from '../kube/lease.ts';
import { microTime, type KubeObject, type NamespacedName, type StringMap } from '../kube/object.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';
import { FIELD_MANAGER } from '../syncer/translate/bookkeeping.ts';
import { withoutNotes } from './member-note.ts';
import { isReplica, type Replicas } from './replicas.ts';

export interface MemberLockOptions {
  readonly replicas: Pick<Replicas, 'identity' | 'isExpired' | 'isLive' | 'signal' | 'term'>;
  readonly client: ClusterClient;
  readonly lease: NamespacedName;
  /** Written with every claim, and soon after they change. */
  readonly annotations: () => StringMap;
  /** Another lock of this process has the Lease: it would release it, or delete it, as its own. Default: none does. */
  readonly isInUse?: () => boolean;
  readonly retryPeriodMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** A sidecar with leader election takes the Lease after this time without a change. */
const DURATION_SECONDS = 3600;
const RENEW_MS = (DURATION_SECONDS * 1000) / 4;
/** Of a request while the process ends. */
const EXIT_TIMEOUT_MS = 1000;

/** A Lease as it was last read, and since when its specification is unchanged, monotonic. */
interface Seen {
  readonly lease: KubeObject | undefined;
  readonly spec: JsonObject;
  readonly sinceMs: number;
}

interface Claim {
  /** Of the replica: in another one, the Lease may have been taken over. */
  readonly term: number;
  readonly writtenMs: number;
  readonly annotations: StringMap;
}

export class MemberLock implements Lock {
  readonly #options: MemberLockOptions;
  #seen: Seen | undefined;
  #claim: Claim | undefined;
  /** When a claim was last sent, whatever became of it; wall clock. */
  #sentMs: number | undefined;
  readonly #outage: OutageLog;

  constructor(options: MemberLockOptions) {
    this.#options = options;
    this.#outage = new OutageLog(options.logger, 'lease cannot be read or written, retrying');
  }

  get identity(): string {
    return this.#options.replicas.identity;
  }

  get isHeld(): boolean {
    const { replicas } = this.#options;
    return this.#claim !== undefined && this.#claim.term === replicas.term && replicas.isLive;
  }

  get holder(): string {
    return textAt(this.#seen?.spec, 'holderIdentity');
  }

  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random, retryPeriodMs } = this.#options;
    while (!signal.aborted) {
      if (await this.tryAcquire()) return true;
      await sleep(clock, (retryPeriodMs / 2) * (0.8 + 0.2 * random()), signal);
    }
    return false;
  }

  /** One attempt, without waiting. */
  async tryAcquire(): Promise<boolean> {
    const { isInUse, replicas } = this.#options;
    return replicas.isLive && isInUse?.() !== true && (await this.#attempt());
  }

  async hold(signal: AbortSignal): Promise<void> {
    const { annotations, clock, retryPeriodMs } = this.#options;
    while (!signal.aborted && this.isHeld) {
      await sleep(clock, retryPeriodMs, signal);
      if (signal.aborted || !this.isHeld || this.#claim === undefined) return;
      const isDue = clock.monotonicMs() >= this.#claim.writtenMs + RENEW_MS;
      if (isDue || !jsonEquals(this.#claim.annotations, annotations())) await this.#attempt();
    }
  }

  /**
   * A Lease that this replica holds and does not use would keep the others out for as long as this one is live: it is released however long that takes.
   * The lock of the same member that comes next must not begin before.
   */
  async release(): Promise<void> {
    const { clock, replicas, retryPeriodMs } = this.#options;
    this.#claim = undefined;
    while (this.#sentMs !== undefined && !(await this.#released()) && !replicas.signal.aborted)
      await sleep(clock, retryPeriodMs, replicas.signal);
  }

  async #released(): Promise<boolean> {
    const { annotations, clock, replicas } = this.#options;
    const timeoutMs = replicas.signal.aborted ? EXIT_TIMEOUT_MS : undefined;
    return this.#reported(async () => {
      await this.#read(timeoutMs);
      // A later claim of this replica is that of another lock.
      const renewedMs = Date.parse(textAt(this.#seen?.spec, 'renewTime'));
      if (this.holder === this.identity && !(renewedMs > (this.#sentMs ?? 0)))
        await this.#write(
          releasedSpec(this.#seen?.spec ?? {}, microTime(clock.now())),
          annotations(),
          timeoutMs,
        );
    });
  }

  /** One attempt to take the Lease, or to write it again. False if it is not held afterwards. */
  async #attempt(): Promise<boolean> {
    const { term } = this.#options.replicas;
    await this.#reported(async () => {
      await this.#read();
      if (this.#mayTake()) await this.#take(term);
      else this.#claim = undefined;
    });
    return this.isHeld;
  }

  async #reported(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.#outage.ended();
      return true;
    } catch (error) {
      const { lease } = this.#options;
      // Another write came first: what it was is read next time.
      if (!isOvertaken(error)) this.#outage.failed({ lease: lease.name, error: messageOf(error) });
      return false;
    }
  }

  async #read(timeoutMs?: number): Promise<void> {
    const { client, clock, lease } = this.#options;
    const options = timeoutMs === undefined ? {} : { timeoutMs };
    this.#observe(await ignoreNotFound(client.get(LEASES, lease, options)), clock.monotonicMs());
  }

  #mayTake(): boolean {
    const { clock, replicas } = this.#options;
    const { holder, identity } = this;
    if (holder === '' || holder === identity) return true;
    if (isReplica(holder)) return replicas.isExpired(holder, this.#seen?.sinceMs);
    const seconds = numberField(this.#seen?.spec ?? {}, 'leaseDurationSeconds') || DURATION_SECONDS;
    return clock.monotonicMs() >= (this.#seen?.sinceMs ?? Infinity) + seconds * 1000;
  }

  async #take(term: number): Promise<void> {
    const { clock } = this.#options;
    const spec = this.#seen?.lease === undefined ? undefined : this.#seen.spec;
    const nowMs = clock.now();
    const now = microTime(nowMs);
    const annotations = this.#options.annotations();
    const noNotes = withoutNotes(this.#seen?.lease, this.identity);
    const claim = claimedSpec(spec, { identity: this.identity, seconds: DURATION_SECONDS, now });
    this.#sentMs = Math.max(this.#sentMs ?? 0, nowMs);
    await this.#write(claim, { ...annotations, ...noNotes });
    this.#claim = { term, writtenMs: clock.monotonicMs(), annotations };
  }

  /** The version that was read is the precondition. */
  async #write(spec: JsonObject, annotations: StringMap, timeoutMs?: number): Promise<void> {
    const { client, clock, lease } = this.#options;
    const seen = this.#seen?.lease;
    const written = { ...leaseWith(seen, lease, annotations), spec };
    const options = { fieldManager: FIELD_MANAGER, ...(timeoutMs !== undefined && { timeoutMs }) };
    const stored =
      seen === undefined
        ? await client.create(LEASES, written, options)
        : await client.update(LEASES, written, options);
    this.#observe(stored, clock.monotonicMs());
  }

  #observe(lease: KubeObject | undefined, atMs: number): void {
    const read = lease?.['spec'];
    const spec = isJsonObject(read) ? read : {};
    const isSame = this.#seen !== undefined && jsonEquals(this.#seen.spec, spec);
    this.#seen = { lease, spec, sinceMs: isSame && this.#seen ? this.#seen.sinceMs : atMs };
  }
}
