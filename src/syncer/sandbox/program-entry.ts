/** The daemon's record of a program: what it reads, its remembered results, its quarantine. */

import type { Clock } from '../../base/clock.ts';
import { oneLine } from '../../base/excerpt.ts';
import type { Memo, ProgramMemo } from './results/memo.ts';
import { Projection } from './results/projection.ts';
import type { ErrorEntry, ProgramMessage } from './process/protocol.ts';
import { Quarantine } from './quarantine/quarantine.ts';
import type { EvaluateError, ObjectIdentity, Program } from './types.ts';

/** Longest message that an expression can put into a log line. */
const MESSAGE_CHARS_MAX = 300;
const KINDS: ReadonlySet<string> = new Set(['runtime', 'result', 'result-size', 'syntax']);

export class ProgramEntry {
  readonly program: Program;
  readonly message: ProgramMessage;
  readonly projection: Projection;
  /** Its results contain quotes, so they are no longer sent as joined strings. */
  needsPlainAnswer = false;
  readonly quarantine: Quarantine;
  /** Undefined: nothing is remembered. */
  readonly memo: ProgramMemo | undefined;
  /** It reads nothing but the configuration: one evaluation serves all matches. */
  readonly isConstant: boolean;

  constructor(program: Program, memo: Memo | undefined, clock: Clock) {
    const { id, source, reads, usesContext } = program;
    this.program = program;
    this.projection = new Projection(reads);
    const { host, virtual } = this.projection.builders ?? { host: null, virtual: null };
    // Kept on one line: places in the program's source count from its beginning.
    this.message = {
      id,
      source: `({ host: ${host}, virtual: ${virtual}, factory: ${source} })`,
      usesContext,
    };
    this.quarantine = new Quarantine(clock);
    this.memo = memo?.open(reads);
    this.isConstant = !reads.value && !reads.path && this.projection.isEmpty;
  }

  /** An error of the child, checked, on one line, and with its place in the expression as the user wrote it. */
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

  /** For the quarantine an error that the expression throws counts as success. */
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
