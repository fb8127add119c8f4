/** The result of a reconcile. */

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
  /** For the log: who causes this, and what to do. */
  readonly note?: string;
  readonly waitMs?: number;
  /** Nothing was decided: a cache was behind its API server and has been updated. The key is requeued immediately. */
  readonly isStale?: boolean;
  /** Waiting for work in progress, such as a write of another replica; not logged as a problem. */
  readonly isTransient?: boolean;
}

export type Reconcile = (key: ObjectKey) => Promise<ReconcileResult>;

export const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };

export const STALE: ReconcileResult = { outcome: 'unchanged', waitMs: 0, isStale: true };
