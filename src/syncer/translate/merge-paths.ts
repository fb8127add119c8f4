/** Paths in a kind's content that do not simply follow the virtual object: two-way paths, and paths where the host keeps its own value.
 * A host change at a two-way path flows back only where the host differs from the translation at such paths alone, with lists of the
 * same length; any other difference is drift, and the virtual side wins everywhere. */

import { withCanonicalAddresses } from '../../base/ip-address.ts';
import {
  canonicalJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  type JsonObject,
  type JsonValue,
  valueAt,
} from '../../base/json.ts';
import { isWithin, withValueAt, outermost, trieOf } from './paths.ts';
import {
  arrivedEntry,
  entryWith,
  ENTRIES_MAX,
  type Arrival,
  shortHash,
  type SyncedEntry,
  type SyncedSection,
} from './last-synced.ts';
import { equalsExcept } from './content.ts';
import type { ConcretePath, ContentRules, ListElement } from './types.ts';

/** Of the three documents only the members that `content` names count. */
export interface PathMergeInput {
  readonly content: ContentRules;
  readonly virtual: JsonObject;
  readonly host: JsonObject | undefined;
  readonly desired: JsonObject;
  readonly twoWay: readonly ConcretePath[];
  readonly hostOwned: readonly ConcretePath[];
  readonly kept: readonly ConcretePath[];
  /** Undefined: no readable record. */
  readonly section: SyncedSection | undefined;
  readonly arrival: Arrival;
}

export interface PlannedPaths {
  /** `host` and `desired` as stored, where there are paths. */
  readonly input: PathMergeInput;
  /** `desired` with the host's own values where it keeps them. */
  readonly base: JsonObject;
  readonly paths: readonly PlannedPath[];
  readonly needsReverse: boolean;
  readonly isUncertain: boolean;
  /** `base` is what the virtual side translates to once it holds what flows back. */
  readonly isSettled: boolean;
}

interface PlannedPath {
  readonly path: ConcretePath;
  readonly isHostOwned: boolean;
  readonly isTaken: boolean;
  /** Both sides keep what they have, and so does the record. */
  readonly isKept: boolean;
}

export interface PathMerge {
  /** The members of the content, null where there is nothing. */
  readonly host: JsonObject;
  readonly virtual: JsonObject;
  readonly section: SyncedSection;
}

export function planPaths(given: PathMergeInput): PlannedPaths {
  const { content } = given;
  const inContent = (paths: readonly ConcretePath[], ...others: readonly (readonly ConcretePath[])[]) => {
    const found = paths.filter(([member]) => content.members.includes(String(member)));
    return found.length === 0 ? found : outermost(found, others.flat());
  };
  const kept = inContent(given.kept);
  const hostOwned = inContent(given.hostOwned, kept);
  const twoWay = inContent(given.twoWay, kept, hostOwned);
  const claimable = content.claimedPaths?.(given.desired) ?? [];
  const claimed = inContent(claimable, kept, hostOwned, twoWay).filter((path) =>
    [given.desired, given.host].some((object) => valueAt(object, path) !== undefined),
  );
  if ([twoWay, hostOwned, kept, claimed].every(({ length }) => length === 0))
    return {
      input: given,
      base: given.desired,
      paths: [],
      needsReverse: false,
      isUncertain: false,
      isSettled: false,
    };
  // Values of a patch that no server stores would look like a change on the host.
  const input = {
    ...given,
    host: given.host && content.stored(given.host),
    desired: content.stored(given.desired),
  };
  const allocated = claimed.filter((path) => isAllocated(input, path));
  const base = keepHostValues(input, [...kept, ...hostOwned, ...allocated]);
  const isAligned =
    content.haveSameShape(input.virtual, input.desired) &&
    input.host !== undefined &&
    content.haveSameShape(input.host, input.desired);
  let isOnly: boolean | undefined;
  const isOnlyTwoWay = (): boolean =>
    (isOnly ??= isAligned && equalsExcept(base, input.host, trieOf(twoWay)));
  // The record of a path is kept even where a patch above it has failed.
  const below = [...given.twoWay, ...given.hostOwned, ...claimable, ...kept].filter((path) =>
    isWithin(path, kept),
  );
  const paths = [
    ...below.map((path) => ({ path, isHostOwned: false, isTaken: false, isKept: true })),
    ...twoWay.map((path) => ({
      path,
      isHostOwned: false,
      isKept: false,
      isTaken: input.section !== undefined && isHostAhead(input, base, path) && isOnlyTwoWay(),
    })),
    ...hostOwned.map((path) => ({
      path,
      isHostOwned: true,
      isKept: false,
      isTaken: isAligned && isOwnTaken(input, path),
    })),
    ...claimed
      .filter((path) => valueAt(input.desired, path) !== undefined)
      .map((path) => ({ path, isHostOwned: false, isTaken: false, isKept: false })),
  ];
  return {
    input,
    base,
    paths,
    needsReverse: paths.some(({ isTaken }) => isTaken),
    isUncertain: paths.some(({ path, isKept }) => !isKept && arrivedAt(input, path).isUncertain),
    isSettled: false,
  };
}

