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

/** The problems of a configuration, as every command prints them; '' for none. */
export function formatProblems(problems: readonly ConfigProblem[]): string {
  return problems.map(formatProblem).join('\n');
}

/** Exactly the members that scripts may rely on. */
export function problemToJson({ file, line, column, path, severity, message }: ConfigProblem): object {
  return { file, line, column, path, severity, message };
}
