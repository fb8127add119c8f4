/** Entry point: runs the command line and sets the exit code. */

import { writeLongIntegers } from './base/json.ts';
import { runProgram } from './cli/program.ts';

writeLongIntegers();

// The reader of a pipe was closed (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(1);
});

// While a command waits, such as before it tries a cluster again: the program's timers keep no process alive, and there may be no connection.
const alive = setInterval(() => undefined, 2 ** 30);
void run();

/** The bundle is of CommonJS modules, which cannot await. */
async function run(): Promise<void> {
  try {
    process.exitCode = await runProgram(process.argv.slice(2));
  } catch (error) {
    // The command handles every error that a user can act on. This one is a bug, so the stack helps.
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 1;
  }
  clearInterval(alive);
}
