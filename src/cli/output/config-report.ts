/** Prints configuration errors and warnings, for terminals and for scripts. */

import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { plainText } from '../../base/excerpt.ts';
import { paintFor, type Paint } from './terminal.ts';

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

/** `file:line:column: path: message`, then the source line and the caret; parts that a problem does not have are left out. */
function formatProblem(problem: ConfigProblem, paint: Paint): string {
  const { file, line, column, path, severity, message, excerpt } = problem;
  const colour = severity === 'warning' ? paint.yellow : paint.red;
  const position = line > 0 ? `${file}:${line}:${column}` : file;
  const parts = [position, path].filter((part) => part !== '').map((part) => `${plainText(part)}: `);
  const text = severity === 'warning' ? `warning: ${message}` : message;
  const first = `${parts.join('')}${colour(plainText(text))}\n`;
  if (excerpt === '') return first;
  const [source = '', caret = ''] = excerpt.split('\n');
  return `${first}${source}\n${colour(caret)}\n`;
}

/** The members that are part of the interface for scripts. */
export function problemToJson({ file, line, column, path, severity, message }: ConfigProblem): object {
  return { file, line, column, path, severity, message };
}
