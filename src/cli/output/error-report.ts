/** Reports errors that the user can act on: of a configuration, of a patch, of a cluster or store. */

import { ConfigError, type ConfigProblem, TerminalError, PatchError, messageOf } from '../../base/errors.ts';
import { plainLines, plainText } from '../../base/excerpt.ts';
import { describeProblem } from '../../config/source-file.ts';
import { paintFor, type Paint } from './terminal.ts';
import { StatusError } from '../../kube/status-error.ts';
import { StoreError } from '../../apiserver/storage/store.ts';

/** Writes the problems of a `ConfigError` in the format of `validate` and returns exit code 2. Rethrows any other error. */
export function reportConfigError(error: unknown): number {
  if (!(error instanceof ConfigError)) throw error;
  reportProblems(error.problems);
  return 2;
}

export function reportProblems(problems: readonly ConfigProblem[]): void {
  process.stderr.write(formatProblems(problems, paintFor(process.stderr)));
}

/** The problems of a configuration in the format of every command; '' if there is none. */
export function formatProblems(problems: readonly ConfigProblem[], paint: Paint): string {
  return problems.map((problem) => formatProblem(problem, paint)).join('\n');
}

/** The line of {@link describeProblem}, then the source line and the caret if the problem has a position. */
function formatProblem(problem: ConfigProblem, paint: Paint): string {
  const { severity, excerpt } = problem;
  const colour = severity === 'warning' ? paint.yellow : paint.red;
  const first = `${describeProblem(problem, colour)}\n`;
  if (excerpt === '') return first;
  const [source = '', caret = ''] = excerpt.split('\n');
  return `${first}${source}\n${colour(caret)}\n`;
}

/** The members that are part of the interface for scripts. */
export function problemToJson({ file, line, column, path, severity, message }: ConfigProblem): object {
  return { file, line, column, path, severity, message };
}

// Turns errors that the user can act on into a line on standard error and an exit code; rethrows every other error, which is a bug.

/** `failure` is the exit code for commands where 1 has another meaning. */
export async function guarded(work: () => number | Promise<number>, failure = 1): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    if (!isActionable(error)) throw error;
    process.stderr.write(`error: ${plainLines(error.message)}\n`);
    return failure;
  }
}

function isActionable(error: unknown): error is TerminalError | StatusError | StoreError {
  return error instanceof TerminalError || error instanceof StatusError || error instanceof StoreError;
}

// The error message of a failed patch.

/** One line with index and path, then the expression with a caret where the place is known. */
export function describePatchError({ index, path, kind, message, excerpt }: PatchError): string {
  const place = path === '' ? '' : ` at ${plainText(path)}`;
  return `patches[${index}]${place}: ${plainText(message)} (${kind})${excerpt === '' ? '' : `\n${excerpt}`}`;
}

/** Why an object could not be translated, for any error. */
export function describeFailure(error: unknown): string {
  if (error instanceof PatchError) return describePatchError(error);
  return messageOf(error);
}
