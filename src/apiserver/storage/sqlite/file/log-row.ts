/** One event as a row of the log. */

import { crc32 } from 'node:zlib';
import type { StoreEvent } from '../../store.ts';

export interface LogRow {
  readonly revision: number;
  readonly type: StoreEvent['type'];
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** Revision of the state before; null when the object is new. */
  readonly previous: number | null;
  /** JSON text; null for a deletion, whose last state is the row `previous`. */
  readonly value: string | null;
}

export interface StoredRow extends LogRow {
  /** See {@link checksumOf}. */
  readonly checksum: number;
}

export interface PresentRow {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
}

export interface NoteRow {
  readonly list: string;
  readonly key: string;
  readonly value: string;
}

/** `text` is the new state as JSON. */
export function rowOf(event: StoreEvent, text: string): LogRow {
  const { type, revision, entry, previous } = event;
  return {
    revision,
    type,
    ...entry.key,
    previous: previous?.revision ?? null,
    value: type === 'deleted' ? null : text,
  };
}

/** CRC-32 of the complete row: SQLite has no checksums, so it would not notice a flipped bit in a value. */
export function checksumOf(row: LogRow): number {
  const { revision, type, resource, namespace, name, previous } = row;
  const head = JSON.stringify([revision, type, resource, namespace, name, previous, row.value === null]);
  return crc32(row.value ?? '', crc32(head));
}
