/** Which replica may write: the only one, or the one that holds the Lease. */

import { hostname } from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import type { Config } from '../config/types.ts';
import { LeaseLock } from '../kube/lease.ts';
import { TransportError, type ClusterClient } from '../kube/types.ts';
import { FIELD_MANAGER } from './reconcile/write/writer.ts';

export interface Leadership extends AsyncDisposable {
  /** Resolves when this replica may write, or when `signal` aborts. */
  whenLeading(signal: AbortSignal): Promise<void>;
  readonly isLeading: boolean;
  /** Throws a `TransportError` when this replica must not write now. */
  checkWrite(): void;
  /** Resolves with the reason when this replica has lost the lead. */
  readonly lost: Promise<string>;
  /** For readiness: a standby is ready. */
  check(): CheckResult;
}

export interface LeadershipOptions {
  readonly config: Config;
  /** Client of the host cluster that does not check the lease before writes. */
  readonly client: ClusterClient;
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** `leader_election_master_status`. */
  readonly leads: (lease: string, isLeader: boolean) => void;
}

/** Name of the Lease in the host namespace. */
export function leaseName(vcluster: string): string {
  return `endpoint-syncer-${vcluster}`;
}

/** A dry run writes nothing, so it needs no Lease. */
export function startLeadership(options: LeadershipOptions): Leadership {
  const { config, isDryRun, leads } = options;
  if (config.leaderElection.enabled && !isDryRun) return new ElectedLeadership(options);
  leads(leaseName(config.name), true);
  return {
    whenLeading: async () => undefined,
    isLeading: true,
    checkWrite: () => undefined,
    lost: new Promise(() => undefined),
    check: () => ({ isOk: true, detail: 'not enabled' }),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

class ElectedLeadership implements Leadership {
  readonly lost: Promise<string>;
  readonly #options: LeadershipOptions;
  readonly #lock: LeaseLock;
  readonly #stopping = new AbortController();
  readonly #leading = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  readonly #lost = Promise.withResolvers<string>();

  constructor(options: LeadershipOptions) {
    const { config, leads } = options;
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = config.leaderElection;
    this.#options = options;
    this.lost = this.#lost.promise;
    this.#lock = new LeaseLock({
      ...options,
      lease: { namespace: config.host.namespace, name: leaseName(config.name) },
      identity: `${hostname()}_${crypto.randomUUID()}`,
      fieldManager: FIELD_MANAGER,
      leaseDurationMs,
      renewDeadlineMs,
      retryPeriodMs,
    });
    leads(leaseName(config.name), false);
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
    if (!this.#lock.isHeld) throw new TransportError('not sent: this replica does not hold the lease');
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
    const { config, logger, leads } = this.#options;
    const { signal } = this.#stopping;
    const lease = leaseName(config.name);
    logger.info({ lease }, 'waiting for the lease');
    if (!(await this.#lock.acquire(signal))) return;
    leads(lease, true);
    logger.info({ lease }, 'this replica leads');
    this.#leading.resolve();
    await this.#lock.hold(signal);
    leads(lease, false);
    if (!signal.aborted) this.#lost.resolve(this.#whyLost(lease));
  }

  #whyLost(lease: string): string {
    const { holder } = this.#lock;
    const isTaken = holder !== '' && holder !== this.#lock.identity;
    return isTaken
      ? `the lease ${lease} was lost to ${holder}`
      : `the lease ${lease} was not renewed within ${this.#options.config.leaderElection.renewDeadlineMs / 1000} s`;
  }
}
