/**
 * Paths below `subsets` that do not simply follow the virtual object: two-way paths, and paths where the host keeps its own value.
 *
 * A host change at a two-way path flows back only where the host differs from the translation at such paths alone, with as many
 * subsets, addresses and ports; any other difference is drift, and the virtual side wins everywhere.
 */

import {
  canonicalJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  type JsonObject,
  type JsonValue,
} from '../lib/json.ts';
import { valueAt, withValueAt } from './json-path.ts';
import { shortHash, type SyncedEntry, type SyncedSection } from './last-synced.ts';
import { outermost, trieOf } from './path-trie.ts';
import { equalsExcept, haveSameShape, storedSubsetsOf } from './subsets-equality.ts';
import type { ConcretePath } from './types.ts';

/** The three documents have the member `subsets`; all else in them is ignored. */
export interface PathMergeInput {
  readonly virtual: JsonObject;
  /** The host copy as it is; undefined: there is none yet. */
  readonly host: JsonObject | undefined;
  /** What the virtual object translates and patches to. */
  readonly desired: JsonObject;
  readonly twoWay: readonly ConcretePath[];
  readonly hostOwned: readonly ConcretePath[];
  /** Undefined: no readable record. */
  readonly section: SyncedSection | undefined;
}

export interface PlannedPaths {
  /** `host` and `desired` as stored, where there are paths. */
  readonly input: PathMergeInput;
  /** `desired` with the host's own values where it keeps them. */
  readonly base: JsonObject;
  readonly paths: readonly PlannedPath[];
  readonly needsReverse: boolean;
}

interface PlannedPath {
  readonly path: ConcretePath;
  readonly isHostOwned: boolean;
  readonly isTaken: boolean;
}

export interface PathMerge {
  readonly hostSubsets: JsonValue;
  readonly virtualSubsets: JsonValue;
  readonly section: SyncedSection;
}

const SUBSETS = 'subsets';

export function planPaths(given: PathMergeInput): PlannedPaths {
  const hostOwned = outermost(given.hostOwned.filter(isBelowSubsets), []);
  const twoWay = outermost(given.twoWay.filter(isBelowSubsets), hostOwned);
  if (twoWay.length === 0 && hostOwned.length === 0)
    return { input: given, base: given.desired, paths: [], needsReverse: false };
  // What a patch brings in and no server keeps would look like a change of the host's.
  const input = {
    ...given,
    host: given.host && storedSubsetsOf(given.host),
    desired: storedSubsetsOf(given.desired),
  };
  const base = keepHostValues(input, hostOwned);
  const isAligned = haveSameShape(input.virtual, input.desired) && haveSameShape(input.host, input.desired);
  const isOnlyTwoWay = isAligned && equalsExcept(base, input.host, trieOf(twoWay));
  const paths = [
    ...twoWay.map((path) => ({
      path,
      isHostOwned: false,
      isTaken: isOnlyTwoWay && input.section !== undefined && isHostAhead(input, base, path),
    })),
    ...hostOwned.map((path) => ({ path, isHostOwned: true, isTaken: isAligned && isOwnTaken(input, path) })),
  ];
  return { input, base, paths, needsReverse: paths.some(({ isTaken }) => isTaken) };
}

/** `reversedHost` is the host copy translated and patched back; undefined where nothing is taken. */
export function resolvePaths(planned: PlannedPaths, reversedHost: JsonObject | undefined): PathMerge {
  const { input, base, paths } = planned;
  const reversed = reversedHost && storedSubsetsOf(reversedHost);
  const isReversible = haveSameShape(reversed, input.host);
  let [hostRoot, virtualRoot]: JsonValue[] = [base, input.virtual] as const;
  const section = new Map<string, SyncedEntry>();
  for (const { path, isHostOwned, isTaken } of paths) {
    const [virtual, host] = [valueAt(input.virtual, path), valueAt(input.host, path)];
    let [newVirtual, newHost] = [virtual, valueAt(base, path)];
    const back = isTaken && isReversible ? valueAt(reversed, path) : virtual;
    if (!jsonEquals(back, virtual)) {
      newVirtual = back;
      virtualRoot = withValueAt(virtualRoot, path, back);
      if (!isHostOwned) {
        newHost = host;
        hostRoot = withValueAt(hostRoot, path, host);
      }
    }
    remember(section, path, [newVirtual, newHost], isHostOwned);
  }
  return {
    hostSubsets: valueAt(hostRoot, [SUBSETS]) ?? null,
    virtualSubsets: valueAt(virtualRoot, [SUBSETS]) ?? null,
    section,
  };
}

