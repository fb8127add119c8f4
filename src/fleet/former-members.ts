/** vClusters that are deleted: those that were members of this process, and those of which an earlier one has left the Lease. What they have left is removed. */

import type { Clock } from '../base/clock.ts';
import { sleep } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { OutageLog } from '../base/outage-log.ts';
import type { Random } from '../base/random.ts';
import { retry } from '../base/retry.ts';
import type { Config } from '../syncer/config/config.ts';
import { checkHeld, guardedClient, LEASES } from '../kube/lease.ts';
import { keyOf, type KubeObject, type NamespacedName, type ObjectKey } from '../kube/object.ts';
import { isForbidden } from '../kube/status-error.ts';
import { TransportError, type ClusterClient, type WatchClient } from '../kube/types.ts';
import type { QueueMetrics } from '../kube/work-queue.ts';
import { decideByWorkload, type FleetRules } from './decide-member.ts';
import { exactNamespaces, listMetadata, type FleetDiscovery } from './discovery.ts';
import { plainMemberConfig } from './member-config.ts';
import type { MemberLock } from './member-lock.ts';
import { formerMember, removeCopies } from './removal.ts';
import { Removals, type Former } from './removals.ts';

export interface FormerMembersOptions {
  readonly client: WatchClient;
  /** For the Leases of all namespaces. */
  readonly discoveryClient: Pick<WatchClient, 'list'>;
  readonly discovery: FleetDiscovery;
  readonly rules: () => FleetRules;
  readonly isPlacedHere: (vcluster: ObjectKey) => boolean;
  /** This process syncs it, or has not ended to: it holds the Lease for that, and would copy again what is removed. */
  readonly isMember: (vcluster: ObjectKey) => boolean;
  /** Undefined in a dry run. */
  readonly createLock: ((config: Config) => MemberLock) | undefined;
  readonly queueMetrics: QueueMetrics;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

const DELAYS = { baseMs: 1000, maxMs: 60_000 };
const PERIOD_MS = 5 * 60_000;

export class FormerMembers {
  readonly removals: Removals;
  readonly #options: FormerMembersOptions;

  constructor(options: FormerMembersOptions) {
    this.#options = options;
    this.removals = new Removals({
      ...options,
      isDeleted: (key) => this.#isDeleted(key),
      remove: (namespace, formers) => this.#remove(namespace, formers),
    });
  }

  start(): void {
    this.removals.start();
    void this.#findAgain();
  }

  stop(): Promise<void> {
    return this.removals.stop();
  }

  /** vClusters that were deleted while no process of the fleet ran: their Leases are left. */
  async find(): Promise<void> {
    const { clock, logger, random, signal } = this.#options;
    const outage = new OutageLog(logger, 'Leases of former members cannot be listed, retrying');
    const onRetry = (error: unknown): void => outage.failed({ error: messageOf(error) });
    const isRetryable = (error: unknown): boolean => !isForbidden(error);
    // Without the right, it is left to the next replica that has it.
    await retry(() => this.#find(), { ...DELAYS, clock, random, signal, isRetryable, onRetry }).catch(
      () => undefined,
    );
  }

  /** Now and then, because a replica that was suspended may take a Lease after it was removed, and release it. */
  async #findAgain(): Promise<void> {
    const { clock, random, signal } = this.#options;
    while (!signal.aborted) {
      await this.find();
      await sleep(clock, PERIOD_MS * (0.8 + 0.4 * random()), signal);
    }
  }

  async #find(): Promise<void> {
    const { discoveryClient, rules, signal } = this.#options;
    const found: NamespacedName[] = [];
    for (const scope of exactNamespaces(rules().fleet) ?? [undefined]) {
      const options = { namespace: scope, signal };
      const listed = await listMetadata(discoveryClient, LEASES, options, (lease) => this.#formerOf(lease));
      for (const vcluster of listed) if (vcluster !== undefined) found.push(vcluster);
    }
    for (const [namespace, vclusters] of Map.groupBy(found, (vcluster) => vcluster.namespace)) {
      const names = vclusters.map(({ name }) => name);
      this.removals.found(namespace, names, (name) =>
        plainMemberConfig({ ...rules(), vcluster: { namespace, name } }),
      );
    }
  }

  /** The deleted vCluster of a Lease, if this process removes its copies. */
  #formerOf(lease: KubeObject): NamespacedName | undefined {
    const vcluster = formerMember(lease);
    if (vcluster === undefined) return undefined;
    const key = keyOf(vcluster);
    return this.#isDeleted(key) && this.#options.isPlacedHere(key) ? vcluster : undefined;
  }

  /** As far as the caches know. */
  #isDeleted(vcluster: ObjectKey): boolean {
    const { discovery, isMember, rules } = this.#options;
    return !isMember(vcluster) && decideByWorkload(discovery.known(vcluster), rules())?.kind === 'deleted';
  }

  /** As the holder of their Leases: another replica may not have noticed yet that a vCluster is gone. */
  async #remove(namespace: string, formers: readonly Former[]): Promise<ReadonlySet<string>> {
    const { client, discovery, logger, signal } = this.#options;
    // Until now, one may have been installed again, and its copies are those of its objects then.
    const names = formers.map(({ config }) => config.name);
    const deleted = await discovery.deletedIn(namespace, names, signal);
    const locks = new Map(formers.map(({ config, lock }) => [config, lock]));
    const clientOf = (config: Config): ClusterClient =>
      guardedClient(client, {
        checkWrite: () => {
          const lock = locks.get(config);
          if (lock !== undefined) checkHeld(lock);
          // It may be installed again meanwhile: what is deleted until the caches show it is copied again by its sync.
          if (!this.#isDeleted(keyOf({ namespace, name: config.name })))
            throw new TransportError('the vCluster exists again');
        },
      });
    const configs = [...locks.keys()].filter(({ name }) => deleted.has(name));
    if (configs.length > 0) await removeCopies({ namespace, configs, clientOf, client, logger, signal });
    return deleted;
  }
}
