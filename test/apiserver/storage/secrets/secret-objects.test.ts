/** Three replicas with network faults, throttling and expired history: every response is correct. */

import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  type Fault,
  type FaultyCluster,
  type Interceptor,
  startFaultyCluster,
} from '../../../embedded-cluster/faulty-cluster.ts';
import { plainAccess } from '../../../../src/kube/access.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { decodeSecret, SecretNames } from '../../../../src/apiserver/storage/secrets/secret-codec.ts';
import type { Random } from '../../../../src/base/random.ts';
import type { StoreEvent, StoredEntry } from '../../../../src/apiserver/storage/store.ts';
import { expectHonestAnswers, expectSameEnd, factOf, follow, stateOf, write, type Fact } from './crowd.ts';
import { until } from '../../../kube/informer-harness.ts';
import { hurried, openReplica } from './replicas.ts';
import { seededRandom } from '../../../support/random.ts';
import { disconnect } from '../../../support/connections.ts';

const STORE = 'test';
const FAULTS: readonly Fault[] = [
  'drop',
  'reset-after-commit',
  'reset-after-commit',
  { status: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
  { status: 500, reason: 'InternalError' },
  { status: 503, reason: 'ServiceUnavailable' },
];
const WATCH_FAULTS: readonly Fault[] = ['drop', { status: 500 }, { status: 410, reason: 'Expired' }];

function faultsOf(random: Random, rate: number, { forgets }: { forgets: boolean }): Interceptor {
  return ({ resource, verb }) => {
    if (resource !== 'secrets' || random() >= rate) return undefined;
    const isWatch = verb === 'watch' || verb === 'list';
    const faults = isWatch ? WATCH_FAULTS.slice(0, forgets ? 3 : 2) : FAULTS;
    return faults[Math.floor(random() * faults.length)];
  };
}

/** What really happens, from inside the API server. */
async function trueHistory(cluster: FaultyCluster): Promise<Fact[]> {
  const names = new SecretNames(STORE);
  const facts: Fact[] = [];
  const entryOf = ({ value, revision }: StoredEntry): StoredEntry | undefined => {
    const secret = structuredClone(value) as unknown as KubeObject;
    secret.metadata.resourceVersion = String(revision);
    const decoded = decodeSecret(names, secret);
    return decoded.state === 'held' ? decoded.entry : undefined;
  };
  await cluster.store.watch({ resource: 'secrets' }, await cluster.store.revision(), {
    event({ type, revision, entry, previous }: StoreEvent) {
      const state = entryOf(entry);
      if (state === undefined) return;
      const before = previous && entryOf(previous);
      facts.push(factOf({ type, revision, entry: state, ...(before ? { previous: before } : {}) }));
    },
    end: () => undefined,
  });
  return facts;
}

interface Trial {
  readonly seed: number;
  readonly rate: number;
  /** The server compacts its history, so that only lists work. */
  readonly forgets: boolean;
}

async function tryOut({ seed, rate, forgets }: Trial): Promise<void> {
  const random = seededRandom(seed);
  await using cluster = await startFaultyCluster({ name: 'host' });
  const truth = await trueHistory(cluster);
  const options = { name: STORE, clock: hurried(25), timeoutMs: 30_000 };
  const access = plainAccess(cluster.url);
  await using a = await openReplica(access, { ...options, random: seededRandom(seed + 1) });
  await using b = await openReplica(access, { ...options, random: seededRandom(seed + 2) });
  await using c = await openReplica(access, { ...options, random: seededRandom(seed + 3) });
  const replicas = [a, b, c];
  const followed = await Promise.all(replicas.map(({ store }) => follow(store)));

  cluster.intercept(faultsOf(random, rate, { forgets }));
  const accidents = (async () => {
    for (let i = 0; i < 3; i++) {
      await until(() => truth.length > 8 * (i + 1));
      if (forgets) await cluster.expireHistory();
      disconnect(cluster);
    }
  })().catch(() => undefined); // too few writes for all of them
  const writers = replicas.flatMap(({ store }, r) =>
    [0, 1].map((w) => write(store, `${r}${w}`, 10, seededRandom(seed * 7 + r * 2 + w))),
  );
  const attempts = (await Promise.all(writers)).flat();
  await accidents;
  cluster.intercept(undefined);

  expectHonestAnswers(attempts, truth, { hasFaults: true });
  await expectSameEnd(
    replicas.map(({ store }) => store),
    truth,
  );
  for (const facts of followed) {
    await vi.waitFor(() => expect(stateOf(facts)).toEqual(stateOf(truth)), { timeout: 60_000, interval: 2 });
    const revisions = facts.map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((x, y) => x - y));
  }
}

describe('responses are correct and events lead to the state of the server', () => {
  const seed = fc.integer({ min: 1, max: 1_000_000 });

  test('when responses are lost', async () => {
    const trial = fc.asyncProperty(seed, (n) => tryOut({ seed: n, rate: 0.25, forgets: false }));
    await expect(fc.assert(trial, { numRuns: 2, endOnFailure: true })).resolves.toBeUndefined();
  });

  test('when the server also compacts its history', async () => {
    const trial = fc.asyncProperty(seed, (n) => tryOut({ seed: n, rate: 0.15, forgets: true }));
    await expect(fc.assert(trial, { numRuns: 2, endOnFailure: true })).resolves.toBeUndefined();
  });
});
