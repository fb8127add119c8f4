/** The watched kinds: kinds that patches name from the start, other kinds from their first reference on. */

import { messageOf, TerminalError } from '../../base/errors.ts';
import type { CacheEvent, ClusterName } from '../../kube/types.ts';
import { sleep, withinTime } from '../../base/clock.ts';
import { RetryDelay } from '../../base/retry.ts';
import { createSemaphore } from '../../base/semaphore.ts';
import { ClusterScopedError } from '../../kube/discovery.ts';
import {
  kindPolicy,
  partsOfKind,
  resolveKind,
  type KindPolicy,
  type ReferencedKind,
} from './referenced-kind.ts';
import { longestWaitMs, type ReferenceEnvironment } from './environment.ts';
import { KindCaches } from './kind-caches.ts';
import { kindIdOf, type KindId } from '../translate/last-synced.ts';

export interface KindListener {
  changed(caches: KindCaches, cluster: ClusterName, event: CacheEvent): void;
  /** The caches of a kind that only objects name are in sync. */
  opened(caches: KindCaches): void;
  /** A kind that could not be watched may be opened again. */
  retry(kind: KindId): void;
}

/** How long the first reconcile waits for the caches of the kinds that patches name. A healthy server lists in less. */
const FIRST_LISTS_MS = 10_000;
const OPENING_MS = 5000;
const UNAVAILABLE_MS = 60_000;
/** Delays between attempts to find a kind that a patch names. */
const MISSING = { baseMs: 2000, maxMs: 60_000 };
const NOT_SERVED = 'its kind is not served by both clusters';
/** Until it has been looked for again. */
const NOT_FOUND_AT_START = `${NOT_SERVED}, or could not be looked up`;

export class KindRegistry {
  readonly policy: KindPolicy;
  readonly #environment: ReferenceEnvironment;
  readonly #listener: KindListener;
  readonly #kinds = new Map<KindId, KindCaches>();
  readonly #opening = new Map<KindId, Promise<void>>();
  readonly #unavailable = new Map<KindId, string>();
  /** Reported as kinds that cannot be watched. */
  readonly #unwatched = new Set<KindId>();
  readonly #clusterScoped = new Set<KindId>();
  /** The caches of the kinds that patches name are in sync, or have had their time. */
  #isOpened = false;
  readonly #inFlight;
  readonly #watching: Promise<void>[] = [];
  #signal: AbortSignal | undefined;

