/** Errors by who must act on them. */

import { plainText } from './excerpt.ts';

/** The user's file is invalid. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], options?: ErrorOptions) {
    super(
      problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'),
      options,
    );
    this.problems = problems;
  }
}

export interface ConfigProblem {
  file: string;
  /** 1-based; 0 when the problem has no place in a file. */
  line: number;
  column: number;
  /** Dotted path in the file, `sync.toHost.endpoints.patches[0].path`. */
  path: string;
  severity: 'error' | 'warning';
  message: string;
  /** The source line with a caret line below it; empty when there is no place. */
  excerpt: string;
}

export type PatchErrorKind =
  | 'syntax'
  | 'forbidden'
  | 'runtime'
  | 'timeout'
  | 'memory'
  | 'result'
  | 'result-size'
  | 'killed';

/** One patch failed on one object. Everything needed to find it in the configuration is in here. */
export class PatchError extends Error {
  override readonly name = 'PatchError';
  /** Index in `patches`. */
  readonly index: number;
  /** The concrete path of the match, or the configured path when no match was reached. */
  readonly path: string;
  readonly kind: PatchErrorKind;
  /** Caret excerpt of the expression, when the place is known. */
  readonly excerpt: string;
  /** Nothing changes before so many milliseconds have passed; undefined: unknown. */
  readonly retryAfterMs: number | undefined;
  /** The object is synced but for the paths of failed patches. */
  readonly isRestSynced: boolean;
  /** Of other patches that fail on the same object. */
  readonly others: readonly PatchError[];

  constructor(
    message: string,
    details: {
      readonly index: number;
      readonly path: string;
      readonly kind: PatchErrorKind;
      readonly excerpt?: string;
      readonly retryAfterMs?: number | undefined;
      readonly isRestSynced?: boolean;
      readonly others?: readonly PatchError[];
    },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.index = details.index;
    this.path = details.path;
    this.kind = details.kind;
    this.excerpt = details.excerpt ?? '';
    this.retryAfterMs = details.retryAfterMs;
    this.isRestSynced = details.isRestSynced ?? false;
    this.others = details.others ?? [];
  }

  /** The same failure of an object that is synced but for the paths of failed patches. */
  ofSyncedRest(): PatchError {
    return this.#copy(true, this.others);
  }

  with(others: readonly PatchError[]): PatchError {
    return others.length === 0 ? this : this.#copy(this.isRestSynced, others);
  }

  #copy(isRestSynced: boolean, others: readonly PatchError[]): PatchError {
    const { index, path, kind, excerpt, retryAfterMs } = this;
    const details = { index, path, kind, excerpt, retryAfterMs, isRestSynced, others };
    return new PatchError(this.message, details, { cause: this });
  }

  /** The same inputs will fail the same way: do not retry before they change, or {@link retryAfterMs} has passed. */
  get isDeterministic(): boolean {
    return this.kind !== 'timeout' && this.kind !== 'memory' && this.kind !== 'killed';
  }
}

/** A line with index and path, then the expression with a caret where the place is known; the same of other patches that fail. */
export function describePatchError(error: PatchError): string {
  return [error, ...error.others]
    .map((each) => `${patchErrorLine(each)}${each.excerpt === '' ? '' : `\n${each.excerpt}`}`)
    .join('\n');
}

export function patchErrorLine({ index, path, kind, message }: PatchError): string {
  const place = path === '' ? '' : ` at ${plainText(path)}`;
  return `patches[${index}]${place}: ${plainText(message)} (${kind})`;
}

/** Retrying cannot help: the configuration or the cluster must be changed first. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** Thrown where a reconcile would wait for something that one tenant can make last: it ends, holds no worker, and its key is reconciled again afterwards. */
export class Postponed extends Error {
  override readonly name = 'Postponed';
  /** Never rejects. */
  readonly until: Promise<unknown>;

  constructor(what: string, until: Promise<unknown>) {
    super(what);
    this.until = until;
  }
}

const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  ENOTDIR: 'part of its path is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
};

/** The code of an error of the system or of Node, such as `ENOENT`; '' if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** An error of the file system in words. */
export function fileProblem(error: unknown): string {
  return FILE_PROBLEMS[codeOf(error)] ?? messageOf(error);
}

const DEFECTS: ReadonlySet<string> = new Set([
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'InvariantError',
  'SinkError',
  'AssertionError',
]);

/** A bug of this program, as far as the error tells: those of configurations, clusters and systems have names or codes of their own. */
export function isDefect(error: Error): boolean {
  return DEFECTS.has(error.name) || (error.name === 'Error' && codeOf(error) === '');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** This program has a bug. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws an {@link InvariantError} when `condition` does not hold. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
