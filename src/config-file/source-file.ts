/** Reads the file that a command names, and places problems in its text. */

import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { LineCounter } from 'yaml';
import { codeOf, type ConfigProblem, ConfigError, fileProblem } from '../base/errors.ts';
import { collectInput } from '../base/input-buffer.ts';
import { caretLine, plainText, type Position } from '../base/excerpt.ts';
import type { SyntaxProblem } from '../base/yaml/source.ts';

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

/** `file:line:column: path: message`; parts that a problem does not have are left out. */
export function describeProblem(
  { file, line, column, path, severity, message }: ConfigProblem,
  colour: (text: string) => string = (text) => text,
): string {
  const position = line > 0 ? `${file}:${line}:${column}` : file;
  const parts = [position, path].filter((part) => part !== '').map((part) => `${plainText(part)}: `);
  return `${parts.join('')}${colour(plainText(severity === 'warning' ? `warning: ${message}` : message))}`;
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

// Reads the file that a command names; `-` is standard input.

export function displayName(file: string): string {
  return file === '-' ? '<stdin>' : file;
}

/** The whole text of a file, or of standard input for `-`. Throws a `ConfigError` when it cannot be read. */
export async function readTextFile(file: string, bytesMax: number): Promise<string> {
  let content: Buffer | undefined;
  try {
    content = await collectInput(file === '-' ? process.stdin : chunksOf(file), bytesMax);
  } catch (error) {
    throw cannotBeRead(file, error);
  }
  if (content === undefined) throw unusable(file, `is larger than ${bytesMax} bytes`);
  try {
    // Drops a byte order mark too.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (error) {
    throw unusable(file, 'is not UTF-8 text: save it as UTF-8, or name another file', error);
  }
}

/** Tells which ConfigMap or Secret has the configuration in use: what else they contain may be written by a tenant. */
export function configurationTextHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

export function cannotBeRead(file: string, cause: unknown): ConfigError {
  const advice = READ_ADVICE[codeOf(cause)] ?? 'name another file';
  return unusable(file, `cannot be read: ${fileProblem(cause)}; ${advice}`, cause);
}

const READ_ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'correct its path',
  EISDIR: 'name a file in it',
  EACCES: 'let this user read it',
};

async function* chunksOf(file: string): AsyncIterable<Buffer> {
  await using handle = await open(file);
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024));
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function unusable(file: string, message: string, cause?: unknown): ConfigError {
  return new ConfigError([problemOf(displayName(file), message)], { cause });
}
