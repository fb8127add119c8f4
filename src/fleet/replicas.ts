/**
 * The replicas of a fleet. Each renews one Lease, and holds the Leases of its members for as long as others count it as live: the number of
 * requests does not grow with that of the members.
 */

import { messageOf } from '../base/errors.ts';
import { type Clock, sleep } from '../base/clock.ts';
import type { CheckResult } from '../base/health.ts';
import { isJsonObject, textAt } from '../base/json.ts';
import type { Logger } from '../base/logger.ts';
import { OutageLog } from '../base/outage-log.ts';
import type { Random } from '../base/random.ts';
import { chosenPlace } from '../base/rendezvous.ts';
import { LeaseLock, LEASES } from '../kube/lease.ts';
import type { KubeObject, StringMap } from '../kube/object.ts';
import type { ClusterClient } from '../kube/types.ts';
import { FIELD_MANAGER } from '../syncer/translate/bookkeeping.ts';

export interface ReplicasOptions {
  readonly client: ClusterClient;
  readonly namespace: string;
  readonly id: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  /** Of its Lease. */
  readonly annotations?: () => StringMap;
  readonly retryPeriodMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called when a replica has come or gone, this one included. */
  readonly changed: () => void;
}

/** Of the Leases of replicas, which are their identities too. */
const PREFIX = 'endpoint-syncer-replica-';
/** Of Kubernetes. */
const NAME_CHARS_MAX = 253;
/** A replica that ended without deleting its Lease leaves it; this many durations later, others delete it. */
const LEFT_DURATIONS = 20;
const DELETE_TIMEOUT_MS = 1000;

/** A Lease as it was last observed. */
interface Seen {
  /** Undefined: it does not exist. */
  readonly lease: KubeObject | undefined;
  readonly text: string;
  /** Since when it has been unchanged, monotonic. */
  readonly sinceMs: number;
}

/** A client that can write a Lease in another namespace chooses its holder, which is no replica if it cannot be the name of a Lease. */
export function isReplica(holder: string): boolean {
  return holder.startsWith(PREFIX) && holder.length <= NAME_CHARS_MAX;
}

