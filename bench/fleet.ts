/** One process for many virtual clusters, compared to as many daemons: memory, idle processor time, the time to join, latency of an update. The host is a
 * real kube-apiserver; embedded API servers in another process stand for the virtual clusters, so that what theirs cost is not in here.
 *
 *   npm run bench -- fleet [--members 1,10,100] [--modes fleet,daemons] [--objects 10] [--updates 200] [--idle 20]
 *
 * What a hostile member costs nine others, with and without it in turns:
 *
 *   npm run bench -- fleet --hostile [--objects 10] [--updates 200]
 */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { JsonObject } from '../src/base/json.ts';
import { startRealClusters, type RealClusters } from '../test/e2e/clusters.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { Guardian, killGroup } from '../test/support/guardian.ts';
import { CopyWatch } from './copy-watch.ts';
import { pause, startProgram, type Running } from './daemon-process.ts';
import { inParallel } from './in-parallel.ts';
import { thisMachine } from './machine.ts';
import { costOf, privateBytesOf } from './process-cost.ts';
import type { WriteResult } from './results.ts';
import { quantile } from './synced-endpoints.ts';

interface Plan {
  readonly members: readonly number[];
  readonly modes: readonly Mode[];
  readonly objects: number;
  readonly updates: number;
  /** Seconds over which idle processor time is measured. */
  readonly idle: number;
  /** Only the cost of a hostile member is measured. */
  readonly hostile: boolean;
}

/** Times in ms, sizes in bytes, of all processes together. */
interface Row {
  readonly members: number;
  readonly mode: Mode;
  /** From process start to the last copy. */
  readonly startMs: number;
  readonly startCpuMs: number;
  readonly rssBytes: number;
  /** Without pages that processes share. */
  readonly privateBytes: number;
  /** Share of one core. */
  readonly idleShare: number;
  /** From the label to the first copy; for daemons, from the start of another one. */
  readonly joinMs: number;
  readonly updateP50Ms: number;
  readonly updateP99Ms: number;
}

const MODES = ['fleet', 'daemons'] as const;
type Mode = (typeof MODES)[number];

const MIB = 2 ** 20;
const MARK = 'bench/mark';
const LABELS = { app: 'vcluster', release: 'vc' };
const MEMBER = { 'endpoint-syncer/enabled': 'true' };
const VALUES = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';
/** Until delayed work of the start is over. */
const SETTLE_MS = 5000;
const UPDATE_PAUSE_MS = 10;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  if (plan.hostile) {
    process.stdout.write(`${await measureHostile(plan)}\n`);
    return;
  }
  const rows: Row[] = [];
  for (const members of plan.members)
    for (const mode of plan.modes) {
      process.stderr.write(`${members} virtual clusters, ${mode}\n`);
      rows.push(await measure(members, mode, plan));
    }
  writeResult({ date: new Date().toISOString().slice(0, 10), machine, objects: plan.objects, rows });
  process.stdout.write(`${table(rows)}\n`);
}

/** With clusters of its own, so that no mode finds what another has left. */
async function measure(members: number, mode: Mode, plan: Plan): Promise<Row> {
  await using world = await FleetWorld.open(members, plan);
  const programs = mode === 'fleet' ? [await world.startFleet()] : [];
  const startedMs = programs[0]?.startedMs ?? performance.now();
  if (mode === 'daemons') for (let at = 0; at < members; at++) programs.push(await world.startDaemon(at));
  const copiedMs = await world.copies.whenAll(members * plan.objects, 'created');
  const started = total(programs);
  await pause(SETTLE_MS);
  const idle = await idleShare(programs, plan.idle);
  const { rssBytes, privateBytes } = total(programs);
  const latencies = await world.updates(members);
  return {
    members,
    mode,
    startMs: copiedMs - startedMs,
    startCpuMs: started.cpuMs,
    rssBytes,
    privateBytes,
    idleShare: idle,
    joinMs: await world.join(members, mode),
    updateP50Ms: quantile(latencies, 0.5),
    updateP99Ms: quantile(latencies, 0.99),
  };
}

const OTHERS = 9;
/** In turns, so that a change of the machine's load shows. */
const PHASES = ['alone', 'with the hostile member', 'alone', 'with the hostile member', 'alone'] as const;
/** Until its first lists and writes are over, for which its limits allow a burst. */
const HOSTILE_SETTLE_MS = 20_000;

/** Latencies of the updates of nine members while the tenth has 10 000 objects that change all the time. */
async function measureHostile(plan: Plan): Promise<string> {
  await using world = await FleetWorld.open(OTHERS, plan);
  await world.startFleet();
  await world.copies.whenAll(OTHERS * plan.objects, 'created');
  await world.useHostile(OTHERS);
  await pause(SETTLE_MS);
  const lines: string[] = [];
  for (const phase of PHASES) {
    const isHostile = phase !== 'alone';
    await world.setMember(OTHERS, isHostile);
    await pause(isHostile ? HOSTILE_SETTLE_MS : SETTLE_MS);
    const [writes, sinceMs] = [world.copies.events, performance.now()];
    const latencies = await world.updates(OTHERS);
    const perSecond =
      (world.copies.events - writes - latencies.length) / ((performance.now() - sinceMs) / 1000);
    const [p50, p99] = [quantile(latencies, 0.5), quantile(latencies, 0.99)].map((ms) => ms.toFixed(1));
    const load = loadavg()[0]?.toFixed(1);
    lines.push(
      `${phase.padEnd(24)}p50 ${p50} ms, p99 ${p99} ms; ${perSecond.toFixed(0)} writes/s of the hostile member; load ${load}`,
    );
    process.stderr.write(`${lines.at(-1)}\n`);
  }
  return lines.join('\n');
}

