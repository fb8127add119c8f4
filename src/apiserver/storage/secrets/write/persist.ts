/** Retries a write until its outcome is known: rejected, done, or done although the response was lost. */

import { failureKindOf, rejectedByHost } from '../host/host-errors.ts';
import type { RetryBudget } from '../host/retry-budget.ts';
import type { RequestOptions } from '../../../../kube/types.ts';
import type { StatusError } from '../../../../kube/status-error.ts';

export interface Attempt<T> {
  send(request: RequestOptions): Promise<T>;
  /** After a lost response: the result of the write, or undefined when it has not happened. Throws when the outcome cannot be determined. */
  settle(): Promise<T | undefined>;
  /** The error that a 404, 409 or 410 stands for; undefined when the state has changed since, so that a retry makes sense. */
  rejection(error: StatusError): Promise<Error | undefined>;
}

/** INVARIANT: after a lost response the write is looked for before it is sent again, so it never happens twice and never conflicts with itself. */
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
    const kind = failureKindOf(failure);
    if (kind === 'permanent') throw rejectedByHost(failure, namespace);
    if (kind === 'outcome-unknown') budget.markOutcomeUnknown();
    if (budget.isOutcomeUnknown) {
      const done = await attempt.settle();
      if (done !== undefined) return done;
    }
    if (kind === 'decided') {
      const rejection = await attempt.rejection(failure as StatusError); // only a StatusError is `decided`
      if (rejection !== undefined) throw rejection;
    }
    await budget.pause(failure);
  }
}