export class Replicas {
  readonly identity: string;
  readonly #options: ReplicasOptions;
  readonly #lock: LeaseLock;
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>;
  /** By identity. */
  readonly #seen = new Map<string, Seen>();
  /** When the last list was sent that succeeded, monotonic. */
  #listedMs = -Infinity;
  #live = '';
  readonly #outage: OutageLog;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#outage = new OutageLog(options.logger, 'Leases of the other replicas cannot be listed, retrying');
    this.identity = `${PREFIX}${options.id}`;
    this.#lock = new LeaseLock({
      ...options,
      lease: { namespace: options.namespace, name: this.identity },
      identity: this.identity,
      fieldManager: FIELD_MANAGER,
    });
    this.#running = Promise.all([this.#renew(), this.#observe()]);
  }

  /** Another number each time that this replica is live again: what it held before may be held by others. */
  get term(): number {
    return this.#lock.term;
  }

  /** INVARIANT: while it is true in one term, no other replica takes over what this one holds since that term. */
  get isLive(): boolean {
    return this.#lock.isHeld;
  }

  /** Its Lease has to be renewed now, before anything else that takes the time of the process. */
  get isRenewalDue(): boolean {
    return this.#lock.isDue;
  }

  /** Identities of the live replicas, in order; none before the first list. */
  live(): readonly string[] {
    if (this.#listedMs === -Infinity) return [];
    const others = [...this.#seen].filter(
      ([identity, { lease }]) =>
        lease !== undefined && identity !== this.identity && !this.isExpired(identity),
    );
    return [...others.map(([identity]) => identity), ...(this.isLive ? [this.identity] : [])].toSorted();
  }

  /**
   * Whether what another replica holds may be taken over: a list that was sent a whole duration after its Lease was first seen in this state has
   * shown the same state. A replica that is asked about for the first time is observed from then on. What was claimed at `claimedMs` may not be known
   * to an earlier list: the replica may have come back before it claimed.
   */
  isExpired(identity: string, claimedMs = -Infinity): boolean {
    if (this.#listedMs < claimedMs) return false;
    const { lease, sinceMs } = this.#seen.get(identity) ?? this.#remember(identity, undefined);
    const spec = lease?.['spec'];
    if (isJsonObject(spec) && textAt(spec, 'holderIdentity') === '') return true;
    const seconds = isJsonObject(spec) ? spec['leaseDurationSeconds'] : undefined;
    const durationMs = typeof seconds === 'number' ? seconds * 1000 : this.#options.leaseDurationMs;
    return this.#listedMs >= sinceMs + durationMs;
  }

  /** Aborts when this replica leaves. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** For readiness: without its Lease, this replica syncs no member. */
  check(): CheckResult {
    const { namespace } = this.#options;
    const count = this.live().length;
    return this.isLive && count > 0
      ? { isOk: true, detail: `${count} live` }
      : { isOk: false, detail: `the Lease ${this.identity} in the namespace "${namespace}" is not held yet` };
  }

  /**
   * The members are placed on the others from now on, who take each when it is released. What is held may be used until the Lease would have expired: a Lease
   * that is gone counts as one that does not change.
   */
  async leave(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const { client, namespace } = this.#options;
    const key = { namespace, name: this.identity };
    await client.delete(LEASES, key, {}, { timeoutMs: DELETE_TIMEOUT_MS }).catch(() => undefined);
  }

  async #renew(): Promise<void> {
    const { signal } = this.#stopping;
    while (await this.#lock.acquire(signal)) {
      this.#report();
      await this.#lock.hold(signal);
      this.#report();
    }
  }

  async #observe(): Promise<void> {
    const { client, clock, namespace, retryPeriodMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const sentMs = clock.monotonicMs();
      try {
        const { items } = await client.list(LEASES, { namespace, signal });
        this.#update(items.filter(({ metadata }) => isReplica(metadata.name)));
        this.#listedMs = sentMs;
        this.#outage.ended();
        this.#report();
        await this.#deleteLeft();
      } catch (error) {
        if (!signal.aborted) this.#outage.failed({ namespace, error: messageOf(error) });
      }
      await sleep(clock, retryPeriodMs, signal);
    }
  }

  #update(leases: readonly KubeObject[]): void {
    const names = new Set(leases.map(({ metadata }) => metadata.name));
    for (const lease of leases) this.#remember(lease.metadata.name, lease);
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#remember(name, undefined);
  }

  #remember(identity: string, lease: KubeObject | undefined): Seen {
    const text = JSON.stringify(lease?.['spec'] ?? null);
    const before = this.#seen.get(identity);
    const sinceMs = before?.text === text ? before.sinceMs : this.#options.clock.monotonicMs();
    const seen = { lease, text, sinceMs };
    this.#seen.set(identity, seen);
    return seen;
  }

  async #deleteLeft(): Promise<void> {
    const { client, leaseDurationMs, namespace } = this.#options;
    const leftMs = this.#listedMs - LEFT_DURATIONS * leaseDurationMs;
    for (const [name, { lease, sinceMs }] of this.#seen) {
      if (name === this.identity || sinceMs > leftMs) continue;
      this.#seen.delete(name);
      if (lease === undefined) continue;
      const { resourceVersion = '' } = lease.metadata;
      // It may be of a replica that was suspended, and renews it now.
      await client.delete(LEASES, { namespace, name }, { resourceVersion }).catch(() => undefined);
    }
  }

  /** A new term is a change even if this replica was not live only for a moment: what was asked then was not placed here. */
  #report(): void {
    if (this.#listedMs === -Infinity) return;
    const live = [this.term, ...this.live()].join(' ');
    if (live === this.#live) return;
    this.#live = live;
    this.#options.changed();
  }
}

/** Which replica syncs a member. Undefined without a replica. */
export function replicaOf(member: string, replicas: readonly string[]): string | undefined {
  return chosenPlace(member, replicas);
}
