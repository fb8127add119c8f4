/** Compares the key and token API to a kube-apiserver that serves ConfigMaps of the same size: the same requests by the same client,
 * alternately, in one run on one machine.
 *
 *   npm run bench -- api [--rounds 3] [--millis 2000] [--objects 500] [--watchers 1000] [--events 150] [--creates 3000] [--only ours]
 * The client is a separate process (`api-client.ts`): minimal HTTP/1.1 over TLS 1.3, one connection per concurrent request and per watcher, no
 * pipelining, no compression. Both servers are started in every round and run throughout it; one of them is idle. Each phase runs on both
 * servers before the next one begins, and their order changes from round to round.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ClientProcess } from './api-client-process.ts';
import type { LoadResult, WatchEventsResult } from './api-client.ts';
import { report, type Measured } from './api-report.ts';
import {
  sendRequest,
  changeOf,
  startKubeApiServer,
  startOurs,
  type Subject,
  type SubjectName,
} from './api-servers.ts';
import { thisMachine } from './machine.ts';
import { costOf } from './process-cost.ts';
import type { WriteResult } from './results.ts';

/** Bytes of one object's JSON in the response to a GET. */
const OBJECT_BYTES = 1024;

export interface ApiPlan {
  readonly rounds: number;
  readonly millis: number;
  readonly objects: number;
  readonly watchers: number;
  readonly events: number;
  readonly creates: number;
  readonly getConnections: number;
  readonly listConnections: number;
  readonly createConnections: number;
  readonly subjects: readonly SubjectName[];
}

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  const rounds: Partial<Record<SubjectName, Measured>>[] = [];
  try {
    for (let round = 0; round < plan.rounds; round++) {
      process.stderr.write(`round ${round + 1} of ${plan.rounds}\n`);
      rounds.push(await measureRound(plan, { round, directory }));
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const result = report(rounds, { plan, machine, date: new Date().toISOString().slice(0, 10) });
  process.stdout.write(`${result.table}\n`);
  if (plan.subjects.length < 2) return;
  writeResult(result.json);
}

async function measureRound(
  plan: ApiPlan,
  { round, directory }: { round: number; directory: string },
): Promise<Partial<Record<SubjectName, Measured>>> {
  await using cleanup = new AsyncDisposableStack();
  const subjects: Subject[] = [];
  for (const name of plan.subjects) {
    const place = join(directory, `round-${round}`);
    subjects.push(
      cleanup.use(name === 'ours' ? await startOurs(place, profiling()) : await startKubeApiServer()),
    );
  }
  if (round % 2 === 1) subjects.reverse();
  const client = cleanup.use(new ClientProcess());
  const bench: Bench = { plan, client };
  const fillers = new Map<SubjectName, string>();
  for (const subject of subjects) fillers.set(subject.name, await fill(bench, subject));
  const parts = new Map<SubjectName, Partial<Measured>[]>();
  for (const phase of [watchPhase, getPhase, listPhase, createPhase]) {
    for (const subject of subjects) {
      const part = await phase(bench, subject, fillers.get(subject.name) ?? '');
      parts.set(subject.name, [...(parts.get(subject.name) ?? []), part]);
    }
  }
  const whole = subjects.map(({ name }) => [name, Object.assign({}, ...(parts.get(name) ?? []))] as const);
  return Object.fromEntries(whole) as Partial<Record<SubjectName, Measured>>; // every part is there
}

/** To profile the server: `BENCH_NODE_FLAGS='--cpu-prof --cpu-prof-dir=/tmp/profile'`. */
function profiling(): string[] {
  const flags = process.env['BENCH_NODE_FLAGS'] ?? '';
  return flags.split(' ').filter((flag) => flag !== '');
}

interface Bench {
  readonly plan: ApiPlan;
  readonly client: ClientProcess;
}

/** Creates the objects, each {@link OBJECT_BYTES} long, and returns the filler that gives them that length. */
async function fill({ plan, client }: Bench, { peer, collection, object }: Subject): Promise<string> {
  const probe = async (name: string, filler: string): Promise<number> => {
    const body = JSON.stringify(object(name, filler));
    const { code, text } = await sendRequest(peer, { method: 'POST', path: collection, body });
    if (code !== 201) throw new Error(`POST ${collection} returned ${code}: ${text}`);
    return (await sendRequest(peer, { method: 'GET', path: `${collection}/${name}` })).text.length;
  };
  const bytes = await probe('probe-1', 'x');
  const filler = 'x'.repeat(OBJECT_BYTES - bytes + 1);
  const found = await probe('probe-2', filler);
  if (Math.abs(found - OBJECT_BYTES) > 32)
    throw new Error(`an object has ${found} bytes, not ${OBJECT_BYTES}`);
  await client.load({
    peer,
    request: { method: 'POST', path: collection, body: JSON.stringify(object('object-{n}', filler)) },
    code: 201,
    connections: plan.createConnections,
    requests: plan.objects - 2,
  });
  return filler;
}

/** Runs first, because free heap memory from other phases would hide the memory of watchers. */
async function watchPhase({ plan, client }: Bench, subject: Subject): Promise<Partial<Measured>> {
  const { peer, pid, collection } = subject;
  const { resourceVersion } = listMetadata(
    await sendRequest(peer, { method: 'GET', path: `${collection}?limit=1` }),
  );
  const watches = {
    kind: 'watch-open',
    peer,
    path: `${collection}?watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`,
  } as const;
  // The first watches allocate what all others share: code, pools, and free heap space.
  const firstWatchers = Math.ceil(plan.watchers / 10);
  await client.run({ ...watches, watchers: firstWatchers });
  const before = await settledRss(pid);
  const measuredWatchers = plan.watchers - firstWatchers;
  await client.run({ ...watches, watchers: measuredWatchers });
  const after = await settledRss(pid);
  const request = changeOf(subject, 'object-1');
  const warmUp = { kind: 'watch-events', peer, request, events: 10, pauseMs: 5 } as const;
  await client.run(warmUp);
  const cpuMs = costOf(pid).cpuMs;
  const events = (await client.run({ ...warmUp, events: plan.events, pauseMs: 20 })) as WatchEventsResult;
  const afterEvents = await settledRss(pid);
  const watchCpuMs = (costOf(pid).cpuMs - cpuMs) / plan.events;
  await client.run({ kind: 'watch-close' });
  return {
    rssBytes: before,
    usedRssBytes: afterEvents,
    watcherBytes: (after - before) / measuredWatchers,
    usedWatcherBytes: (afterEvents - before) / measuredWatchers,
    deliveryP50Ms: events.p50Ms,
    deliveryP99Ms: events.p99Ms,
    deliveryLastMs: events.lastP50Ms,
    deliveryWriteMs: events.writeP50Ms,
    deliveryCpuMs: watchCpuMs,
    deliveryClientCpu: events.clientCpu,
  };
}

async function getPhase(
  { plan, client }: Bench,
  { peer, collection, pid }: Subject,
): Promise<Partial<Measured>> {
  const request = { method: 'GET', path: `${collection}/object-1` };
  const load = { peer, request, code: 200, connections: plan.getConnections };
  await client.load({ ...load, millis: plan.millis / 2 });
  const cpuMs = costOf(pid).cpuMs;
  const { requestsPerSecond, requests, p99Ms, bytesPerResponse, clientCpu } = await client.load({
    ...load,
    millis: plan.millis,
  });
  return {
    getsPerSecond: requestsPerSecond,
    getP99Ms: p99Ms,
    getBytes: bytesPerResponse,
    getCpuMs: (costOf(pid).cpuMs - cpuMs) / requests,
    getClientCpu: clientCpu,
  };
}

async function listPhase({ plan, client }: Bench, { peer, collection }: Subject): Promise<Partial<Measured>> {
  const request = { method: 'GET', path: `${collection}?limit=500` };
  const load = { peer, request, code: 200, connections: plan.listConnections };
  await client.load({ ...load, millis: plan.millis / 2 });
  const result = await client.load({ ...load, millis: plan.millis });
  return {
    listsPerSecond: result.requestsPerSecond,
    listP99Ms: result.p99Ms,
    listBytes: result.bytesPerResponse,
    listClientCpu: result.clientCpu,
  };
}

/** Runs last, so that the lists of the other phases stay short. */
async function createPhase(
  { plan, client }: Bench,
  { peer, collection, object, pid }: Subject,
  filler: string,
): Promise<Partial<Measured>> {
  const load = (prefix: string, requests: number): Promise<LoadResult> =>
    client.load({
      peer,
      request: { method: 'POST', path: collection, body: JSON.stringify(object(`${prefix}-{n}`, filler)) },
      code: 201,
      connections: plan.createConnections,
      requests,
    });
  await load('warm', Math.ceil(plan.creates / 4));
  const cpuMs = costOf(pid).cpuMs;
  const result = await load('new', plan.creates);
  return {
    createsPerSecond: result.requestsPerSecond,
    createP99Ms: result.p99Ms,
    createCpuMs: (costOf(pid).cpuMs - cpuMs) / result.requests,
    createClientCpu: result.clientCpu,
  };
}

function listMetadata({ text }: { text: string }): { resourceVersion: string } {
  return (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata; // a list
}

/** Resident bytes once they are stable, or after ten seconds. */
async function settledRss(pid: number): Promise<number> {
  const seen: number[] = [];
  for (let i = 0; i < 20; i++) {
    seen.push(costOf(pid).rssBytes);
    const [a = 0, b = 0, c = 0, d = 0] = seen.slice(-4);
    const isStill = seen.length >= 4 && Math.max(a, b, c, d) - Math.min(a, b, c, d) < 0.005 * d;
    if (isStill) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return seen.at(-1) ?? 0;
}

function planOf(args: readonly string[]): ApiPlan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '3' },
      millis: { type: 'string', default: '2000' },
      objects: { type: 'string', default: '500' },
      watchers: { type: 'string', default: '1000' },
      events: { type: 'string', default: '150' },
      creates: { type: 'string', default: '3000' },
      only: { type: 'string', default: '' },
    },
  });
  const all: readonly SubjectName[] = ['ours', 'kube-apiserver'];
  return {
    rounds: Number(values.rounds),
    millis: Number(values.millis),
    objects: Number(values.objects),
    watchers: Number(values.watchers),
    events: Number(values.events),
    creates: Number(values.creates),
    getConnections: 32,
    listConnections: 8,
    createConnections: 64,
    subjects: values.only === '' ? all : all.filter((name) => name === values.only),
  };
}
