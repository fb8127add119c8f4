/** Only the leader writes: each write is by the daemon whose name is in the Lease. */

import { objectKey, type Resource } from '../../../src/kube/object.ts';
import type { SimDaemon } from '../daemon/sim-daemon.ts';
import { HOST_NAMESPACE, LEASE_NAME } from '../world/names.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import { RESTORE_MANAGER, type SimCluster } from '../world/sim-cluster.ts';

const LEASE_KEY = `${HOST_NAMESPACE}/${LEASE_NAME}`;
/**
 * The renew deadline, and the time that a request takes to arrive: a leader that was paused while its Lease was deleted writes until it
 * is due to renew it.
 */
const GRACE_MS = 10_000 + 1000;

export class LeaderCheck {
  readonly #host: SimCluster;
  readonly #clock: VirtualClock;
  readonly #violation: (message: string) => void;
  #leader: SimDaemon | undefined;
  #deletedAtMs = -Infinity;

  constructor(host: SimCluster, clock: VirtualClock, violation: (message: string) => void) {
    this.#host = host;
    this.#clock = clock;
    this.#violation = violation;
    host.subscribe(({ plural, object, isDeletion, manager }) => {
      const isGone = isDeletion || manager === RESTORE_MANAGER;
      if (plural === 'leases' && isGone && objectKey(object) === LEASE_KEY) this.#deletedAtMs = clock.nowMs;
    });
  }

  /** A write of this daemon was committed. */
  wrote(daemon: SimDaemon, { plural }: Resource): void {
    if (plural === 'leases') {
      const spec = this.#host.get('leases', LEASE_KEY)?.['spec'] as { holderIdentity?: string } | undefined; // a Lease
      this.#leader = spec?.holderIdentity === '' ? undefined : daemon;
      return;
    }
    const isInGrace = this.#clock.nowMs < this.#deletedAtMs + GRACE_MS;
    if (daemon !== this.#leader && !isInGrace)
      this.#violation(`${plural} were written by a daemon that does not hold the lease`);
  }
}
