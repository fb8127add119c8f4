/** Problems of a file: at a position in its text, or of the file as a whole. */

import type { ConfigProblem } from '../../base/errors.ts';
import { excerptAt, positionOf, type SourceFile } from './source-file.ts';
import type { SyntaxProblem } from './yaml-source.ts';

type ProblemDetails = Pick<ConfigProblem, 'path' | 'severity' | 'message'>;

/** A text alone is an error. */
export function problemOf(file: string, details: string | ProblemDetails): ConfigProblem {
  const { path, severity, message }: ProblemDetails =
    typeof details === 'string' ? { path: '', severity: 'error', message: details } : details;
  return { file, line: 0, column: 0, path, severity, message, excerpt: '' };
}

export function problemAt(source: SourceFile, offset: number, details: ProblemDetails): ConfigProblem {
  return { file: source.name, ...positionOf(source, offset), ...details, excerpt: excerptAt(source, offset) };
}

export function syntaxProblems({
  source,
  problems,
}: {
  readonly source: SourceFile;
  readonly problems: readonly SyntaxProblem[];
}): ConfigProblem[] {
  return problems.map(({ offset, severity, message }) =>
    problemAt(source, offset, { path: '', severity, message }),
  );
}
