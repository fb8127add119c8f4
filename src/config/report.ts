/** Problems as text for terminals and as JSON for scripts. */

import type { ConfigProblem } from '../base/errors.ts';
import { plainText } from '../base/excerpt.ts';

/** `file:line:column: path: message`, then the source line and the caret; parts that a problem does not have are left out. */
function formatProblem(problem: ConfigProblem): string {
  const place = problem.line > 0 ? `${problem.file}:${problem.line}:${problem.column}` : problem.file;
  const severity = problem.severity === 'warning' ? 'warning: ' : '';
  const parts = [place, problem.path, severity + problem.message].filter((part) => part !== '');
  const line = plainText(parts.join(': '));
  return problem.excerpt === '' ? `${line}\n` : `${line}\n${problem.excerpt}\n`;
}

/** The problems of a configuration in the format of every command; '' if there is none. */
export function formatProblems(problems: readonly ConfigProblem[]): string {
  return problems.map(formatProblem).join('\n');
}

/** The members that are part of the interface for scripts. */
export function problemToJson({ file, line, column, path, severity, message }: ConfigProblem): object {
  return { file, line, column, path, severity, message };
}
