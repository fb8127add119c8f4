/** Where the daemon evaluates an expression, in words: in its own process, or in the sandbox, which evaluates everything. */

import type { Program } from './types.ts';

export type Place = 'daemon' | 'sandbox';

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

export const IN_DAEMON = 'evaluated in the daemon';

/** `what`: a construct of the expression, or what else the daemon declined. */
export function inSandbox(what: string): string {
  const line = what.replaceAll(/\s+/g, ' ');
  const shown = line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line;
  return `evaluated in the sandbox: the daemon does not evaluate ${shown}`;
}

const SHOWN_MAX = 60;
