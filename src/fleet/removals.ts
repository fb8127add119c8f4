/**
 * Removes the copies of deleted vClusters. Namespaces take turns, in a queue of their own: a client that can create Leases in a namespace chooses how many
 * candidates it has, and a Lease does not prove that its vCluster ever existed.
 */

import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { isReported, type Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import type { Config } from '../syncer/config/config.ts';
import { keyOf, type NamespacedName, type ObjectKey } from '../kube/object.ts';
import { WorkQueue, type QueueMetrics } from '../kube/work-queue.ts';
import type { MemberLock } from './member-lock.ts';

/** A vCluster that was a member, or has a Lease as if it had been one. */
export interface Former {
  /** That it was synced with last. */
  readonly config: Config;
  readonly lock: MemberLock;
}

export interface RemovalsOptions {
  /** It is gone with its values, as far as the caches know, and this replica is responsible for it. */
  readonly isDeleted: (vcluster: ObjectKey) => boolean;
  readonly isPlacedHere: (vcluster: ObjectKey) => boolean;
  /** Undefined in a dry run, which removes nothing. */
  readonly createLock: ((config: Config) => MemberLock) | undefined;
  /** Removes what these have left in their namespace, whose Leases are held. Resolves with the names of those of which nothing is left. */
  readonly remove: (namespace: string, formers: readonly Former[]) => Promise<ReadonlySet<string>>;
  readonly queueMetrics: QueueMetrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** vClusters of one namespace in one turn of it: each has a few requests to the host. */
const TURN_MAX = 20;
/** Known of one namespace; the next look at its Leases finds others. */
const FORMERS_MAX = 20;
const ENDED_MAX = 100;
/** Namespaces at the same time: one in which requests hang does not delay the others. */
const WORKERS = 64;
const RETRY = { retryBaseMs: 1000, retryMaxMs: 60_000 };

export class Removals {
  readonly #options: RemovalsOptions;
  /** Of namespaces, each of which has one turn at a time. */
  readonly #queue: WorkQueue;
  /** By namespace and name, in the order of their turns. */
  readonly #known = new Map<string, Map<string, Former>>();
  readonly #removing = new Set<ObjectKey>();
  #working: Promise<void> | undefined;

  constructor(options: RemovalsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ clock: options.clock, metrics: options.queueMetrics, ...RETRY });
  }

  start(): void {
    this.#working ??= this.#queue.process(WORKERS, (namespace) => this.#work(namespace));
  }

  /** A member has ended. It may be deleted now, or later, see {@link deleted}. */
  ended(config: Config): void {
    const former = this.#former(config);
    if (former === undefined) return;
    const known = this.#knownIn(config.host.namespace);
    known.delete(config.name);
    known.set(config.name, former);
    const [oldest = ''] = known.keys();
    if (known.size > ENDED_MAX) known.delete(oldest);
  }

  /** The caches do not have the vCluster any more. */
  deleted({ namespace, name }: NamespacedName): void {
    if (this.#known.get(namespace)?.has(name) === true) this.#queue.add(namespace);
  }

  /** vClusters that have Leases, and do not exist: any of them, where they are many. `configOf`: for one of which nothing else is known. */
  found(namespace: string, names: readonly string[], configOf: (name: string) => Config | undefined): void {
    const known = this.#knownIn(namespace);
    const start = Math.floor(this.#options.random() * names.length);
    for (const name of [...names.slice(start), ...names.slice(0, start)]) {
      if (known.size >= FORMERS_MAX) break;
      const config = known.has(name) ? undefined : configOf(name);
      const former = config && this.#former(config);
      if (former !== undefined) known.set(name, former);
    }
    if (known.size === 0) this.#known.delete(namespace);
    else this.#queue.add(namespace);
  }

  /** What an earlier vCluster of the name has left is being removed, with its Lease: the next member of the name must not begin before that has ended. */
  isRemoving(vcluster: ObjectKey): boolean {
    return this.#removing.has(vcluster);
  }

  async stop(): Promise<void> {
    this.#queue.abandon();
    await this.#working;
  }

  #former(config: Config): Former | undefined {
    const lock = this.#options.createLock?.(config);
    return lock && { config, lock };
  }

  #knownIn(namespace: string): Map<string, Former> {
    const known = this.#known.get(namespace) ?? new Map<string, Former>();
    this.#known.set(namespace, known);
    return known;
  }

  async #work(namespace: string): Promise<void> {
    try {
      const { left, removed } = await this.#turn(namespace);
      if (left === 0 || removed > 0) this.#queue.forget(namespace);
      if (left > 0 && removed > 0) this.#queue.add(namespace);
      else if (left > 0) this.#retry(namespace, `the Leases of ${left} deleted vClusters are held by others`);
    } catch (error) {
      this.#retry(namespace, messageOf(error));
    } finally {
      this.#queue.done(namespace);
    }
  }

  #retry(namespace: string, error: string): void {
    this.#queue.addRateLimited(namespace);
    const failures = this.#queue.failures(namespace);
    if (isReported(failures))
      this.#options.logger.warn(
        { namespace, error, failures },
        'what deleted vClusters have left cannot be removed, retrying',
      );
  }

  /** How many deleted vClusters there is nothing left of now, and of how many there is. */
  async #turn(namespace: string): Promise<{ readonly removed: number; readonly left: number }> {
    const { isDeleted, isPlacedHere, remove } = this.#options;
    const known = this.#knownIn(namespace);
    const keyIn = (name: string): ObjectKey => keyOf({ namespace, name });
    for (const name of known.keys()) if (!isPlacedHere(keyIn(name))) known.delete(name);
    const deleted = [...known].filter(([name]) => isDeleted(keyIn(name)));
    const turn = deleted.slice(0, TURN_MAX);
    // The next turn begins with the others.
    for (const [name, former] of turn) {
      known.delete(name);
      known.set(name, former);
      this.#removing.add(keyIn(name));
    }
    const formers = turn.map(([, former]) => former);
    let removed: ReadonlySet<string> = new Set();
    try {
      // One attempt each: a Lease that another process holds delays only what it is about.
      await Promise.all(formers.map(({ lock }) => lock.tryAcquire()));
      const held = formers.filter(({ lock }) => lock.isHeld);
      if (held.length > 0) removed = await remove(namespace, held);
      for (const name of removed) known.delete(name);
    } finally {
      await Promise.all(formers.map(({ lock }) => lock.release()));
      for (const [name] of turn) this.#removing.delete(keyIn(name));
      if (known.size === 0) this.#known.delete(namespace);
    }
    const left = [...known.keys()].filter((name) => isDeleted(keyIn(name)));
    return { removed: removed.size, left: left.length };
  }
}
