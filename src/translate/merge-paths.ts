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

export function planPaths(input: PathMergeInput): PlannedPaths {
  const hostOwned = outermost(input.hostOwned.filter(isBelowSubsets), []);
  const twoWay = outermost(input.twoWay.filter(isBelowSubsets), hostOwned);
  const base = keepHostValues(input, hostOwned);
  if (twoWay.length === 0 && hostOwned.length === 0) return { input, base, paths: [], needsReverse: false };
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

/** `reversed` is the host copy translated and patched back; undefined where nothing is taken. */
export function resolvePaths(planned: PlannedPaths, reversed: JsonObject | undefined): PathMerge {
  const { input, base, paths } = planned;
  const isReversible = reversed !== undefined && haveSameShape(reversed, input.host);
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

/** Paths that are not below another one of the list or of `others`, each once. */
function outermost(paths: readonly ConcretePath[], others: readonly ConcretePath[]): readonly ConcretePath[] {
  const trie = trieOf(others);
  return paths
    .toSorted((a, b) => a.length - b.length)
    .filter((path) => !isCovered(trie, path) && insert(trie, path));
}

/** Members and elements by segment; `undefined` below a segment: a path ends there. */
type Trie = Map<string | number, Trie | undefined>;

function trieOf(paths: readonly ConcretePath[]): Trie {
  const trie: Trie = new Map();
  for (const path of paths) insert(trie, path);
  return trie;
}

function insert(trie: Trie, path: ConcretePath): true {
  let node = trie;
  for (const [i, segment] of path.entries()) {
    if (i === path.length - 1) {
      node.set(segment, undefined);
      return true;
    }
    const next = node.get(segment) ?? new Map<string | number, Trie | undefined>();
    node.set(segment, next);
    node = next;
  }
  return true;
}

function isCovered(trie: Trie, path: ConcretePath): boolean {
  let node: Trie | undefined = trie;
  for (const segment of path) {
    if (!node.has(segment)) return false;
    node = node.get(segment);
    if (node === undefined) return true;
  }
  return false;
}

/** Equal but for values at the paths of the trie. Empty lists, null and nothing are the same, a port without a protocol is TCP. */
function equalsExcept(a: JsonValue | undefined, b: JsonValue | undefined, except: Trie): boolean {
  if (except.size === 0) return storedEquals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => sameBut(element, b[i], [except, i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return storedEquals(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  // Only subsets are compared of whole objects: the trie of a root holds nothing else.
  const compared = except.has(SUBSETS) ? [SUBSETS] : keys;
  for (const key of compared) {
    if (!sameBut(ownValue(a, key), ownValue(b, key), [except, key])) return false;
  }
  return true;
}

function sameBut(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  [except, segment]: readonly [Trie, string | number],
): boolean {
  if (!except.has(segment)) return storedEquals(a, b);
  const below = except.get(segment);
  return below === undefined || equalsExcept(a, b, below);
}

function storedEquals(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => storedEquals(element, b[i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return a === b;
  const isPort = Object.hasOwn(a, 'port') && Object.hasOwn(b, 'port');
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => {
    const [x, y] = [ownValue(a, key), ownValue(b, key)];
    return isPort && key === 'protocol' ? (x ?? 'TCP') === (y ?? 'TCP') : storedEquals(x, y);
  });
}

function isNothing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** The same number of subsets, and in each of addresses and ports. */
function haveSameShape(a: JsonObject | undefined, b: JsonObject | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  const [ours, theirs] = [listAt(a, SUBSETS), listAt(b, SUBSETS)];
  return (
    ours.length === theirs.length &&
    ours.every((subset, i) =>
      ['addresses', 'notReadyAddresses', 'ports'].every(
        (list) => listAt(subset, list).length === listAt(theirs[i], list).length,
      ),
    )
  );
}

function listAt(value: JsonValue | undefined, key: string): readonly JsonValue[] {
  const list = isJsonObject(value) ? ownValue(value, key) : undefined;
  return Array.isArray(list) ? list : [];
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

function keepHostValues({ desired, host }: PathMergeInput, hostOwned: readonly ConcretePath[]): JsonObject {
  let root: JsonValue = desired;
  for (const path of hostOwned) {
    root = withValueAt(root, path, valueAt(host, counterpart(path, desired, host)));
  }
  return root as JsonObject; // no path is empty, so the root stays an object
}

/**
 * Where the host keeps the value that belongs to `path`: addresses may have moved, so an address is found by its ip. Undefined
 * elements are never found: a new address has no value of the host's own.
 */
function counterpart(path: ConcretePath, desired: JsonObject, host: JsonObject | undefined): ConcretePath {
  const [subsets, subset, list, index, member] = path;
  if (typeof index !== 'number' || member === undefined || member === 'ip' || list === 'ports') return path;
  const ipAt = (root: JsonValue | undefined, at: number): JsonValue | undefined =>
    valueAt(root, [subsets ?? SUBSETS, subset ?? 0, list ?? '', at, 'ip']);
  const ip = ipAt(desired, index);
  if (ip === undefined || ipAt(host, index) === ip) return path;
  const addresses = valueAt(host, path.slice(0, 3));
  const moved = Array.isArray(addresses) ? addresses.findIndex((_, at) => ipAt(host, at) === ip) : -1;
  return path.with(3, moved);
}

/** JSON.stringify of the segments tells an index from a key of the same digits. */
function pathHash(path: ConcretePath): string {
  return shortHash(JSON.stringify(path));
}

function valueHash(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(canonicalJson(value));
}
