/** The process of one mutant: seeds until one is violated. Exit code 3, and the last line has the seed and why. */

import { seededHistory } from '../history/seeded-history.ts';
import { runHistory } from '../sim-run.ts';

const [seeds = 0, steps = 0] = process.argv.slice(2).map(Number);

for (let seed = 1; seed <= seeds; seed++) {
  const violations = await runHistory(seededHistory(seed, steps));
  console.log(`${seed} ${violations[0] ?? ''}`);
  if (violations.length > 0) process.exit(3);
}
