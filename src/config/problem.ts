/** Problems of a file: at a place in its text, or of the file as a whole. */

import type { ConfigProblem } from '../kube/errors.ts';
import { caretFrame, positionOf, type SourceFile } from './source-file.ts';
import type { SyntaxProblem } from './yaml-source.ts';

type Said = Pick<ConfigProblem, 'path' | 'severity' | 'message'>;

/** A text alone is an error. */
export function problemOf(file: string, said: string | Said): ConfigProblem {
  const { path, severity, message }: Said =
    typeof said === 'string' ? { path: '', severity: 'error', message: said } : said;
  return { file, line: 0, column: 0, path, severity, message, frame: '' };
}

export function problemAt(source: SourceFile, offset: number, said: Said): ConfigProblem {
  return { file: source.name, ...positionOf(source, offset), ...said, frame: caretFrame(source, offset) };
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
