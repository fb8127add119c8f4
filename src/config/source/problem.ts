/** Problems of a file: at a position in its text, or of the file as a whole. */

import { LineCounter } from 'yaml';
import type { ConfigProblem } from '../../base/errors.ts';
import { caretLine, type Position } from '../../base/excerpt.ts';
import type { SyntaxProblem } from './yaml-source.ts';

export interface SourceFile {
  readonly name: string;
  readonly text: string;
  readonly lines: LineCounter;
}

export function createSourceFile(name: string, text: string): SourceFile {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
  return { name, text, lines };
}

/** Offsets beyond the text are its end. */
export function positionOf({ text, lines }: SourceFile, offset: number): Position {
  const { line, col } = lines.linePos(Math.max(0, Math.min(offset, text.length)));
  return { line, column: col };
}

/** The line of an offset with a caret below it, two lines without a final line break. */
export function excerptAt(source: SourceFile, offset: number): string {
  const { line, column } = positionOf(source, offset);
  const { lineStarts } = source.lines;
  const text = source.text.slice(lineStarts[line - 1], (lineStarts[line] ?? source.text.length + 1) - 1);
  return caretLine(text.replace(/\r$/u, ''), column - 1);
}

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