export function settledPaths(settled: PlannedPaths, before: PlannedPaths): PlannedPaths {
  const taken = new Map(
    before.paths.filter(({ isTaken }) => isTaken).map((one) => [pathHash(one.path), one]),
  );
  const others = settled.paths.filter(({ path }) => !taken.has(pathHash(path)));
  const paths = [...others.map((one) => ({ ...one, isTaken: false })), ...taken.values()];
  return { ...settled, paths, isSettled: true };
}

export function resolvePaths(planned: PlannedPaths, reversedHost: JsonObject | undefined): PathMerge {
  const { input, base, paths, isSettled } = planned;
  const { content } = input;
  const reversed = reversedHost && content.stored(reversedHost);
  const isReversible =
    reversed !== undefined && input.host !== undefined && content.haveSameShape(reversed, input.host);
  let [hostRoot, virtualRoot]: JsonValue[] = [base, input.virtual] as const;
  const section = new Map<string, SyncedEntry>();
  const unrecorded = unrecordedPaths(input);
  for (const { path, isHostOwned, isTaken, isKept } of paths) {
    const [virtual, host] = [valueAt(input.virtual, path), valueAt(input.host, path)];
    if (isKept) {
      const entry = input.section?.get(pathHash(path));
      if (entry !== undefined) section.set(pathHash(path), entry);
      else if (unrecorded.has(pathHash(path)))
        remember(section, { input, path, isHostOwned }, [virtual, host]);
      // Where a patch has failed on the way to the host, `base` has the host's value.
      if (isTaken) hostRoot = withValueAt(hostRoot, path, host);
      continue;
    }
    let [newVirtual, newHost] = [virtual, valueAt(base, path)];
    const back = isTaken && isReversible ? valueAt(reversed, path) : virtual;
    if (!jsonEquals(back, virtual)) {
      newVirtual = back;
      virtualRoot = withValueAt(virtualRoot, path, back);
      if (!isHostOwned && !isSettled) {
        newHost = host;
        hostRoot = withValueAt(hostRoot, path, host);
      }
    }
    remember(section, { input, path, isHostOwned }, [newVirtual, newHost]);
  }
  return {
    host: membersOf(hostRoot, content),
    virtual: membersOf(virtualRoot, content),
    section,
  };
}

/** Without a record the virtual side wins at two-way paths, and at claimed ones where it has a value. Where a patch has failed, that has to wait, and
 * still holds once there is a record. */
function unrecordedPaths({ section, host, twoWay, content, desired }: PathMergeInput): ReadonlySet<string> {
  if (section !== undefined || host === undefined) return new Set();
  const claimed = content.claimedPaths?.(desired) ?? [];
  const wanted = claimed.filter((path) => valueAt(desired, path) !== undefined);
  return new Set([...twoWay, ...wanted].map(pathHash));
}

function remember(
  section: Map<string, SyncedEntry>,
  {
    input,
    path,
    isHostOwned,
  }: { readonly input: PathMergeInput; readonly path: ConcretePath; readonly isHostOwned: boolean },
  [virtual, host]: readonly [JsonValue | undefined, JsonValue | undefined],
): void {
  // Of more, none is recorded.
  if (section.size > ENTRIES_MAX) return;
  const wanted = { virtual: valueHash(virtual), host: valueHash(host), isFromHost: isHostOwned };
  const before = valueHash(valueAt(input.virtual, path));
  const entry = entryWith(wanted, before, input.section?.get(pathHash(path)));
  if (entry !== undefined) section.set(pathHash(path), entry);
}

