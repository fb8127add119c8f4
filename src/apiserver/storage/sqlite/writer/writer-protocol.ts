/** What the store and its writer thread say to each other. */

import type { LogRow, NoteRow, PresentRow, StoredRow } from '../file/log-row.ts';
import type { LogCounters } from '../file/replay.ts';
import type { NoteChange } from '../file/statements.ts';

export type WriterRequest =
  | { readonly kind: 'append'; readonly rows: readonly LogRow[] }
  /** Forget events up to this revision. */
  | { readonly kind: 'forget'; readonly revision: number }
  | { readonly kind: 'note'; readonly changes: readonly NoteChange[] }
  /** Write something that means nothing, durably. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

/** First `found`, then all rows, then `ready`; or `refused`. After that one `done` for each request. */
export type WriterReport =
  | { readonly kind: 'found'; readonly counters: LogCounters }
  | { readonly kind: 'log'; readonly rows: readonly StoredRow[] }
  | { readonly kind: 'present'; readonly rows: readonly PresentRow[] }
  | { readonly kind: 'notes'; readonly rows: readonly NoteRow[] }
  | { readonly kind: 'ready' }
  | { readonly kind: 'refused'; readonly message: string }
  /** `error` is a sentence for the user; nothing of the request has happened then. */
  | { readonly kind: 'done'; readonly id: number; readonly error: string | undefined };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WriterRequest;
}
