/** The daemon's record of a program: its read set, cached results and quarantine. */

import type { Clock } from '../../base/clock.ts';
import { oneLine } from '../../base/excerpt.ts';
import type { Memo, ProgramMemo } from './memo.ts';
import { Projection } from './projection.ts';
import type { ErrorEntry, ProgramMessage } from './protocol.ts';
import { Quarantine } from './quarantine.ts';
import type { EvaluateError, ObjectIdentity, Program } from './types.ts';

/** Longest message that an expression can put into a log line. */
const MESSAGE_CHARS_MAX = 300;
const KINDS: ReadonlySet<string> = new Set(['runtime', 'result', 'result-size', 'syntax']);

export class ProgramEntry {
  readonly program: Program;
  readonly message: ProgramMessage;
  readonly projection: Projection;
  /** A result contained quotes, so results are no longer sent as joined strings. */
  needsPlainResponse = false;
  readonly quarantine: Quarantine;
  /** Undefined: results are not cached. */
  readonly memo: ProgramMemo | undefined;
  /** It reads only the configuration, so one evaluation serves all matches. */
  readonly isConstant: boolean;

  constructor(program: Program, memo: Memo | undefined, clock: Clock) {
    const { id, source, reads, usesContext } = program;
    this.program = program;
    this.projection = new Projection(reads);
    const { host, virtual } = this.projection.builders ?? { host: null, virtual: null };
    // On one line, because positions are relative to the beginning of the program's source.
    this.message = {
      id,
      source: `({ host: ${host}, virtual: ${virtual}, factory: ${source} })`,
      usesContext,
    };
    this.quarantine = new Quarantine(clock);
    this.memo = memo?.open(reads);
    this.isConstant = !reads.value && !reads.path && this.projection.isEmpty;
  }

  /** Converts an error of the child: validated, on one line, with the position in the user's expression. */
  errorOf([, kind, message, line, column]: ErrorEntry): EvaluateError {
    const place = this.#placeOf(line, column);
    return {
      kind: KINDS.has(kind) ? kind : 'runtime',
      message: oneLine(
        String(message).replace(/\bcontext_(vcluster|hostObject|virtualObject|path)_*/g, 'context.$1'),
        MESSAGE_CHARS_MAX,
      ),
      ...place,
    };
  }

  /** An error thrown by the expression counts as success for the quarantine. */
  recordOutcome(object: ObjectIdentity, errors: ReadonlyMap<number, EvaluateError> | undefined): void {
    if (errors !== undefined) for (const { kind } of errors.values()) if (!KINDS.has(kind)) return;
    this.quarantine.recordSuccess(object);
  }

  #placeOf(line: unknown, column: unknown): { line?: number; column?: number } {
    if (typeof line !== 'number' || typeof column !== 'number' || line <= 0) return {};
    let found: Program['mappings'][number] | undefined;
    for (const mapping of this.program.mappings) {
      if (mapping[0] === line && mapping[1] <= column) found = mapping;
    }
    return found === undefined ? {} : { line: found[2], column: found[3] };
  }
}