function arrivedAt({ virtual, section, arrival }: PathMergeInput, path: ConcretePath) {
  // Hashes are most of the work.
  const entry = section === undefined || section.size === 0 ? undefined : section.get(pathHash(path));
  const value = entry?.incoming === undefined ? undefined : valueHash(valueAt(virtual, path));
  return arrivedEntry(entry, value, arrival);
}

function membersOf(root: JsonValue, { members }: ContentRules): JsonObject {
  return Object.fromEntries(members.map((name) => [name, valueAt(root, [name]) ?? null]));
}

/** Only the host changed at this path since the record was written, and not merely to what is wanted anyway. */
function isHostAhead(input: PathMergeInput, base: JsonObject, path: ConcretePath): boolean {
  const [virtual, host] = [valueAt(input.virtual, path), valueAt(input.host, path)];
  const wanted = valueAt(base, path);
  if (jsonEquals(host, wanted) || (virtual === undefined && wanted !== undefined)) return false;
  const { entry, isDue } = arrivedAt(input, path);
  return isDue || (valueHash(virtual) === entry?.virtual && valueHash(host) !== entry?.host);
}

/** The host owns this path: its value goes to the virtual side when it alone changed, or where the virtual side has none. */
function isOwnTaken(input: PathMergeInput, path: ConcretePath): boolean {
  const { virtual, host, section } = input;
  const [ours, theirs] = [valueAt(virtual, path), valueAt(host, path)];
  if (section === undefined) return ours === undefined && theirs !== undefined;
  const { entry, isDue } = arrivedAt(input, path);
  return isDue || (valueHash(ours) === entry?.virtual && valueHash(theirs) !== entry?.host);
}

/** The virtual side wants nothing there, and nothing proves that this program wrote what the host has. */
function isAllocated({ desired, host, section }: PathMergeInput, path: ConcretePath): boolean {
  const theirs = valueAt(host, path);
  if (theirs === undefined || valueAt(desired, path) !== undefined) return false;
  return section?.get(pathHash(path))?.host !== valueHash(theirs);
}

/** Elements of lists may have moved, so one is found by what identifies it; a new one is not found, and has no value of the host's own. */
function keepHostValues(
  { content, desired, host }: PathMergeInput,
  hostOwned: readonly ConcretePath[],
): JsonObject {
  const placeOf = elementPlaces(host);
  let root: JsonValue = desired;
  for (const path of hostOwned) {
    const element = content.elementAt(path);
    const id = element && idOf(desired, path, element);
    const isMoved = element !== undefined && id !== undefined && idOf(host, path, element) !== id;
    const there = isMoved ? path.with(element.at, placeOf(path.slice(0, element.at), element, id)) : path;
    root = withValueAt(root, path, valueAt(host, there));
  }
  return root as JsonObject; // no path is empty, so the root stays an object
}

function idOf(
  root: JsonObject | undefined,
  path: ConcretePath,
  { at, idMember }: ListElement,
): string | undefined {
  const id = valueAt(root, [...path.slice(0, at + 1), idMember]);
  return id === undefined ? undefined : idText(id);
}

type PlaceOf = (list: ConcretePath, element: ListElement, id: string) => number;

/** Finds an element of the host copy by what identifies it; -1 where there is none. Every list is read once. */
function elementPlaces(host: JsonObject | undefined): PlaceOf {
  const lists = new Map<string, ReadonlyMap<string, number>>();
  const read = (list: ConcretePath, idMember: string): ReadonlyMap<string, number> => {
    const elements = valueAt(host, list);
    const places = new Map<string, number>();
    for (const [at, element] of (Array.isArray(elements) ? elements : []).entries()) {
      const id = isJsonObject(element) ? ownValue(element, idMember) : undefined;
      const text = id === undefined ? undefined : idText(id);
      if (text !== undefined && !places.has(text)) places.set(text, at);
    }
    return places;
  };
  return (list, { idMember }, id) => {
    const key = list.join('.');
    const places = lists.get(key) ?? read(list, idMember);
    lists.set(key, places);
    return places.get(id) ?? -1;
  };
}

/** An element is identified by its addresses, of which each side may have another notation. */
function idText(id: JsonValue): string {
  return canonicalJson(withCanonicalAddresses(id));
}

/** JSON.stringify of the segments tells an index from a key of the same digits. */
function pathHash(path: ConcretePath): string {
  return shortHash(JSON.stringify(path));
}

function valueHash(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(canonicalJson(value));
}
