/** Messages between the store and its writer thread. */

import type { LogRow, NoteRow, PresentRow, StoredRow } from '../file/log-row.ts';
import type { LogCounters } from '../file/replay.ts';
import type { NoteChange } from '../file/statements.ts';

export type WriterRequest =
  | { readonly kind: 'append'; readonly rows: readonly LogRow[] }
  /** Removes events up to this revision. */
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'note'; readonly changes: readonly NoteChange[] }
  /** Makes a meaningless write durable. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

/** First `counters`, then all rows, then `ready`; or `failed`. After that one `done` for each request. */
export type WriterReport =
  | { readonly kind: 'counters'; readonly counters: LogCounters }
  | { readonly kind: 'log'; readonly rows: readonly StoredRow[] }
  | { readonly kind: 'present'; readonly rows: readonly PresentRow[] }
  | { readonly kind: 'notes'; readonly rows: readonly NoteRow[] }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly message: string }
  /** `error` is a message for the user: nothing of the request has happened. */
  | { readonly kind: 'done'; readonly id: number; readonly error: string | undefined };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WriterRequest;
}
