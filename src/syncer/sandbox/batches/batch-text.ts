/** Encodes batches for the child, and decodes its responses. */

import { Batch, failJob } from './batch.ts';
import type { Job } from './group.ts';
import type { SandboxChild } from '../process/child.ts';

export interface EncodedBatch {
  readonly batch: Batch;
  readonly text: string;
}

/** The batch and its text, without jobs that cannot be encoded as JSON; undefined if none is left. */
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

/** Adds the results in the text to the batch. False if the text is not a valid response to it. */
export function takeResponse(child: SandboxChild, batch: Batch, text: string, isLast: boolean): boolean {
  if (batch.isSpoiled) return true;
  const before = batch.matchesLeft;
  const outcome = batch.receive(text);
  child.completed += before - batch.matchesLeft;
  batch.isSpoiled = outcome === 'spoiled';
  return outcome !== 'foreign' && (batch.isSpoiled || isLast === batch.isFinished);
}
