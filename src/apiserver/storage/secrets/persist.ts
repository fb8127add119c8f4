/** A write that goes on until its outcome is known: refused, done, or done although the answer was lost. */

import { refusedByHost, verdictOf } from './host-errors.ts';
import type { Patience } from './patience.ts';
import type { RequestOptions } from '../../../kube/types.ts';
import type { StatusError } from '../../../kube/status-error.ts';

export interface Attempt<T> {
  send(request: RequestOptions): Promise<T>;
  /** After a lost answer: what the write became, or undefined when it has not happened. Throws when that cannot be known. */
  settle(): Promise<T | undefined>;
  /** What a 404, 409 or 410 means; undefined when the state that it speaks of has passed, so that another attempt makes sense. */
  refusal(error: StatusError): Promise<Error | undefined>;
}

/** INVARIANT: a write whose answer was lost is looked for before it is sent again, so it never happens twice, nor fails for itself. */
export async function persist<T>(
  patience: Patience,
  namespace: string,
  attempt: Attempt<NonNullable<T>>,
): Promise<NonNullable<T>> {
  for (;;) {
    let failure: unknown;
    try {
      return await attempt.send(patience.request);
    } catch (error) {
      failure = error;
    }
    patience.checkOpen();
    const verdict = verdictOf(failure);
    if (verdict === 'refused') throw refusedByHost(failure, namespace);
    if (verdict === 'doubtful') patience.doubt();
    if (patience.isDoubtful) {
      const done = await attempt.settle();
      if (done !== undefined) return done;
    }
    if (verdict === 'answered') {
      const refusal = await attempt.refusal(failure as StatusError); // nothing else is `answered`
      if (refusal !== undefined) throw refusal;
    }
    await patience.pause(failure);
  }
}
