/**
 * `npm run sim -- --seeds N [--seed S] [--steps K] [--jobs J] [--trace]`: many histories, each from a seed that repeats it, and of each seed a
 * world of which a rehearsal predicts the sync; of some seeds also the history of a fleet. `--fleet`: of each seed the history of a fleet alone.
 * `npm run sim -- --mutants [--only TEXT]`: how many seeds find each of the deliberate bugs in `mutants/`.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { writeLongIntegers } from '../../src/base/json.ts';
import { showProgress } from '../../src/cli/output/terminal.ts';
import { fleetHistory, type FleetOperation } from './fleet/fleet-history.ts';
import { runFleetHistory } from './fleet/fleet-run.ts';
import { seededHistory } from './history/seeded-history.ts';
import { shrinkHistory } from './history/shrink.ts';
import type { Operation } from './history/operations.ts';
import { huntMutants } from './mutants/hunt.ts';
import { predictionProblems } from './prediction.ts';
import { runHistory } from './sim-run.ts';

writeLongIntegers();

const { values } = parseArgs({
  options: {
    /** Default 100; with --mutants, at most 2000 for each. */
    seeds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '40' },
    /** Processes that share the seeds. */
    jobs: { type: 'string', default: '2' },
    trace: { type: 'boolean', default: false },
    fleet: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    /** Mutants whose name holds this text. */
    only: { type: 'string', default: '' },
  },
});
const [seeds = 0, firstSeed = 0, steps = 0, jobs = 0] = [
  values.seeds ?? (values.mutants ? 2000 : 100),
  values.seed,
  values.steps,
  values.jobs,
].map(Number);
if (!(seeds > 0 && firstSeed >= 0 && steps > 0 && jobs > 0))
  throw new Error('--seeds, --seed, --steps and --jobs are positive numbers');

/** The history of a fleet takes several times as long as another one. */
const SEEDS_PER_FLEET = 25;
/** A process that runs fewer costs more than it saves. */
const SEEDS_PER_JOB_MIN = 50;

if (values.mutants) process.exit((await huntMutants({ seeds, steps, jobs, filter: values.only })) ? 0 : 1);

const startedMs = performance.now();
const isShared = jobs > 1 && seeds >= jobs * SEEDS_PER_JOB_MIN;
const isOk = isShared ? await runJobs() : await runSeeds();
if (!isOk) process.exit(1);
if (process.env['SIM_JOB'] === undefined) {
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`${seeds} histories from seed ${firstSeed}: no violation, ${seconds.toFixed(1)} s`);
}

/** Each process runs a part of the seeds; the first violation ends them all. */
async function runJobs(): Promise<boolean> {
  const share = Math.ceil(seeds / jobs);
  const children = Array.from({ length: jobs }, (_, job) => {
    const first = job * share;
    const part = { seed: firstSeed + first, seeds: Math.max(1, Math.min(share, seeds - first)) };
    const numbers = Object.entries({ ...part, steps, jobs: 1 }).map(([name, value]) => `--${name}=${value}`);
    const args = values.fleet ? [...numbers, '--fleet'] : numbers;
    return spawn(process.execPath, [...process.execArgv, import.meta.filename, ...args], {
      stdio: 'inherit',
      env: { ...process.env, SIM_JOB: String(job) },
    });
  });
  const ends = children.map(async (child) => {
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) for (const other of children) other.kill();
    return code === 0;
  });
  return (await Promise.all(ends)).every(Boolean);
}

async function runSeeds(): Promise<boolean> {
  // One of several processes shows its own.
  using progress = ['0', undefined].includes(process.env['SIM_JOB']) ? showProgress('histories') : undefined;
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const problems = await problemsOf(seed);
    progress?.update(seed - firstSeed + 1, seeds);
    if (problems.length === 0) continue;
    progress?.[Symbol.dispose]();
    for (const problem of problems) console.log(`seed ${seed}: ${problem}`);
    return false;
  }
  return true;
}

async function problemsOf(seed: number): Promise<readonly string[]> {
  if (!values.fleet) {
    const history = seededHistory(seed, steps);
    const run: Run<Operation> = (operations, more) => runHistory({ ...history, operations, ...more });
    const violations = await violationsOf(history.operations, run, `--seed ${seed}`);
    const problems = violations.length === 0 ? await predictionProblems(seed, steps) : violations;
    if (problems.length > 0 || seed % SEEDS_PER_FLEET !== 0) return problems;
  }
  const history = fleetHistory(seed, steps);
  const run: Run<FleetOperation> = (operations, more) => runFleetHistory({ ...history, operations, ...more });
  return violationsOf(history.operations, run, `--fleet --seed ${seed}`);
}

type Run<O> = (
  operations: readonly O[],
  more: { readonly trace?: (line: string) => void },
) => Promise<string[]>;

/** What is violated, with the shortest history found in which it is, and how to repeat it. */
async function violationsOf<O>(operations: readonly O[], run: Run<O>, which: string): Promise<string[]> {
  const violations = await run(operations, values.trace ? { trace: console.log } : {});
  if (violations.length === 0) return [];
  // Fewer edits allow fewer writes, which must not hide what was found.
  const kinds = new Set(violations.map(withoutNumbers));
  const shortest = await shrinkHistory(operations, async (shorter) =>
    (await run(shorter, {})).some((violation) => kinds.has(withoutNumbers(violation))),
  );
  const lines: string[] = [];
  const shown = await run(shortest, { trace: (line) => lines.push(line) });
  return [
    violations.join('\n  '),
    `the shortest history found, ${shortest.length} of ${operations.length} operations:`,
    ...lines,
    ...shown.map((violation) => `violated: ${violation}`),
    `repeat it with: npm run sim -- ${which} --seeds 1 --steps ${steps}`,
  ];
}

function withoutNumbers(violation: string): string {
  return violation.replaceAll(/\d+/g, '');
}
