/** What a reconcile answers, and what it leaves to do for its key although neither side changes: one value, which its result has and the state of the
 * key stores. */

/** What a reconcile answers, with what it leaves to do. */
export type ReconcileResult = Done | Wait | Again;

/** The decision is carried out. */
export interface Done {
  readonly outcome: 'unchanged' | 'created' | 'updated' | 'rewritten' | 'deleted' | 'ignored';
  readonly reason?: string;
  readonly left?: Left | undefined;
}

/** The object is not in sync, which is logged and counted as a problem. `outcome`: the state in which `status` shows it. */
export interface Wait {
  readonly outcome: 'pending' | 'terminating' | 'refused' | 'contested';
  readonly reason: string;
  /** For the log: who causes this, and what to do. */
  readonly note?: string;
  /** Undefined for what is refused until a change, which causes an event; retries with increasing delays are only a safety net. */
  readonly left?: Left | undefined;
}

/** Nothing is decided yet, because of work in progress elsewhere. */
export interface Again {
  readonly outcome: 'again';
  readonly left: Left;
}

/** Undefined, wherever it is optional: nothing. */
export type Left =
  /** The key is reconciled again now. `runs`: so many times in a row, for this reason. */
  | { readonly kind: 'again'; readonly reason: string; readonly runs?: number }
  | { readonly kind: 'later'; readonly reason: string; readonly waitMs: number }
  /** The back-off of the controller, or an event, decides when. */
  | { readonly kind: 'retry'; readonly reason: string };

export function again(reason: string): Left {
  return { kind: 'again', reason };
}

export function later(reason: string, waitMs: number): Left {
  return { kind: 'later', reason, waitMs };
}

export function retry(reason: string): Left {
  return { kind: 'retry', reason };
}

/** Another run in a row for this reason, after what was left before; undefined: there have been `max`. */
export function anotherRun(reason: string, before: Left | undefined, max: number): Left | undefined {
  const runs = before?.kind === 'again' && before.reason === reason ? (before.runs ?? 1) : 0;
  return runs < max ? { kind: 'again', reason, runs: runs + 1 } : undefined;
}

/** What is left of all this: that which is due first, and of two at the same time the first. */
export function earliest(...all: readonly (Left | undefined)[]): Left | undefined {
  let first: Left | undefined;
  for (const left of all)
    if (left !== undefined && (first === undefined || dueMs(left) < dueMs(first))) first = left;
  return first;
}

function dueMs(left: Left): number {
  return left.kind === 'again' ? 0 : left.kind === 'later' ? left.waitMs : Number.MAX_VALUE;
}

/** When the key is queued again, milliseconds from now; undefined: not by this. */
export function waitMsOf(left: Left | undefined): number | undefined {
  return left === undefined || left.kind === 'retry' ? undefined : dueMs(left);
}
