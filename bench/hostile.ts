/** What one hostile of ten members costs the nine others: for each thing that its API server may send, or the owner of its namespace may create, rounds with it and without it in turns.
 * A phase starts the fleet, with the hostility already there: that is its worst moment.
 *
 *   npm run bench -- hostile [--mode TEXT]… [--rounds 3] [--objects 10] [--updates 100]
 */

import { once } from 'node:events';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { leaveNamespace, PLANTED_LEASES, VCLUSTERS } from '../test/attack/hostile-namespace.ts';
import { pause, type Running } from './daemon-process.ts';
import { FleetWorld, type HostileServer } from './fleet-world.ts';
import { HOSTILE_INPUTS } from '../test/attack/hostile-input.ts';
import { thisMachine } from './machine.ts';
import type { WriteResult } from './results.ts';
import { median, quantile, ratioOf, ratioText } from './statistics.ts';

interface Plan {
  readonly modes: readonly string[];
  readonly rounds: number;
  readonly objects: number;
  readonly updates: number;
}

/** Times in ms, of the nine others. */
interface Phase {
  /** From the start of the process until all have joined. */
  readonly joinedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly perSecond: number;
  /** The longest response until then, and afterwards. */
  readonly healthzStartMs: number;
  readonly healthzMaxMs: number;
  /** Members that were dropped because the Lease was lost, or another replica was taken for live. */
  readonly dropped: number;
  readonly load: number;
}

interface Row {
  readonly mode: string;
  readonly alone: readonly Phase[];
  readonly hostile: readonly Phase[];
}

const OTHERS = 9;
const NAMESPACE_ATTACKS = { ...VCLUSTERS, ...PLANTED_LEASES };
const MODES = [...Object.keys(HOSTILE_INPUTS), ...Object.keys(NAMESPACE_ATTACKS)];
const SETTLE_MS = 2000;
const THROUGHPUT_MS = 3000;
const HEALTHZ_PAUSE_MS = 50;
const JOIN_POLL_MS = 20;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  await using world = await FleetWorld.open(OTHERS + 1, plan.objects);
  const bench = new HostileBench(world, await world.useHostile(OTHERS), plan);
  const rows: Row[] = [];
  for (const mode of plan.modes) {
    const row: { mode: string; alone: Phase[]; hostile: Phase[] } = { mode, alone: [], hostile: [] };
    for (let round = 0; round < plan.rounds; round++) {
      row.alone.push(await bench.phase());
      row.hostile.push(await bench.phase(mode));
    }
    rows.push(row);
    process.stdout.write(`${describe(row)}\n`);
  }
  writeResult({ date: new Date().toISOString().slice(0, 10), machine, objects: plan.objects, rows });
}

class HostileBench {
  readonly #world: FleetWorld;
  readonly #server: HostileServer;
  readonly #plan: Plan;

  constructor(world: FleetWorld, server: HostileServer, plan: Plan) {
    this.#world = world;
    this.#server = server;
    this.#plan = plan;
  }

  async phase(mode = ''): Promise<Phase> {
    const attack = NAMESPACE_ATTACKS[mode];
    await attack?.(this.#world.host);
    const isServer = mode !== '' && attack === undefined;
    await this.#server.behave(isServer ? mode : '');
    const logged = this.#world.logOf('fleet').length;
    const fleet = await this.#world.startFleet();
    const healthz = new Healthz(fleet);
    if (isServer) await this.#server.whenAnswered();
    const joinedMs = (await whenOthersJoined(fleet)) - fleet.startedMs;
    const healthzStartMs = healthz.take();
    await pause(SETTLE_MS);
    const latencies = await this.#world.updates(OTHERS, this.#plan.updates);
    const perSecond = await this.#world.throughput(OTHERS, THROUGHPUT_MS);
    const healthzMaxMs = await healthz.stop();
    const lines = this.#world.logOf('fleet').slice(logged).split('\n');
    fleet.child.kill('SIGTERM');
    await once(fleet.child, 'exit');
    if (attack !== undefined) await leaveNamespace(this.#world.host);
    return {
      joinedMs,
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      maxMs: latencies.at(-1) ?? 0,
      perSecond,
      healthzStartMs,
      healthzMaxMs,
      dropped: lines.filter((line) => line.includes('this replica no longer syncs')).length,
      load: loadavg()[0] ?? 0,
    };
  }
}

/** Requests to `/healthz`, one after the other. */
class Healthz {
  #maxMs = 0;
  #isStopping = false;
  readonly #done: Promise<void>;

  constructor({ url }: Running) {
    this.#done = this.#follow(`${url}/healthz`);
  }

  async #follow(url: string): Promise<void> {
    for (let isServed = false; !this.#isStopping; await pause(HEALTHZ_PAUSE_MS)) {
      const sentMs = performance.now();
      const isOk = await fetch(url).then(
        async (response) => (await response.text(), response.ok),
        () => false,
      );
      isServed ||= isOk;
      if (isServed) this.#maxMs = Math.max(this.#maxMs, isOk ? performance.now() - sentMs : Infinity);
    }
  }

  /** The longest one since the last call, in ms. */
  take(): number {
    const maxMs = this.#maxMs;
    this.#maxMs = 0;
    return maxMs;
  }

  async stop(): Promise<number> {
    this.#isStopping = true;
    await this.#done;
    return this.take();
  }
}

async function whenOthersJoined({ url }: Running): Promise<number> {
  for (;;) {
    const text = await fetch(`${url}/readyz?verbose`).then(
      (response) => response.text(),
      () => '',
    );
    const joined = Array.from({ length: OTHERS }, (_, at) => `vcluster team-${at}/vc ok: joined`);
    if (joined.every((line) => text.includes(line))) return performance.now();
    await pause(JOIN_POLL_MS);
  }
}

function describe({ mode, alone, hostile }: Row): string {
  const cells: readonly (readonly [string, (phase: Phase) => number, number])[] = [
    ['joined', ({ joinedMs }) => joinedMs, 0],
    ['p50', ({ p50Ms }) => p50Ms, 1],
    ['p99', ({ p99Ms }) => p99Ms, 0],
    ['max', ({ maxMs }) => maxMs, 0],
    ['updates/s', ({ perSecond }) => perSecond, 0],
    ['/healthz max until joined', ({ healthzStartMs }) => healthzStartMs, 0],
    ['/healthz max', ({ healthzMaxMs }) => healthzMaxMs, 0],
  ];
  const parts = cells.map(([name, of, digits]) => {
    const [attacked, calm] = [hostile.map(of), alone.map(of)];
    const ratio = ratioOf(attacked, calm);
    return `${name} ${median(attacked).toFixed(digits)} (${median(calm).toFixed(digits)}; ${ratio ? ratioText(ratio) : '–'})`;
  });
  const [dropped, droppedAlone] = [hostile, alone].map((phases) =>
    phases.reduce((sum, phase) => sum + phase.dropped, 0),
  );
  const loads = [...alone, ...hostile].map(({ load }) => load);
  const load = `load ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`;
  return `${mode}: ${parts.join(', ')}; ${dropped} (${droppedAlone}) dropped; ${load}`;
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mode: { type: 'string', multiple: true, default: [''] },
      rounds: { type: 'string', default: '3' },
      objects: { type: 'string', default: '10' },
      updates: { type: 'string', default: '100' },
    },
  });
  return {
    modes: MODES.filter((mode) => values.mode.some((part) => mode.includes(part))),
    rounds: Number(values.rounds),
    objects: Number(values.objects),
    updates: Number(values.updates),
  };
}