function remember(
  section: Map<string, SyncedEntry>,
  path: ConcretePath,
  [virtual, host]: readonly [JsonValue | undefined, JsonValue | undefined],
  isFromHost: boolean,
): void {
  if (virtual === undefined && host === undefined) return;
  section.set(pathHash(path), { virtual: valueHash(virtual), host: valueHash(host), isFromHost });
}

function isBelowSubsets(path: ConcretePath): boolean {
  return path[0] === SUBSETS;
}

/** Only the host changed at this path since the record was written, and not merely to what is wanted anyway. */
function isHostAhead(input: PathMergeInput, base: JsonObject, path: ConcretePath): boolean {
  const [virtual, host] = [valueAt(input.virtual, path), valueAt(input.host, path)];
  const wanted = valueAt(base, path);
  if (jsonEquals(host, wanted) || (virtual === undefined && wanted !== undefined)) return false;
  const entry = input.section?.get(pathHash(path));
  return valueHash(virtual) === entry?.virtual && valueHash(host) !== entry?.host;
}

/** The host owns this path: its value goes to the virtual side when it alone changed, or where the virtual side has none. */
function isOwnTaken({ virtual, host, section }: PathMergeInput, path: ConcretePath): boolean {
  const [ours, theirs] = [valueAt(virtual, path), valueAt(host, path)];
  if (section === undefined) return ours === undefined && theirs !== undefined;
  const entry = section.get(pathHash(path));
  return valueHash(ours) === entry?.virtual && valueHash(theirs) !== entry?.host;
}

/**
 * The host's own values in place of the desired ones. Addresses may have moved, so one is found by its ip; a new address is nowhere and
 * has no value of the host's own.
 */
function keepHostValues({ desired, host }: PathMergeInput, hostOwned: readonly ConcretePath[]): JsonObject {
  const placeOf = addressPlaces(host);
  let root: JsonValue = desired;
  for (const path of hostOwned) {
    const ip = addressOf(path, desired);
    const there =
      ip === undefined || addressOf(path, host) === ip ? path : path.with(3, placeOf(path.slice(0, 3), ip));
    root = withValueAt(root, path, valueAt(host, there));
  }
  return root as JsonObject; // no path is empty, so the root stays an object
}

/** The ip of the address that the path leads into; undefined where it does not, or leads to the ip itself. */
function addressOf(path: ConcretePath, root: JsonObject | undefined): JsonValue | undefined {
  const [, , list, index, member] = path;
  const isInAddress =
    typeof index === 'number' && member !== undefined && member !== 'ip' && list !== 'ports';
  return isInAddress ? valueAt(root, [...path.slice(0, 4), 'ip']) : undefined;
}

type PlaceOf = (list: ConcretePath, ip: JsonValue) => number;

/** Finds an address of the host copy by its ip; -1 where there is none. Every list is read once. */
function addressPlaces(host: JsonObject | undefined): PlaceOf {
  const lists = new Map<string, ReadonlyMap<JsonValue, number>>();
  const read = (list: ConcretePath): ReadonlyMap<JsonValue, number> => {
    const addresses = valueAt(host, list);
    const places = new Map<JsonValue, number>();
    for (const [at, address] of (Array.isArray(addresses) ? addresses : []).entries()) {
      const ip = isJsonObject(address) ? ownValue(address, 'ip') : undefined;
      if (ip !== undefined && !places.has(ip)) places.set(ip, at);
    }
    return places;
  };
  return (list, ip) => {
    const key = list.join('.');
    const places = lists.get(key) ?? read(list);
    lists.set(key, places);
    return places.get(ip) ?? -1;
  };
}

/** JSON.stringify of the segments tells an index from a key of the same digits. */
function pathHash(path: ConcretePath): string {
  return shortHash(JSON.stringify(path));
}

function valueHash(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(canonicalJson(value));
}
