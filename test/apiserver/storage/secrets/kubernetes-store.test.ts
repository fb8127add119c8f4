/** The driver with Secrets fulfils the contract of the store, on an embedded API server. */

import { afterAll, beforeAll } from 'vitest';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
} from '../../../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../../../src/kube/access.ts';
import type { WatchClient } from '../../../../src/kube/types.ts';
import { openKubernetesStore } from '../../../../src/apiserver/storage/secrets/kubernetes-store.ts';
import { systemClock } from '../../../../src/base/clock.ts';
import { systemRandom } from '../../../../src/base/random.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import { storeContract } from '../store-contract.ts';
import { clientOf } from './replicas.ts';

let cluster: EmbeddedCluster;
let client: WatchClient;
let count = 0;

beforeAll(async () => {
  cluster = await startEmbeddedCluster({ name: 'host', historyLimit: 10_000 });
  client = clientOf(plainAccess(cluster.url));
});

afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
});

/** All stores are in one namespace, with different names. */
storeContract(
  'kubernetes',
  (historyLimit) =>
    openKubernetesStore({
      client,
      namespace: 'default',
      name: `contract ${++count}`,
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      ...(historyLimit === undefined ? {} : { historyLimit }),
    }),
  { runs: 12, isCounterShared: true, compact: () => cluster.expireHistory() },
);
