/** A batch as the text that is sent to the child, and the text that the child answers. */

import { Batch, failJob } from './batch.ts';
import type { Job } from './group.ts';
import type { SandboxChild } from '../process/child.ts';

export interface EncodedBatch {
  readonly batch: Batch;
  readonly text: string;
}

/** The batch and its text, without jobs that JSON cannot hold; undefined when nothing is left. */
export function encodeBatch(batch: Batch): EncodedBatch | undefined {
  if (batch.isFinished) return undefined;
  try {
    return { batch, text: batch.encode() };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  const rest = new Batch();
  for (const job of batch.jobs) {
    if (isWritable(job)) rest.add(job);
    else failJob(job, { kind: 'runtime', message: 'the value is too large or too deep for the sandbox' });
  }
  return rest.isFinished ? undefined : { batch: rest, text: rest.encode() };
}

function isWritable({ values, objects }: Job): boolean {
  try {
    return JSON.stringify([values, objects]).length > 0;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Gives the results in the text to the batch. False when the text is no valid answer to it. */
export function takeAnswer(child: SandboxChild, batch: Batch, text: string, isLast: boolean): boolean {
  if (batch.isSpoiled) return true;
  const before = batch.matchesLeft;
  const outcome = batch.receive(text);
  child.completed += before - batch.matchesLeft;
  batch.isSpoiled = outcome === 'spoiled';
  return outcome !== 'foreign' && (batch.isSpoiled || isLast === batch.isFinished);
}
