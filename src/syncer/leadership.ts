/** Which replica may write: the only one, or the one that holds the Lease. */

import { hostname } from 'node:os';
import { messageOf } from '../base/errors.ts';
import { sleep, type Clock } from '../base/clock.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { retry } from '../base/retry.ts';
import type { Config } from './config/config.ts';
import { checkHeld, LEASES, LeaseLock, leaseWith, type Lock } from '../kube/lease.ts';
import { keyOf, type KubeObject, type NamespacedName, type StringMap } from '../kube/object.ts';
import {
  ignoreNotFound,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isTransient,
} from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';
import type { Metrics } from './metrics/metrics.ts';
import { FIELD_MANAGER } from './translate/bookkeeping.ts';

export interface Leadership extends AsyncDisposable {
  whenLeading(signal: AbortSignal): Promise<void>;
  readonly isLeading: boolean;
  /** Throws a `TransportError` when this replica must not write now. */
  checkWrite(): void;
  /** Resolves with the reason when this replica has lost the lead. */
  readonly lost: Promise<string>;
  /** For readiness: a standby is ready. */
  check(): CheckResult;
  /** Adds annotations to those that the Lease gets while this replica leads, such as the {@link CONFIGURATION} for commands that compare theirs. */
  publish(annotations: StringMap): void;
}

/** Annotation of the Lease: the hash of the configuration of the daemon that writes now; '' when it has stopped. */
export const CONFIGURATION = 'endpoint-syncer/configuration';

/** Annotation of the Lease: the hash of the text of the configuration file in use, kept after a stop, by which commands know that file on the host. */
export const CONFIGURATION_TEXT = 'endpoint-syncer/configuration-text';

export interface LeadershipOptions {
  readonly config: Config;
  readonly client: ClusterClient;
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Absent: a Lease that this process renews. */
  readonly createLock?: ((lease: NamespacedName, annotations: () => StringMap) => Lock) | undefined;
  /** More annotations of the Lease that this replica holds, at any time. */
  readonly leaseAnnotations?: (() => StringMap) | undefined;
  readonly metrics: Pick<Metrics, 'leads'>;
}

export function leaseName(vcluster: string): string {
  return `endpoint-syncer-${vcluster}`;
}

/** A dry run writes nothing, so it needs no Lease. */
export function startLeadership(options: LeadershipOptions): Leadership {
  const { config, isDryRun, metrics } = options;
  if (config.leaderElection.enabled && !isDryRun) return new ElectedLeadership(options);
  metrics.leads(leaseName(config.name), true);
  const published = new PublishedAnnotations(options);
  return {
    whenLeading: async () => undefined,
    isLeading: true,
    checkWrite: () => undefined,
    lost: new Promise(() => undefined),
    check: () => ({ isOk: true, detail: 'not enabled' }),
    publish: (annotations) => (isDryRun ? undefined : published.add(annotations)),
    [Symbol.asyncDispose]: () => published.clear(),
  };
}

const PUBLISH_DELAYS = { baseMs: 1000, maxMs: 60_000 };
const CLEAR_TIMEOUT_MS = 1000;