function total(programs: readonly Running[]): { cpuMs: number; rssBytes: number; privateBytes: number } {
  const costs = programs.map(({ pid }) => ({ ...costOf(pid), privateBytes: privateBytesOf(pid) }));
  const sum = (key: 'cpuMs' | 'rssBytes' | 'privateBytes'): number =>
    costs.reduce((all, cost) => all + cost[key], 0);
  return { cpuMs: sum('cpuMs'), rssBytes: sum('rssBytes'), privateBytes: sum('privateBytes') };
}

async function idleShare(programs: readonly Running[], seconds: number): Promise<number> {
  const before = total(programs).cpuMs;
  await pause(seconds * 1000);
  return (total(programs).cpuMs - before) / (seconds * 1000);
}

class FleetWorld implements AsyncDisposable {
  readonly copies: CopyWatch;
  readonly #plan: Plan;
  readonly #clusters: RealClusters;
  readonly #guardian: Guardian;
  readonly #directory: string;
  readonly #host: TestCluster;
  /** One more than there are members: the last joins later. */
  readonly #virtual: readonly TestCluster[];
  readonly #servers: ChildProcess;

  private constructor(parts: {
    plan: Plan;
    clusters: RealClusters;
    guardian: Guardian;
    directory: string;
    host: TestCluster;
    virtual: readonly TestCluster[];
    servers: ChildProcess;
    copies: CopyWatch;
  }) {
    this.#plan = parts.plan;
    this.#clusters = parts.clusters;
    this.#guardian = parts.guardian;
    this.#directory = parts.directory;
    this.#host = parts.host;
    this.#virtual = parts.virtual;
    this.#servers = parts.servers;
    this.copies = parts.copies;
  }

