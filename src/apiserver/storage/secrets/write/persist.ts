/** A write that goes on until its outcome is known: refused, done, or done although the answer was lost. */

import { refusedByHost, verdictOf } from '../host/host-errors.ts';
import type { RetryBudget } from '../host/retry-budget.ts';
import type { RequestOptions } from '../../../../kube/types.ts';
import type { StatusError } from '../../../../kube/status-error.ts';

export interface Attempt<T> {
  send(request: RequestOptions): Promise<T>;
  /** After a lost answer: what the write became, or undefined when it has not happened. Throws when that cannot be known. */
  settle(): Promise<T | undefined>;
  /** What a 404, 409 or 410 means; undefined when the state that it speaks of has passed, so that another attempt makes sense. */
  refusal(error: StatusError): Promise<Error | undefined>;
}

/** INVARIANT: a write whose answer was lost is looked for before it is sent again, so it never happens twice, nor fails for itself. */
export async function persist<T>(
  budget: RetryBudget,
  namespace: string,
  attempt: Attempt<NonNullable<T>>,
): Promise<NonNullable<T>> {
  for (;;) {
    let failure: unknown;
    try {
      return await attempt.send(budget.request);
    } catch (error) {
      failure = error;
    }
    budget.checkOpen();
    const verdict = verdictOf(failure);
    if (verdict === 'refused') throw refusedByHost(failure, namespace);
    if (verdict === 'doubtful') budget.markOutcomeUnknown();
    if (budget.isOutcomeUnknown) {
      const done = await attempt.settle();
      if (done !== undefined) return done;
    }
    if (verdict === 'answered') {
      const refusal = await attempt.refusal(failure as StatusError); // nothing else is `answered`
      if (refusal !== undefined) throw refusal;
    }
    await budget.pause(failure);
  }
}
