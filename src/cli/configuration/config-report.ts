/** How a command says that its configuration is wrong. */

import { formatProblems } from '../../config/report.ts';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';

/** Writes what `validate` writes, to standard error, and returns the exit code 2. Any other error is thrown again. */
export function reportConfigError(error: unknown): number {
  if (!(error instanceof ConfigError)) throw error;
  reportProblems(error.problems);
  return 2;
}

/** Writes problems (warnings of a configuration that is used, for example) to standard error. */
export function reportProblems(problems: readonly ConfigProblem[]): void {
  process.stderr.write(formatProblems(problems));
}
