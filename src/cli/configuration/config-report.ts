/** Reports configuration errors and warnings on standard error. */

import { formatProblems } from '../../config/report.ts';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';

/** Writes the problems of a `ConfigError` in the format of `validate` and returns exit code 2. Rethrows any other error. */
export function reportConfigError(error: unknown): number {
  if (!(error instanceof ConfigError)) throw error;
  reportProblems(error.problems);
  return 2;
}

export function reportProblems(problems: readonly ConfigProblem[]): void {
  process.stderr.write(formatProblems(problems));
}