  static async open(members: number, plan: Plan): Promise<FleetWorld> {
    const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
    const guardian = new Guardian([directory]);
    const clusters = await startRealClusters({ controllers: false, virtual: false });
    const servers = guardian.spawn(
      process.execPath,
      [join(import.meta.dirname, 'virtual-clusters.ts'), String(members + 1)],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const [line] = (await once(createInterface({ input: servers.stdout ?? process.stdin }), 'line')) as [
      string,
    ];
    const virtual = (JSON.parse(line) as string[]).map((kubeconfig, at) => {
      const file = join(directory, `virtual-${at}.kubeconfig`);
      writeFileSync(file, kubeconfig);
      return new TestCluster(file);
    });
    const host = new TestCluster(clusters.host.kubeconfigPath);
    await host.ensureNamespace('fleet');
    const scope = { kind: 'Endpoints', namespace: '' } as const;
    const copies = await CopyWatch.open(host, scope, ({ metadata }) => metadata.annotations?.[MARK] ?? '');
    const world = new FleetWorld({ plan, clusters, guardian, directory, host, virtual, servers, copies });
    await inParallel(members + 1, 8, (at) => world.#install(at, at < members));
    return world;
  }

  /** What vCluster's chart and vCluster leave on the host, and the objects. */
  async #install(at: number, isMember: boolean): Promise<void> {
    const namespace = `team-${at}`;
    const virtual = this.#virtualAt(at);
    const data = (key: string, text: string): JsonObject => ({ [key]: Buffer.from(text).toString('base64') });
    await this.#host.ensureNamespace(namespace);
    await virtual.ensureNamespace('default');
    await this.#host.create('Secret', {
      metadata: { name: 'vc-config-vc', namespace },
      data: data('config.yaml', VALUES),
    });
    await this.#host.create('Secret', {
      metadata: { name: 'vc-vc', namespace },
      data: data('config', readFileSync(virtual.kubeconfigPath, 'utf8')),
    });
    await this.#host.create('StatefulSet', {
      metadata: { name: 'vc', namespace, labels: { ...LABELS, ...(isMember ? MEMBER : {}) } },
      spec: {
        serviceName: 'vc',
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: { containers: [{ name: 'vc', image: 'vc' }] } },
      },
    });
    for (let object = 0; object < this.#plan.objects; object++)
      await virtual.create('Endpoints', endpoints(at, object, isMember ? 'created' : 'late'));
  }

  #virtualAt(at: number): TestCluster {
    const virtual = this.#virtual[at];
    if (virtual === undefined) throw new Error(`no virtual cluster ${at}`);
    return virtual;
  }

  /** The access to this virtual cluster leads to {@link ./hostile-cluster.ts}. */
  async useHostile(at: number): Promise<void> {
    const program = join(import.meta.dirname, 'hostile-cluster.ts');
    const child = this.#guardian.spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout ?? process.stdin });
    const [kubeconfig] = (await once(lines, 'line')) as [string];
    const data = { config: Buffer.from(kubeconfig).toString('base64') };
    await this.#host.merge('Secret', [`team-${at}`, 'vc-vc'], { data });
  }

  async setMember(at: number, isMember: boolean): Promise<void> {
    const labels = { 'endpoint-syncer/enabled': isMember ? 'true' : null };
    await this.#host.merge('StatefulSet', [`team-${at}`, 'vc'], { metadata: { labels } });
  }

  startFleet(): Promise<Running> {
    const fleet = { enabled: true, namespaces: { include: ['team-*'] } };
    return this.#start('fleet', { host: this.#hostIn('fleet'), fleet });
  }

  startDaemon(at: number): Promise<Running> {
    const virtual = { kubeconfig: this.#virtualAt(at).kubeconfigPath };
    // As the members have.
    const leaderElection = { enabled: true };
    const settings = { name: 'vc', virtual, host: this.#hostIn(`team-${at}`), leaderElection };
    return this.#start(`team-${at}`, settings, { toHost: { endpoints: { enabled: true } } });
  }

  #hostIn(namespace: string): JsonObject {
    return { kubeconfig: this.#clusters.host.kubeconfigPath, namespace };
  }

  #start(name: string, endpointSyncer: JsonObject, sync?: JsonObject): Promise<Running> {
    const place = { directory: this.#directory, guardian: this.#guardian, vcluster: name };
    return startProgram(place, { ...(sync && { sync }), endpointSyncer });
  }

  /** Latencies of single updates, one member after the other, sorted. */
  async updates(members: number): Promise<readonly number[]> {
    const latencies: number[] = [];
    for (let sent = 0; sent < this.#plan.updates; sent++) {
      const [at, object] = [sent % members, (sent * 7) % this.#plan.objects];
      const changed = endpoints(at, object, `update-${sent}`);
      const seen = this.copies.when(changed.metadata.name, `update-${sent}`);
      const sentMs = performance.now();
      await this.#virtualAt(at).update('Endpoints', changed);
      latencies.push((await seen) - sentMs);
      await pause(UPDATE_PAUSE_MS);
    }
    return latencies.toSorted((a, b) => a - b);
  }

  /** Time to the first copy of one more virtual cluster. */
  async join(at: number, mode: Mode): Promise<number> {
    const seen = this.copies.whenChanged();
    const startedMs = performance.now();
    if (mode === 'daemons') await this.startDaemon(at);
    else await this.#host.merge('StatefulSet', [`team-${at}`, 'vc'], { metadata: { labels: MEMBER } });
    return (await seen) - startedMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.copies[Symbol.asyncDispose]();
    for (const cluster of [this.#host, ...this.#virtual]) await cluster[Symbol.asyncDispose]();
    await killGroup(this.#servers);
    await this.#guardian[Symbol.asyncDispose]();
    await this.#clusters[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function endpoints(member: number, object: number, mark: string) {
  return {
    metadata: { name: `ep-${member}-${object}`, namespace: 'default', annotations: { [MARK]: mark } },
    subsets: [
      {
        addresses: Array.from({ length: 10 }, (_, i) => ({ ip: `10.${member % 256}.${object}.${i + 1}` })),
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    ],
  };
}

function table(rows: readonly Row[]): string {
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  const cells: readonly (readonly [string, (row: Row) => string])[] = [
    ['virtual clusters', ({ members, mode }) => `${members} ${mode}`],
    ['start to the last copy', ({ startMs }) => `${(startMs / 1000).toFixed(1)} s`],
    ['start, processor time', ({ startCpuMs }) => `${(startCpuMs / 1000).toFixed(1)} s`],
    ['resident memory', ({ rssBytes }) => mib(rssBytes)],
    ['private memory', ({ privateBytes }) => mib(privateBytes)],
    ['idle, share of a core', ({ idleShare: share }) => `${(share * 100).toFixed(1)} %`],
    ['one more, to its first copy', ({ joinMs }) => `${(joinMs / 1000).toFixed(2)} s`],
    ['one update, p50', ({ updateP50Ms }) => `${updateP50Ms.toFixed(1)} ms`],
    ['one update, p99', ({ updateP99Ms }) => `${updateP99Ms.toFixed(1)} ms`],
  ];
  const width = Math.max(...cells.map(([name]) => name.length));
  return cells
    .map(([name, show]) => `${name.padEnd(width)}${rows.map((row) => show(row).padStart(14)).join('')}`)
    .join('\n');
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      members: { type: 'string', default: '1,10,100' },
      modes: { type: 'string', default: MODES.join() },
      objects: { type: 'string', default: '10' },
      updates: { type: 'string', default: '200' },
      idle: { type: 'string', default: '20' },
      hostile: { type: 'boolean', default: false },
    },
  });
  return {
    members: values.members.split(',').map(Number),
    modes: MODES.filter((mode) => values.modes.split(',').includes(mode)),
    objects: Number(values.objects),
    updates: Number(values.updates),
    idle: Number(values.idle),
    hostile: values.hostile,
  };
}
