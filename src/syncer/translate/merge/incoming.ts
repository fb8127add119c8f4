/**
 * Entries of the sync record for values on their way from the host to the virtual side: which base they give, and how they are written.
 *
 * Two writes carry a change over: the record (base b, incoming i) with the host copy, then the virtual object. A daemon that reads the record in
 * between, after a crash or as a second replica, sees from the virtual value how far the change came: i, in step; b, the patch is due;
 * another value, the virtual side changed too and wins. After that the virtual side may be changed back to b: `Arrival` tells the two apart.
 */

import type { SyncedEntry } from './last-synced.ts';

/**
 * What is known of the incoming values where the virtual side holds the base. `due`: the virtual object is the version that the record was
 * made from, or its write was rejected. `arrived`: this process saw it arrive. `unknown`: neither.
 */
export type Arrival = 'due' | 'arrived' | 'unknown';

export interface ArrivedEntry {
  /** The base of the merge, without an incoming value. */
  readonly entry: SyncedEntry | undefined;
  /** The incoming value still has to be written to the virtual side. */
  readonly isDue: boolean;
  readonly isUncertain: boolean;
}

export function arrivedEntry(
  entry: SyncedEntry | undefined,
  virtual: string | undefined,
  arrival: Arrival,
): ArrivedEntry {
  if (entry?.incoming === undefined) return { entry, isDue: false, isUncertain: false };
  const { host, isFromHost, incoming } = entry;
  const isBase = virtual === entry.virtual && virtual !== incoming.virtual;
  // An overtaken value can only have come from the host.
  const isOvertaken = !isBase && virtual !== incoming.virtual && incoming.earlier.includes(virtual);
  const isDue = isOvertaken || (isBase && arrival === 'due');
  return {
    entry: { virtual: isDue ? virtual : incoming.virtual, host, isFromHost },
    isDue,
    isUncertain: isBase && arrival === 'unknown',
  };
}

/**
 * The entry for a key that both sides should hold as `wanted` says. Where the virtual side still holds another value (`before`), it is
 * recorded as incoming. A recorded entry that says the same is kept as it is, so that an arrival costs no write.
 */
export function entryWith(
  wanted: SyncedEntry,
  before: string | undefined,
  recorded: SyncedEntry | undefined,
): SyncedEntry | undefined {
  if (wanted.virtual !== before) {
    const incoming = { virtual: wanted.virtual, earlier: overtaken(wanted.virtual, before, recorded) };
    return { ...wanted, virtual: before, incoming };
  }
  if (recorded !== undefined && hasArrivedAs(recorded, wanted)) return recorded;
  return wanted.virtual === undefined && wanted.host === undefined ? undefined : wanted;
}

/** Removed on both sides: the entry is obsolete, but its removal alone does not justify a write. */
export function isRemoval({ host, incoming }: SyncedEntry): boolean {
  return incoming !== undefined && incoming.virtual === undefined && host === undefined;
}

function hasArrivedAs({ host, isFromHost, incoming }: SyncedEntry, wanted: SyncedEntry): boolean {
  const isSame = host === wanted.host && isFromHost === wanted.isFromHost;
  return incoming !== undefined && incoming.virtual === wanted.virtual && isSame;
}

/** The values that the virtual side may still receive or have received, besides `wanted` and `before`. */
function overtaken(
  wanted: string | undefined,
  before: string | undefined,
  recorded: SyncedEntry | undefined,
): readonly (string | undefined)[] {
  if (recorded?.incoming === undefined) return [];
  const { virtual, incoming } = recorded;
  const isPending = before === virtual || incoming.earlier.includes(before);
  const candidates = isPending ? [...incoming.earlier, virtual, incoming.virtual] : [];
  return [...new Set(candidates)].filter((value) => value !== wanted && value !== before).slice(-2);
}
