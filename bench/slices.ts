/** What the sync of EndpointSlices costs where controllers generate all of them, on real kube-apiservers: the daemon starts with it and without it in
 * turns, with copies of all Endpoints in place.
 *
 *   npm run bench -- slices [--slices 10000] [--objects 1000] [--rounds 7]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRealClusters } from '../test/e2e/clusters.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { Guardian } from '../test/support/guardian.ts';
import { isReady, pause, whenIdle } from './daemon-process.ts';
import { median } from './statistics.ts';
import { costOfRunning, SyncedEndpoints, kill } from './synced-endpoints.ts';
import { inParallel } from '../test/support/in-parallel.ts';
import { thisMachine } from './machine.ts';
import type { WriteResult } from './results.ts';

/** Medians; times in ms, sizes in bytes. */
interface Row {
  readonly isSynced: boolean;
  /** From process start to the first 200 of `/readyz`. */
  readonly readyMs: number;
  /** At rest. */
  readonly rssBytes: number;
}

const NAME = 'slices';
const ADDRESSES = 10;
const REQUESTS_MAX = 16;
const POLL_MS = 2;
/** The garbage of the start is collected by then. */
const REST_MS = 4000;
const MIB = 2 ** 20;
const READY_MORE_MAX_MS = 50;
const RSS_MORE_MAX_BYTES = 2 * MIB;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      slices: { type: 'string', default: '10000' },
      objects: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '7' },
    },
  });
  const [slices, objects, rounds] = [values.slices, values.objects, values.rounds].map(Number) as [
    number,
    number,
    number,
  ]; // as many as there are options
  const machine = thisMachine();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using guardian = new Guardian([directory]);
  await using clusters = await startRealClusters({ controllers: false });
  const names = { vcluster: NAME, objects, addresses: ADDRESSES, secrets: 0 };
  await using synced = await SyncedEndpoints.open({ clusters, guardian, directory, ...names });
  const servers = [clusters.virtual.kubeconfigPath, clusters.host.kubeconfigPath];
  for (const [at, path] of servers.entries()) await createSlices(path, at === 0 ? slices : objects);
  const first = await synced.start();
  await synced.whenAllCopied();
  await whenIdle(first);
  await kill(first);

  const measured: Row[] = [];
  for (let round = 0; round < rounds; round++) {
    process.stderr.write(`round ${round + 1} of ${rounds}\n`);
    const isFirst = round % 2 === 0;
    for (const isSynced of [isFirst, !isFirst]) measured.push(await measure(synced, isSynced));
  }
  const rows = [medianOf(measured, false), medianOf(measured, true)] as const;
  const isReached = {
    ready: rows[1].readyMs - rows[0].readyMs <= READY_MORE_MAX_MS,
    rss: rows[1].rssBytes - rows[0].rssBytes <= RSS_MORE_MAX_BYTES,
  };
  writeResult({
    date: new Date().toISOString().slice(0, 10),
    machine,
    slices,
    objects,
    rows,
    isReached,
    measured,
  });
  process.stdout.write(`${table(rows, { slices, objects, isReached })}\n`);
  rmSync(directory, { recursive: true, force: true });
}

/** Those of Services with a selector in the virtual cluster; on the host the same kind, which its mirroring controller generates from copies. */
async function createSlices(kubeconfig: string, count: number): Promise<void> {
  await using cluster = new TestCluster(kubeconfig);
  await inParallel(count, REQUESTS_MAX, (at) =>
    cluster.create('EndpointSlice', {
      metadata: {
        name: `app-${at}`,
        namespace: NAME,
        labels: {
          'kubernetes.io/service-name': `app-${at}`,
          'endpointslice.kubernetes.io/managed-by':
            at % 2 === 0 ? 'endpointslice-controller.k8s.io' : 'endpointslicemirroring-controller.k8s.io',
        },
      },
      addressType: 'IPv4',
      endpoints: Array.from({ length: ADDRESSES }, (_, i) => ({
        addresses: [`10.${(at >> 8) & 255}.${at & 255}.${i + 1}`],
        conditions: { ready: true },
        nodeName: 'node-0',
        targetRef: { kind: 'Pod', name: `app-${at}-${i}`, namespace: NAME, uid: `uid-${at}-${i}` },
      })),
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    }),
  );
}

async function measure(synced: SyncedEndpoints, isSynced: boolean): Promise<Row> {
  const running = await synced.start({ endpointSlices: { enabled: isSynced } });
  while (!(await isReady(running))) await pause(POLL_MS);
  const readyMs = performance.now() - running.startedMs;
  await whenIdle(running);
  await pause(REST_MS);
  const { rssBytes } = costOfRunning(running);
  await kill(running);
  return { isSynced, readyMs, rssBytes };
}

function medianOf(measured: readonly Row[], isSynced: boolean): Row {
  const rows = measured.filter((row) => row.isSynced === isSynced);
  return {
    isSynced,
    readyMs: median(rows.map(({ readyMs }) => readyMs)),
    rssBytes: median(rows.map(({ rssBytes }) => rssBytes)),
  };
}

function table(
  [off, on]: readonly [Row, Row],
  {
    slices,
    objects,
    isReached,
  }: { slices: number; objects: number; isReached: { ready: boolean; rss: boolean } },
): string {
  const mib = (bytes: number): string => (bytes / MIB).toFixed(1);
  const verdict = (isOk: boolean): string => (isOk ? 'reached' : 'missed');
  return [
    `${slices} EndpointSlices of controllers in the virtual cluster, ${objects} on the host, ${objects} Endpoints × ${ADDRESSES}`,
    `slices                      not synced   synced   target`,
    `process start → ready, ms   ${off.readyMs.toFixed(0).padStart(10)}   ${on.readyMs.toFixed(0).padStart(6)}   +${READY_MORE_MAX_MS}: ${verdict(isReached.ready)}`,
    `resident memory, MiB        ${mib(off.rssBytes).padStart(10)}   ${mib(on.rssBytes).padStart(6)}   +2: ${verdict(isReached.rss)}`,
  ].join('\n');
}
