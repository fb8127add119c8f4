/** Where the daemon evaluates an expression, in words: in its own process, or in the sandbox, which evaluates everything. */

import { placeOf } from '../base/excerpt.ts';
import type { Program } from './types.ts';

export type Place = 'daemon' | 'sandbox';

/** What only the sandbox evaluates in an expression; lines and columns are 1-based. */
export interface Declined {
  readonly construct: string;
  readonly line: number;
  readonly column: number;
}

/** Undefined: the daemon evaluates it, except on values whose results might differ in the sandbox. */
export function declinedBy({ expression, local }: Program): Declined | undefined {
  if (local.kind === 'local') return undefined;
  const { line, column } = placeOf(expression, local.start);
  return { construct: expression.slice(local.start, local.end), line, column };
}

/** `at`: the offset of what only the sandbox evaluates. */
export function placeIn(
  program: Program,
  isLocalOn: boolean,
): { readonly place: Place; readonly message: string; readonly at: number } {
  const { expression, local } = program;
  if (!isLocalOn) {
    const message = 'evaluated in the sandbox: endpointSyncer.sandbox.localEvaluation is false';
    return { place: 'sandbox', message, at: 0 };
  }
  if (local.kind === 'local') return { place: 'daemon', message: IN_DAEMON, at: 0 };
  const message = inSandbox(expression.slice(local.start, local.end));
  return { place: 'sandbox', message, at: local.start };
}

const IN_DAEMON = 'evaluated in the daemon';

/** Of one evaluation. `declined` undefined in the sandbox: the inputs alone decided. */
export function describePlace(place: Place, declined: Declined | undefined): string {
  if (place === 'daemon') return IN_DAEMON;
  if (declined === undefined) return inSandbox('it on these inputs');
  const { construct, line, column } = declined;
  return `${inSandbox(construct)} (line ${line}, column ${column})`;
}

/** `what`: a construct of the expression, or what else the daemon declined. */
function inSandbox(what: string): string {
  const line = what.replaceAll(/\s+/g, ' ');
  const shown = line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line;
  return `evaluated in the sandbox: the daemon does not evaluate ${shown}`;
}

const SHOWN_MAX = 60;