  constructor(environment: ReferenceEnvironment, named: readonly ReferencedKind[], listener: KindListener) {
    this.#environment = environment;
    this.#listener = listener;
    this.policy = kindPolicy(environment.config.sync);
    this.#inFlight = createSemaphore(environment.config.workers);
    for (const kind of named) this.#add(kind);
    for (const id of this.#missing) this.#unavailable.set(id, NOT_FOUND_AT_START);
    this.#reportMissing();
  }

  get isOpened(): boolean {
    return this.#isOpened || this.#unlisted.length === 0;
  }

  /** For readiness, which a kind that cannot be watched does not affect: a tenant may have broken it. */
  get detail(): string {
    const kinds = this.all();
    const problems = this.policy.named.map(kindIdOf).filter((id) => this.caches(id) === undefined);
    const watched = kinds.length === 0 ? 'not needed' : `${kinds.length} kinds are watched`;
    return [watched, ...problems.map((id) => `${id}: ${this.whyUnavailable(id)}`)].join('; ');
  }

  all(): readonly KindCaches[] {
    return [...this.#kinds.values()];
  }

  get ids(): readonly KindId[] {
    return [...this.#kinds.keys()];
  }

  isKnown(id: KindId): boolean {
    return this.#kinds.has(id);
  }

  /** Undefined while the caches of the kind are not in sync. */
  caches(id: KindId): KindCaches | undefined {
    const caches = this.#kinds.get(id);
    return caches?.isSynced === true ? caches : undefined;
  }

  whyUnavailable(id: KindId): string {
    return this.#kinds.get(id)?.whyUnlisted ?? this.#unavailable.get(id) ?? 'its kind cannot be watched';
  }

  /** On the host, whatever a tenant has made of it: its objects have the same name on both sides. */
  isClusterScoped(id: KindId): boolean {
    return this.#clusterScoped.has(id);
  }

  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const caches of this.all()) this.#watch(caches);
    for (const id of this.#missing) this.#watching.push(this.#openWhenServed(id, signal));
  }

  /** One that cannot be listed must not stop everything else. */
  async whenOpened(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#environment;
    const opening = Promise.all(this.#unlisted.map((id) => this.#open(id)));
    await withinTime(opening, { clock, ms: longestWaitMs(this.#environment, FIRST_LISTS_MS), signal });
    signal.throwIfAborted();
    for (const id of this.#unlisted) {
      const why = this.whyUnavailable(id);
      this.#unavailable.set(id, why);
      logger.warn({ kind: id, why }, UNLISTED);
    }
    this.#isOpened = true;
    this.#reportMissing();
  }

  get #unlisted(): readonly KindId[] {
    return this.ids.filter((id) => this.caches(id) === undefined);
  }

  /** Kinds that patches name and a cluster does not serve. */
  get #missing(): readonly KindId[] {
    return this.policy.named.map(kindIdOf).filter((id) => !this.isKnown(id));
  }

  #reportMissing(): void {
    const missing = this.policy.named.filter((kind) => this.#unavailable.has(kindIdOf(kind)));
    this.#environment.metrics.sync.kindsMissing(missing.length);
  }

  /** The CustomResourceDefinition may be installed later. */
  async #openWhenServed(id: KindId, signal: AbortSignal): Promise<void> {
    const { discoveries, clock, random, logger } = this.#environment;
    const delay = new RetryDelay(random, MISSING);
    while (!signal.aborted && !this.isKnown(id)) {
      await sleep(clock, delay.next(), signal);
      try {
        const kind = await resolveKind(partsOfKind(id), discoveries, this.policy, { signal });
        if (signal.aborted || this.isKnown(id)) continue;
        this.#watch(this.#add(kind));
        await this.#open(id);
      } catch (error) {
        this.#noteScope(id, error);
        this.#unavailable.set(id, whyNotFound(error));
        logger.debug(
          { kind: id, error: String(error) },
          'a kind that a patch references is still not served',
        );
      }
    }
  }

  async closed(): Promise<void> {
    await Promise.all(this.#watching);
    this.#environment.metrics.sync.kindsMissing(0);
  }

  /** Opens unknown kinds and waits a few seconds for their caches. Undefined if there is nothing to wait for. */
  open(ids: Iterable<KindId>): Promise<void> | undefined {
    const missing = [...new Set(ids)].filter(
      (id) => this.caches(id) === undefined && !this.#unavailable.has(id),
    );
    return missing.length === 0 ? undefined : this.#openMissing(missing);
  }

  async #openMissing(missing: readonly KindId[]): Promise<void> {
    const { clock } = this.#environment;
    const signal = this.#signal ?? AbortSignal.abort();
    const opening = Promise.all(missing.map((id) => this.#open(id)));
    await withinTime(opening, { clock, ms: longestWaitMs(this.#environment, OPENING_MS), signal });
    for (const id of missing) this.#noteUnavailable(id, this.whyUnavailable(id));
  }

  #open(id: KindId): Promise<void> {
    const opening = this.#opening.get(id) ?? this.#openKind(id);
    this.#opening.set(id, opening);
    return opening.finally(() => this.#opening.delete(id));
  }

  async #openKind(id: KindId): Promise<void> {
    const { discoveries, logger } = this.#environment;
    const signal = this.#signal ?? AbortSignal.abort();
    try {
      const known = this.#kinds.get(id);
      const caches =
        known ?? this.#add(await resolveKind(partsOfKind(id), discoveries, this.policy, { signal }));
      if (known === undefined) this.#watch(caches);
      await Promise.all(caches.informers.map((one) => one.whenSynced(signal)));
      this.#unwatched.delete(id);
      if (this.#unavailable.delete(id))
        logger.info({ kind: id }, 'the objects of a kind that is referenced are watched now');
      this.#reportMissing();
      this.#listener.opened(caches);
    } catch (error) {
      if (signal.aborted) return;
      this.#noteScope(id, error);
      logger[this.#unwatched.has(id) ? 'debug' : 'warn'](
        { kind: id, err: error },
        'referenced kind cannot be watched',
      );
      this.#unwatched.add(id);
      this.#noteUnavailable(id, messageOf(error));
    }
  }

  #noteScope(id: KindId, error: unknown): void {
    if (error instanceof ClusterScopedError && error.cluster === 'host') this.#clusterScoped.add(id);
  }

  /** For a minute, no reconcile waits for this kind; then its referrers are enqueued. A cache that syncs earlier is used immediately. */
  #noteUnavailable(id: KindId, why: string): void {
    if (this.caches(id) !== undefined || this.#unavailable.has(id)) return;
    this.#unavailable.set(id, why);
    this.#environment.clock.schedule(UNAVAILABLE_MS, () => {
      this.#unavailable.delete(id);
      this.#listener.retry(id);
    });
  }

  #add(kind: ReferencedKind): KindCaches {
    const caches = new KindCaches(kind, this.#environment, this.#inFlight);
    this.#kinds.set(kind.id, caches);
    this.#clusterScoped.delete(kind.id);
    caches.subscribe((cluster, event) => this.#listener.changed(caches, cluster, event));
    return caches;
  }

  #watch(caches: KindCaches): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    for (const informer of caches.informers) this.#watching.push(informer.run(signal));
  }
}

const UNLISTED =
  'objects of a kind that a patch references cannot be listed: references keep the names that copies have, and nothing of this kind is imported';

/** A kind that is cluster-scoped on the host refuses the next start: installing anything does not help. */
function whyNotFound(error: unknown): string {
  if (error instanceof ClusterScopedError) return error.message;
  return error instanceof TerminalError ? NOT_SERVED : `its kind cannot be looked up: ${messageOf(error)}`;
}
