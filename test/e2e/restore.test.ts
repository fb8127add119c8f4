/**
 * etcd of one cluster is restored from a backup while the daemon runs: the copies become those of the restored objects, and `/readyz` and the
 * metrics tell of it. A watch that resumed at its last version would be blind.
 */

import { cpSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonValue } from '../../src/base/json.ts';
import { eventually } from '../support/eventually.ts';
import { ipsOf, subset } from '../scenarios/objects.ts';
import { World } from '../scenarios/world.ts';
import { startRealClusters, type RealClusters } from './clusters.ts';
import { ownClusters } from './real-world.ts';

const TIMEOUT_MS = 300_000;
const ALL = Array.from({ length: 12 }, (_, at) => `web-${at}`);
const [CHANGED, DELETED, CREATED] = [ALL.slice(0, 4), ALL.slice(4, 8), ALL.slice(8)];

let clusters: RealClusters;
let world: World;

beforeAll(async () => {
  clusters = await startRealClusters({ controllers: false, hasOwnEtcds: true });
}, TIMEOUT_MS);

afterAll(() => clusters[Symbol.asyncDispose]());

beforeEach(async () => {
  world = await World.open(ownClusters(clusters));
  return () => world[Symbol.asyncDispose]();
});

async function create(names: readonly string[], ip: string): Promise<void> {
  for (const name of names) await world.createVirtual(`default/${name}`, { subsets: [subset(ip)] });
}

async function change(names: readonly string[], ip: string): Promise<void> {
  const body = { subsets: [subset(ip)] as unknown as JsonValue };
  for (const name of names) await world.mergeVirtual(`default/${name}`, body);
}

/** Other clients of a busy server use more revisions than there have ever been before it is back. */
async function replaceData(
  cluster: 'virtual' | 'host',
  change: (dataDir: string) => void,
  isBusy = false,
): Promise<void> {
  await clusters.stop(cluster);
  await clusters.withoutEtcd(change, cluster);
  if (isBusy) await clusters.useUpRevisions(500, cluster);
  await clusters.start(cluster);
}

function restoreBackup(data: string): void {
  rmSync(data, { recursive: true });
  cpSync(`${data}.backup`, data, { recursive: true });
}

/** Names and addresses of the copies. */
function expected(copies: Readonly<Record<string, readonly string[]>>): string {
  const lines = Object.entries(copies).flatMap(([ip, names]) =>
    names.map((name) => `${world.hostName(`default/${name}`)} ${ip}`),
  );
  return lines.toSorted().join();
}

async function actual(): Promise<string> {
  const copies = await world.copies();
  return copies
    .map((copy) => `${copy.metadata.name} ${ipsOf(copy).join()}`)
    .toSorted()
    .join();
}

function whenRight(copies: Readonly<Record<string, readonly string[]>>): Promise<string> {
  return eventually(actual, (seen) => seen === expected(copies), {
    timeoutMs: TIMEOUT_MS,
    what: expected(copies),
  });
}

test.each([
  ['virtual', 'its versions are older than the last known one', false],
  ['virtual', 'it has passed the last known version', true],
  ['host', 'its versions are older than the last known one', false],
  ['host', 'it has passed the last known version', true],
] as const)(
  'the %s cluster is restored and %s: the copies become right',
  async (cluster, state, isBusy) => {
    const daemon = await world.startDaemon();
    const original = [...CHANGED, ...DELETED];
    await create(original, '10.1.0.1');
    await whenRight({ '10.1.0.1': original });
    await replaceData(cluster, (data) => cpSync(data, `${data}.backup`, { recursive: true }));
    await change(CHANGED, '10.1.0.2');
    for (const name of DELETED) await world.deleteVirtual(`default/${name}`);
    await create(CREATED, '10.1.0.3');
    const after = { '10.1.0.2': CHANGED, '10.1.0.3': CREATED };
    await whenRight(after);
    await eventually(
      () => daemon.get('/readyz'),
      ({ status }) => status === 200,
      { timeoutMs: TIMEOUT_MS },
    );
    const restores = { cluster, reason: 'restored' };
    expect(await daemon.metric('endpoint_syncer_watch_restarts_total', restores)).toBe(0);
    await replaceData(cluster, restoreBackup, isBusy);
    const restoredMs = performance.now();
    await whenRight(cluster === 'virtual' ? { '10.1.0.1': original } : after);
    const rightMs = performance.now() - restoredMs;
    await eventually(
      () => daemon.metric('endpoint_syncer_watch_restarts_total', restores),
      (count) => count > 0,
      { timeoutMs: TIMEOUT_MS, what: 'a restore in the metrics' },
    );
    await eventually(
      () => daemon.get('/readyz'),
      ({ status }) => status === 200,
      { timeoutMs: TIMEOUT_MS },
    );
    await daemon.whenLogged(/^the server was restored/u);
    const lines = daemon.log.filter(({ msg }) => String(msg).startsWith('the server was restored'));
    expect(lines.map((line) => line['cluster'])).toEqual([cluster]);
    await world.settle(daemon);
    console.log(`${cluster}, ${state}: all copies right ${(rightMs / 1000).toFixed(1)} s after its start`);
  },
  TIMEOUT_MS,
);
