/** Command line in, exit code out. */

import { runProgram } from './cli/program.ts';

process.exitCode = await runProgram(process.argv.slice(2));
