/** Command line in, exit code out. */

import { runProgram } from './cli/program.ts';

try {
  process.exitCode = await runProgram(process.argv.slice(2));
} catch (error) {
  // Nobody below knew better: an error of ours, so the stack helps.
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
}
