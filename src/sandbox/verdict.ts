/**
 * What becomes of a batch that did not come to its end. What was finished stays. If it is not known which match is at fault, the rest is
 * sent again carefully, one call per match; if it is, only that match fails.
 */

import type { Logger } from '../observe/logger.ts';
import type { Batch, Position } from './batch.ts';
import { oneLine } from './frame.ts';
import type { EvaluateError } from './types.ts';

/** The child's own frames, or its end. */
export type Stop =
  /** The call was stopped in time. */
  | 'timeout'
  /** The same, but the child got too little processor time to blame anybody. */
  | 'starved'
  /** The batch as a whole took too long. */
  | 'late'
  /** The call failed, for no reason that is the expression's. */
  | 'failed'
  /** The isolate passed its limit, or the child its own. */
  | 'memory'
  /** The child did not answer any more and was ended. */
  | 'killed'
  /** The child ended, and nobody knows why. */
  | 'lost';

export interface Judge {
  readonly expressionTimeoutMs: number;
  readonly batchTimeoutMs: number;
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

/** `isFresh`: the child had evaluated nothing before. True when something of the batch is left to be sent again. */
export function judge(batch: Batch, stop: Stop, isFresh: boolean, by: Judge): boolean {
  const position = batch.position();
  if (position === undefined) return false;
  if (stop === 'starved' && batch.isCareful && batch.starvations < STARVATIONS_MAX) {
    batch.starvations += 1;
  } else if (stop === 'late') {
    // Whoever had all of the time to itself has had enough; others begin anew.
    if (position.isFirstJob) blame(batch, position, stop, by);
  } else if (!batch.isCareful) {
    batch.isCareful = true;
  } else if (isDoubtful(stop, isFresh) && !batch.isRetriedFresh) {
    batch.isRetriedFresh = true;
  } else {
    // The rest stays careful: what stops one match often stops others, and to find the next one anew would cost another process.
    blame(batch, position, stop, by);
    batch.starvations = 0;
    batch.isRetriedFresh = false;
  }
  batch.failQuarantined();
  return !batch.isFinished;
}

/** The memory may be that of those before, and a process may end for reasons of the machine's: on a process of its own it is clear. */
function isDoubtful(stop: Stop, isFresh: boolean): boolean {
  return stop === 'lost' || (stop === 'memory' && !isFresh);
}

function blame(batch: Batch, { job, match }: Position, stop: Stop, by: Judge): void {
  const { entry } = job;
  const error = { kind: KINDS[stop], message: explain(stop, by) };
  const fields = { expression: oneLine(entry.program.expression, 200), kind: error.kind };
  by.logger.warn(fields, 'an expression was stopped');
  const input = entry.inputKey(job.values[match], job.paths?.[match] ?? '', job.objects);
  if (entry.quarantine.strike(input)) {
    by.logger.warn(fields, 'an expression is not run for a while: it had to be stopped too often');
  }
  batch.failNext(error, stop === 'late' ? 'job' : 'match');
}

function explain(stop: Stop, { expressionTimeoutMs, batchTimeoutMs }: Judge): string {
  switch (stop) {
    case 'late':
      return `all matches of one object together took longer than ${batchTimeoutMs} ms`;
    case 'timeout':
    case 'starved':
      return `took longer than ${expressionTimeoutMs} ms`;
    case 'memory':
      return 'needed more memory than the sandbox has';
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
