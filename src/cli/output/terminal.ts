/** What commands write for people: colours and progress, and errors that the user can act on. */

import type { WriteStream } from 'node:tty';
import { systemClock } from '../../base/clock.ts';
import {
  ConfigError,
  type ConfigProblem,
  describePatchError,
  messageOf,
  PatchError,
  TerminalError,
} from '../../base/errors.ts';
import { plainLines, plainText } from '../../base/excerpt.ts';
import { describeProblem } from '../../config-file/source-file.ts';
import { StatusError } from '../../kube/status-error.ts';
import { TransportError } from '../../kube/types.ts';
import { StoreError } from '../../apiserver/storage/store.ts';

/** Standard output or standard error, a terminal or not. */
export type Output = Pick<WriteStream, 'write'> & { readonly isTTY?: boolean };

export interface Paint {
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly dim: (text: string) => string;
}

/** Colours on a terminal, unless NO_COLOR is set (no-color.org); plain text everywhere else. */
export function paintFor(output: Pick<Output, 'isTTY'>, env: NodeJS.ProcessEnv = process.env): Paint {
  const isColoured = output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { red: paint(31), green: paint(32), yellow: paint(33), dim: paint(2) };
}

export interface Progress extends Disposable {
  update(done: number, total: number): void;
  /** Shows the label alone, immediately: for work of unknown length that blocks the process. */
  announce(): void;
}

/** Progress of a command, on standard error. */
export function showProgress(what: string): Progress {
  return progressOn(process.stderr, what, () => systemClock.monotonicMs());
}

const SILENT_MS = 1000;
const INTERVAL_MS = 100;
const WIDTH = 24;

/** A bar on one line, removed at the end. Writes nothing if the output is not a terminal. */
export function progressOn(output: Output, what: string, monotonicMs: () => number): Progress {
  if (output.isTTY !== true)
    return { update: () => undefined, announce: () => undefined, [Symbol.dispose]: () => undefined };
  const startMs = monotonicMs();
  let shownMs: number | undefined;
  return {
    update(done, total) {
      const now = monotonicMs();
      if (now - startMs < SILENT_MS || now - (shownMs ?? 0) < INTERVAL_MS) return;
      shownMs = now;
      const filled = total === 0 ? WIDTH : Math.floor((WIDTH * done) / total);
      output.write(`\r${what} [${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${done}/${total}\u001b[K`);
    },
    announce() {
      shownMs = monotonicMs();
      output.write(`\r${what} …\u001b[K`);
    },
    [Symbol.dispose]() {
      if (shownMs !== undefined) output.write('\r\u001b[K');
      shownMs = undefined;
    },
  };
}

// Reports errors that the user can act on: of a configuration, of a patch, of a cluster or store.

/** Writes the problems of a `ConfigError` in the format of `validate` and returns exit code 2. Rethrows any other error. */
function reportConfigError(error: unknown): number {
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

/** A line on standard error, without characters that control a terminal: texts in it may be those of tenants, callers and servers. */
export function tell(text: string): void {
  process.stderr.write(`${plainLines(text)}\n`);
}

// Turns errors that the user can act on into a line on standard error and an exit code; rethrows every other error, which is a bug.

/** `failure` is the exit code for commands where 1 has another meaning. */
export async function guarded(work: () => number | Promise<number>, failure = 1): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    if (!isActionable(error)) throw error;
    const text = error instanceof PatchError ? describePatchError(error) : `error: ${error.message}`;
    tell(text);
    return failure;
  }
}

/** Ends the action of a command: runs its work as {@link guarded} does, with the exit code as that of the process. */
export type ExitWith = (...work: Parameters<typeof guarded>) => Promise<void>;

/** Reports a mistake on the command line, and returns its exit code. */
export function usageError(message: string): number {
  tell(`error: ${message}`);
  return 2;
}

function isActionable(error: unknown): error is Error {
  const types = [TerminalError, StatusError, TransportError, StoreError, PatchError];
  return types.some((type) => error instanceof type);
}

export function describeFailure(error: unknown): string {
  if (error instanceof PatchError) return describePatchError(error);
  return plainText(messageOf(error));
}
