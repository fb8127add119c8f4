/** Replicas of a store on an API server, and a clock that shortens their backoff. */

import { RestClient } from '../../../../src/kube/client/client.ts';
import type { ServerAccess } from '../../../../src/kube/access.ts';
import type { WatchClient } from '../../../../src/kube/types.ts';
import { systemClock, type Clock } from '../../../../src/base/clock.ts';
import { systemRandom } from '../../../../src/base/random.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import type {
  KubernetesStore,
  KubernetesStoreOptions,
} from '../../../../src/apiserver/storage/secrets/kubernetes-store.ts';
import { openKubernetesStore } from '../../../../src/apiserver/storage/secrets/kubernetes-store.ts';
import type { Fault, FaultyCluster } from '../../../embedded-cluster/faulty-cluster.ts';
import type { HeldEvents } from './held-events.ts';

export interface Replica extends AsyncDisposable {
  readonly store: KubernetesStore;
  readonly client: WatchClient;
}

/** Time that passes `times` as fast: what waits for seconds waits for milliseconds. */
export function hurried(times: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs() * times,
    schedule: (delayMs, callback) => systemClock.schedule(delayMs / times, callback),
  };
}

/** Timers that are `times` as fast, while no time passes: no deadline expires and no outage is a long one, however busy the machine is. */
export function timeless(times: number): Clock {
  return { ...hurried(times), monotonicMs: () => 0 };
}

/** A backoff of seconds takes milliseconds. */
export const fast = { clock: timeless(50) };

/**
 * Time that passes `times` as fast, and only with its timers: a machine that is late uses up no deadline, so the number of attempts
 * before it depends on the delays alone.
 */
export function timerDriven(times: number): Clock {
  let nowMs = 0;
  return {
    now: () => systemClock.now(),
    monotonicMs: () => nowMs,
    schedule(delayMs, callback) {
      const dueMs = nowMs + delayMs;
      return systemClock.schedule(delayMs / times, () => {
        nowMs = Math.max(nowMs, dueMs);
        callback();
      });
    },
  };
}

export function clientOf(access: ServerAccess): WatchClient {
  const metrics = { requested: () => undefined };
  return new RestClient({ cluster: 'host', access, clock: systemClock, metrics, userAgent: 'test/0' });
}

/** A replica: a store with its own client. */
export async function openReplica(
  access: ServerAccess,
  options: Partial<KubernetesStoreOptions> = {},
  events?: HeldEvents,
): Promise<Replica> {
  const client = clientOf(access);
  const store = await openKubernetesStore({
    client: events?.of(client) ?? client,
    namespace: 'default',
    name: 'test',
    clock: systemClock,
    random: systemRandom,
    logger: silentLogger,
    ...options,
  });
  return {
    store,
    client,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
    },
  };
}

/** Faults for the next requests for Secrets that are not lists or watches, in order. */
export function failNext(cluster: FaultyCluster, ...faults: Fault[]): void {
  cluster.intercept(({ resource, verb }) =>
    resource === 'secrets' && verb !== 'watch' && verb !== 'list' ? faults.shift() : undefined,
  );
}
