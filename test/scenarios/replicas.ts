/** Several replicas of one daemon with leader election, each behind a proxy of its own, so that every write has a writer and a time. */

import type { ApiProxy } from './api-proxy.ts';
import type { Daemon } from './daemon.ts';
import { eventually } from '../support/eventually.ts';
import { subset } from './objects.ts';
import type { World } from './world.ts';

export interface LeaseTimes {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export interface Replica {
  readonly daemon: Daemon;
  readonly proxy: ApiProxy;
  /** Its wall clock is an hour ahead. */
  readonly isAhead: boolean;
}

/** A period in which one replica held the Lease, or no replica did: from one write of the Lease to the next. */
interface Term {
  readonly revision: number;
  /** When its response was received. Those of two replicas may be received in another order than they were stored. */
  readonly fromMs: number;
  readonly replica: Replica | undefined;
}

export interface Write {
  readonly atMs: number;
  readonly replica: Replica;
  readonly what: string;
}

const OBJECTS = 20;
/** Wall clock of one replica: an hour ahead. */
const HOUR_AHEAD = '--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now.call(Date)+3600000';

export class Replicas {
  readonly #world: World;
  readonly #times: LeaseTimes;
  readonly #all: Replica[] = [];
  /** In the order of their revisions. */
  #terms: readonly Term[] = [];
  #isUpdating = false;
  #updating: Promise<void> = Promise.resolve();
  #updates = 0;

  private constructor(world: World, times: LeaseTimes) {
    this.#world = world;
    this.#times = times;
  }

  /** Started one after another, so that the first leads; its clock is an hour ahead. */
  static async start(world: World, count: number, times: LeaseTimes): Promise<Replicas> {
    const replicas = new Replicas(world, times);
    for (let index = 0; index < count; index++) {
      const { daemon } = await replicas.#add(index === 0);
      if (index === 0)
        await eventually(
          () => daemon.metric('leader_election_master_status'),
          (leads) => leads === 1,
          { what: 'the first leader' },
        );
    }
    return replicas;
  }

  /** Every replica that was started, also those that ended. */
  get all(): readonly Replica[] {
    return this.#all;
  }

  get running(): readonly Replica[] {
    return this.#all.filter(({ daemon }) => daemon.isRunning);
  }

  /** Starts a replica for each that ended, and waits until one of them leads. */
  async refill(count: number): Promise<void> {
    while (this.running.length < count) await this.#add(!this.running.some(({ isAhead }) => isAhead));
    await eventually(
      () => this.#terms.at(-1)?.replica?.daemon.isRunning,
      (isRunning) => isRunning === true,
      { what: 'a leader' },
    );
  }

  get leader(): Replica {
    const replica = this.#terms.at(-1)?.replica;
    if (replica === undefined) throw new Error('no replica leads');
    return replica;
  }

  get standbys(): readonly Replica[] {
    return this.running.filter((one) => one !== this.leader);
  }

  /** The number of changes so far. */
  get updates(): number {
    return this.#updates;
  }

  /** Changes one Endpoints after another without a pause. */
  async startUpdates(): Promise<void> {
    for (let index = 0; index < OBJECTS; index++) await this.#world.createVirtual(keyOf(index));
    this.#resumeUpdates();
  }

  /** The last state of every object, synced. Updates continue afterwards. */
  async whenConverged(): Promise<void> {
    await this.stopUpdates();
    for (let index = 0; index < OBJECTS; index++) await this.#world.whenCopied(keyOf(index));
    this.#resumeUpdates();
  }

  async stopUpdates(): Promise<void> {
    this.#isUpdating = false;
    await this.#updating;
  }

  /** Every write to the host's Endpoints, in order. */
  writes(): readonly Write[] {
    return this.all
      .flatMap((replica) =>
        replica.proxy.requests
          .filter(({ isWrite, path }) => isWrite && path.includes('/endpoints'))
          .map(({ atMs, method, path }) => ({ atMs, replica, what: `${method} ${path}` })),
      )
      .toSorted((a, b) => a.atMs - b.atMs);
  }

  /** Writes since then of a replica at a time when another one held the Lease, or none did. */
  foreignWrites(sinceMs: number): readonly Write[] {
    return this.writes().filter(({ atMs, replica }) => {
      if (atMs < sinceMs) return false;
      const term = this.#terms.findLast(({ fromMs }) => fromMs <= atMs);
      return term?.replica !== replica;
    });
  }

  /** The first write of any other replica after `sinceMs`. */
  async whenWrittenByAnother(than: Replica, sinceMs: number, timeoutMs: number): Promise<Write> {
    const find = (): Write | undefined =>
      this.writes().find(({ atMs, replica }) => atMs >= sinceMs && replica !== than);
    const found = await eventually(
      async () => find(),
      (write) => write !== undefined,
      { timeoutMs, what: 'a write of another replica' },
    );
    if (found === undefined) throw new Error('the write that was found is gone');
    return found;
  }

  async #add(isAhead: boolean): Promise<Replica> {
    const proxy = await this.#world.proxy('host');
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#times;
    const leaderElection = {
      enabled: true,
      leaseDuration: `${leaseDurationMs}ms`,
      renewDeadline: `${renewDeadlineMs}ms`,
      retryPeriod: `${retryPeriodMs}ms`,
    };
    const daemon = await this.#world.spawnDaemon({
      config: { endpointSyncer: { leaderElection } },
      kubeconfigs: { host: proxy.path },
      ...(isAhead ? { env: { NODE_OPTIONS: HOUR_AHEAD } } : {}),
    });
    const replica = { daemon, proxy, isAhead };
    this.#record(replica);
    await daemon.ready();
    this.#all.push(replica);
    return replica;
  }

  #resumeUpdates(): void {
    this.#isUpdating = true;
    this.#updating = this.#update();
  }

  /** The Lease's history, from what the API server has stored. */
  #record(replica: Replica): void {
    replica.proxy.behaviour = {
      afterWrite: ({ path }, status, answer) => {
        if (!path.includes('/leases') || status > 299) return;
        const { metadata, spec } = JSON.parse(answer.toString('utf8')) as {
          metadata: { resourceVersion: string };
          spec: { holderIdentity?: string };
        }; // a Lease
        const term = {
          revision: Number(metadata.resourceVersion),
          fromMs: performance.now(),
          replica: (spec.holderIdentity ?? '') === '' ? undefined : replica,
        };
        this.#terms = [...this.#terms, term].toSorted((a, b) => a.revision - b.revision);
      },
    };
  }

  async #update(): Promise<void> {
    while (this.#isUpdating) {
      const index = this.#updates % OBJECTS;
      const ip = `10.7.${Math.floor(this.#updates / 250) % 250}.${(this.#updates % 250) + 1}`;
      await this.#world.mergeVirtual(keyOf(index), { subsets: [subset(ip)] });
      this.#updates += 1;
    }
  }
}

function keyOf(index: number): string {
  return `default/replicated-${index}`;
}
