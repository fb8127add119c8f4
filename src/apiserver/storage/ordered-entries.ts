/** The entries of one resource in the order of their keys, now and at an earlier revision. */

import { orderedKey } from '../../kube/object.ts';
import type { StoredEntry, StoreRange } from './store.ts';

interface Row {
  readonly id: string;
  readonly entry: StoredEntry;
}

const NO_OTHERS: ReadonlyMap<string, StoredEntry | undefined> = new Map();

export class OrderedEntries {
  readonly #byId = new Map<string, StoredEntry>();
  /** Sorted by the first list and kept in order from then on: filling a store is cheaper without it. */
  #order: Row[] | undefined;

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): StoredEntry | undefined {
    return this.#byId.get(id);
  }

  values(): Iterable<StoredEntry> {
    return this.#byId.values();
  }

  set(id: string, entry: StoredEntry): void {
    const isNew = !this.#byId.has(id);
    this.#byId.set(id, entry);
    if (this.#order) this.#order.splice(firstFrom(this.#order, id), isNew ? 0 : 1, { id, entry });
  }

  delete(id: string): void {
    if (this.#byId.delete(id)) this.#order?.splice(firstFrom(this.#order, id), 1);
  }

  /**
   * One page, and the number of entries after it. `others`: the entries that were different at the revision of the page, undefined for those
   * that did not exist.
   */
  page(
    range: StoreRange,
    after: string | undefined,
    limit: number,
    others: ReadonlyMap<string, StoredEntry | undefined> = NO_OTHERS,
  ): [StoredEntry[], number] {
    const order = this.#sorted();
    const { first, beyond } = boundsOf(range, after);
    const start = first === '' ? 0 : firstFrom(order, first);
    const end = beyond === undefined ? order.length : Math.max(start, firstFrom(order, beyond));
    if (others.size === 0) {
      const stop = Math.min(end, start + limit);
      return [order.slice(start, stop).map(entryOf), end - stop];
    }
    const rows = order.slice(start, end).filter(({ id }) => !others.has(id));
    for (const [id, entry] of others) {
      if (entry && id >= first && (beyond === undefined || id < beyond)) rows.push({ id, entry });
    }
    rows.sort(byId);
    return [rows.slice(0, limit).map(entryOf), Math.max(0, rows.length - limit)];
  }

  #sorted(): readonly Row[] {
    this.#order ??= Array.from(this.#byId, ([id, entry]) => ({ id, entry })).sort(byId);
    return this.#order;
  }
}

/** Ids from `first` on, below `beyond`. The character after `/` ends a namespace; the one after any text is that text and U+0000. */
function boundsOf(
  range: StoreRange,
  after: string | undefined,
): { first: string; beyond: string | undefined } {
  const { namespace } = range;
  const next = after === undefined ? '' : `${after}\u0000`;
  if (namespace === undefined) return { first: next, beyond: undefined };
  const prefix = orderedKey({ namespace, name: '' });
  return { first: next > prefix ? next : prefix, beyond: `${namespace}0` };
}

function firstFrom(rows: readonly Row[], id: string): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle];
    if (row !== undefined && row.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Names and namespaces are ASCII, where the order of code units is the order of bytes. */
function byId(a: Row, b: Row): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function entryOf(row: Row): StoredEntry {
  return row.entry;
}
