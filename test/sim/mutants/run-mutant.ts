/** The process of one mutant: seeds until one is violated. Exit code 3, and the last line has the seed and why. */

import { fleetHistory } from '../fleet/fleet-history.ts';
import { runFleetHistory } from '../fleet/fleet-run.ts';
import { seededHistory } from '../history/seeded-history.ts';
import { runHistory } from '../sim-run.ts';

const [seeds = 0, steps = 0] = process.argv.slice(2, 4).map(Number);
const isOfFleet = process.argv[4] === 'fleet';

for (let seed = 1; seed <= seeds; seed++) {
  const violations = isOfFleet
    ? await runFleetHistory(fleetHistory(seed, steps))
    : await runHistory(seededHistory(seed, steps));
  console.log(`${seed} ${violations[0] ?? ''}`);
  if (violations.length > 0) process.exit(3);
}
