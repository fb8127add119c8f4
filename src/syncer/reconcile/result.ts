/** What one reconcile loop reports to its controller. */

import type { ObjectKey } from '../../kube/object.ts';

/** `waitMs` requeues the key after this time, even if nothing changes. */
export interface ReconcileResult {
  readonly outcome:
    | 'unchanged'
    | 'created'
    | 'updated'
    | 'rewritten'
    | 'deleted'
    | 'ignored'
    | 'refused'
    | 'waiting';
  readonly reason?: string;
  readonly waitMs?: number;
  /** Waiting for what is already in progress, such as a write of another replica: nothing that an operator has to know. */
  readonly isTransient?: boolean;
}

export type Reconcile = (key: ObjectKey) => Promise<ReconcileResult>;

export const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };

/** A cache was behind and has been brought up to date: the key is requeued immediately. */
export const DECIDE_AGAIN: ReconcileResult = { outcome: 'unchanged', waitMs: 0 };
