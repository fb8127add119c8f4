/**
 * Handles a batch that was stopped. Finished matches keep their results. If the cause is unknown, the rest is sent again with one call
 * per match; if one match is the cause, that match and the rest of its object fail.
 */

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { Batch, Position } from './batch.ts';
import { oneLine } from '../../base/excerpt.ts';
import type { EvaluateError } from './types.ts';

/** Why a batch stopped: a message of the child, or its end. */
export type Stop =
  /** The call timed out. */
  | 'timeout'
  /** The same, but the child got too little processor time to attribute it to an expression. */
  | 'starved'
  /** The batch as a whole took too long. */
  | 'late'
  /** The call failed for a reason outside the expression. */
  | 'failed'
  /** The isolate or the child exceeded its memory limit. */
  | 'memory'
  /** The child did not respond and was killed. */
  | 'killed'
  /** The child ended for an unknown reason. */
  | 'lost';

export interface StopOptions {
  readonly expressionTimeoutMs: number;
  readonly batchTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const STARVATIONS_MAX = 5;
const KINDS: Readonly<Record<Stop, EvaluateError['kind']>> = {
  late: 'timeout',
  timeout: 'timeout',
  starved: 'timeout',
  memory: 'memory',
  killed: 'killed',
  lost: 'killed',
  failed: 'killed',
};

/** `isFresh`: the child had evaluated nothing before. Returns true when a part of the batch has to be sent again. */
export function handleStop(batch: Batch, stop: Stop, isFresh: boolean, options: StopOptions): boolean {
  const position = batch.position();
  if (position === undefined) return false;
  if (stop === 'starved' && batch.isCareful && batch.starvations < STARVATIONS_MAX) {
    batch.starvations += 1;
  } else if (stop === 'late') {
    // Only the first object had the whole time; the others are sent again.
    if (position.isFirstJob) attributeFailure(batch, position, stop, options);
  } else if (!batch.isCareful) {
    batch.isCareful = true;
  } else if (isAmbiguous(stop, isFresh) && batch.retriedFreshAt !== batch.matchesLeft) {
    batch.retriedFreshAt = batch.matchesLeft;
  } else {
    // The rest stays in careful mode, because a stop often affects several matches, and each search may cost a process.
    attributeFailure(batch, position, stop, options);
    batch.starvations = 0;
  }
  return !batch.isFinished;
}

/** Earlier matches may have used the memory, or the system may have killed the process. A retry in a new process decides. */
function isAmbiguous(stop: Stop, isFresh: boolean): boolean {
  return stop === 'lost' || (stop === 'memory' && !isFresh);
}

/** The patch fails on the object in any case, so its other matches are not evaluated and do not delay other objects. */
function attributeFailure(batch: Batch, { job }: Position, stop: Stop, options: StopOptions): void {
  const { entry, object } = job;
  const { clock, logger } = options;
  const untilMs = entry.quarantine.recordStop(object);
  const error = {
    kind: KINDS[stop],
    message: explain(stop, options),
    retryAfterMs: Math.max(0, untilMs - clock.now()),
  };
  const fields = {
    expression: oneLine(entry.program.expression, 200),
    ...object,
    kind: error.kind,
    retryAfterMs: error.retryAfterMs,
  };
  logger.warn(fields, 'an expression was stopped');
  batch.failNext(error);
}

function explain(stop: Stop, { expressionTimeoutMs, batchTimeoutMs }: StopOptions): string {
  switch (stop) {
    case 'late':
      return `all matches of one object together took longer than ${batchTimeoutMs} ms`;
    case 'timeout':
    case 'starved':
      return `took longer than ${expressionTimeoutMs} ms`;
    case 'memory':
      return 'exceeded the memory limit of the sandbox';
    case 'killed':
      return `did not stop after ${expressionTimeoutMs} ms, so its process was ended`;
    case 'lost':
      return 'ended the process that it ran in';
    case 'failed':
      return 'the sandbox could not run it';
    default:
      return stop satisfies never;
  }
}
