/** `npm run sim -- --seeds N [--seed S] [--steps K] [--trace]`: many histories, each from a seed that repeats it. */

import { parseArgs } from 'node:util';
import { showProgress } from '../../src/cli/output/terminal.ts';
import type { Operation } from './history/operations.ts';
import { seededHistory } from './history/seeded-history.ts';
import { shrinkHistory } from './history/shrink.ts';
import { runHistory } from './sim-run.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '40' },
    trace: { type: 'boolean', default: false },
  },
});
const [seeds, firstSeed, steps] = [values.seeds, values.seed, values.steps].map(Number);
if (!seeds || firstSeed === undefined || !steps) throw new Error('--seeds, --seed and --steps are numbers');

const startedMs = performance.now();
const progress = showProgress('histories');
for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
  const { operations, daemons } = seededHistory(seed, steps);
  const run = (operations: readonly Operation[], trace?: (line: string) => void): Promise<string[]> =>
    runHistory({ seed, operations, daemons, ...(trace === undefined ? {} : { trace }) });
  const violations = await run(operations, values.trace ? console.log : undefined);
  progress.update(seed - firstSeed + 1, seeds);
  if (violations.length === 0) continue;
  progress[Symbol.dispose]();
  console.log(`seed ${seed}: ${violations.join('\n  ')}`);
  const shortest = await shrinkHistory(operations, async (shorter) => (await run(shorter)).length > 0);
  console.log(`the shortest history found, ${shortest.length} of ${operations.length} operations:`);
  for (const violation of await run(shortest, console.log)) console.log(`violated: ${violation}`);
  console.log(`repeat it with: npm run sim -- --seed ${seed} --seeds 1 --steps ${steps}`);
  process.exit(1);
}
progress[Symbol.dispose]();
const seconds = (performance.now() - startedMs) / 1000;
console.log(`${seeds} histories from seed ${firstSeed}: no violation, ${seconds.toFixed(1)} s`);