/** Publishes annotations without leader election, in a Lease without a holder. The sync does not depend on the right to write it. */
class PublishedAnnotations {
  readonly #options: LeadershipOptions;
  readonly #lease: NamespacedName;
  readonly #stopping = new AbortController();
  #annotations: StringMap = {};
  #writing = Promise.resolve();
  #stored: KubeObject | undefined;
  #isReported = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    const { host, name } = options.config;
    this.#lease = { namespace: host.namespace, name: leaseName(name) };
  }

  add(annotations: StringMap): void {
    this.#annotations = { ...this.#annotations, ...annotations };
    const { signal } = this.#stopping;
    const isRetryable = (error: unknown): boolean =>
      isTransient(error) || isConflict(error) || isAlreadyExists(error);
    const write = (): Promise<void> =>
      retry(() => this.#write(this.#annotations), {
        ...this.#options,
        ...PUBLISH_DELAYS,
        signal,
        isRetryable,
      });
    this.#writing = this.#writing.then(write).catch((error: unknown) => {
      if (signal.aborted || this.#isReported) return;
      this.#isReported = true;
      // The right is optional: that it is missing is no failure.
      const why = isForbidden(error) ? {} : { error: messageOf(error) };
      this.#options.logger.info(
        { lease: keyOf(this.#lease), ...why },
        'configuration in use is not published, so status, diff and explain cannot compare theirs with it; rbac prints the rights',
      );
    });
  }

  /** A daemon that was started later keeps its own. */
  async clear(): Promise<void> {
    this.#stopping.abort();
    // A write that is in progress would come after this one.
    const limit = new AbortController();
    await Promise.race([this.#writing, sleep(this.#options.clock, CLEAR_TIMEOUT_MS, limit.signal)]);
    limit.abort();
    if (this.#stored === undefined) return;
    const cleared = leaseWith(this.#stored, this.#lease, { [CONFIGURATION]: '' });
    const options = { fieldManager: FIELD_MANAGER, timeoutMs: CLEAR_TIMEOUT_MS };
    await this.#options.client.update(LEASES, cleared, options).catch(() => undefined);
  }

  async #write(annotations: StringMap): Promise<void> {
    const { client } = this.#options;
    const current = await ignoreNotFound(client.get(LEASES, this.#lease));
    const wanted = leaseWith(current, this.#lease, annotations);
    const options = { fieldManager: FIELD_MANAGER };
    const known = current?.metadata.annotations ?? {};
    const isSame = Object.entries(annotations).every(([key, value]) => known[key] === value);
    if (current !== undefined && isSame) this.#stored = current;
    else if (current === undefined) this.#stored = await client.create(LEASES, wanted, options);
    else this.#stored = await client.update(LEASES, wanted, options);
  }
}

class ElectedLeadership implements Leadership {
  readonly lost: Promise<string>;
  readonly #options: LeadershipOptions;
  readonly #lock: Lock;
  readonly #stopping = new AbortController();
  readonly #leading = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  readonly #lost = Promise.withResolvers<string>();
  #annotations: StringMap = {};

  constructor(options: LeadershipOptions) {
    const { config, metrics } = options;
    const { leaseDuration, renewDeadline, retryPeriod } = config.leaderElection;
    this.#options = options;
    this.lost = this.#lost.promise;
    const lease = { namespace: config.host.namespace, name: leaseName(config.name) };
    const annotations = (): StringMap => ({ ...this.#annotations, ...options.leaseAnnotations?.() });
    this.#lock =
      options.createLock?.(lease, annotations) ??
      new LeaseLock({
        ...options,
        lease,
        identity: `${hostname()}_${crypto.randomUUID()}`,
        fieldManager: FIELD_MANAGER,
        annotations,
        leaseDurationMs: leaseDuration,
        renewDeadlineMs: renewDeadline,
        retryPeriodMs: retryPeriod,
      });
    metrics.leads(leaseName(config.name), false);
    this.#running = this.#run();
  }

  async whenLeading(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    if (signal.aborted) return;
    signal.addEventListener('abort', abort, { once: true });
    await Promise.race([this.#leading.promise, aborted.promise]);
    signal.removeEventListener('abort', abort);
  }

  get isLeading(): boolean {
    return this.#lock.isHeld;
  }

  checkWrite(): void {
    checkHeld(this.#lock);
  }

  publish(annotations: StringMap): void {
    this.#annotations = { ...this.#annotations, ...annotations };
  }

  check(): CheckResult {
    if (this.#lock.isHeld) return { isOk: true, detail: 'this replica leads' };
    const { holder } = this.#lock;
    return { isOk: true, detail: holder === '' ? 'standby, no leader yet' : `standby, ${holder} leads` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#lock.release();
  }

  async #run(): Promise<void> {
    const { config, logger, metrics } = this.#options;
    const { signal } = this.#stopping;
    const lease = leaseName(config.name);
    logger.info({ lease }, 'waiting for the lease');
    if (!(await this.#lock.acquire(signal))) return;
    metrics.leads(lease, true);
    logger.info({ lease }, 'this replica leads');
    this.#leading.resolve();
    await this.#lock.hold(signal);
    metrics.leads(lease, false);
    if (!signal.aborted) this.#lost.resolve(this.#whyLost(lease));
  }

  #whyLost(lease: string): string {
    const { holder } = this.#lock;
    const isTaken = holder !== '' && holder !== this.#lock.identity;
    return isTaken
      ? `the lease ${lease} was lost to ${holder}`
      : `the lease ${lease} was not renewed within ${this.#options.config.leaderElection.renewDeadline / 1000} s`;
  }
}
