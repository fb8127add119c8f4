/** What this process knows of one key beyond both caches, in one {@link ObjectState}. A restart may lose it: it saves requests, restores values
 * exactly, and slows down fights. */

import { objectKey, type KubeObject, type ObjectKey, type StringMap } from '../../kube/object.ts';
import type { Lister } from '../../kube/types.ts';
import type { Observation } from './decide.ts';
import { jsonEquals, type JsonObject, type JsonValue } from '../../base/json.ts';
import { isBookkeepingAnnotation } from '../translate/bookkeeping.ts';
import { recordOf, shortHash } from '../translate/last-synced.ts';
import type { MergeMemory, ValueId } from '../translate/merge-metadata.ts';
import {
  Arrivals,
  noteDrift,
  type Contest,
  type DriftVerdict,
  type KeyContests,
  type Streak,
} from './guards.ts';
import type { Left } from './left.ts';

/** Both objects and the Service as of the last sync. The objects are those of the caches, so they take no memory of their own. */
interface SyncedPair {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
  /** Version of the Service at that time; '' for none. */
  readonly serviceVersion: string;
  readonly isUnserved: boolean;
  /** {@link ObjectState.renewals} when the reconcile began. */
  readonly renewals: number;
}

type SeenState = Pick<Observation, 'virtual' | 'host' | 'service' | 'isUnserved'>;

/** What tells the values of this process from those of others: hashes prove it, so it outlasts a restore of either cluster. */
interface LastSync {
  readonly uid: string | undefined;
  /** Both objects when they were in step last; not those of `synced` while something of another syncer is left in the virtual object. */
  readonly agreed: MergeMemory['agreed'];
  /** That the copy had when they were, and since then, before another syncer replaced them; the latest first. */
  readonly records: readonly string[];
}

/** A host object that is being deleted. */
interface Termination {
  readonly uid: string | undefined;
  /** When this process learned of it. */
  readonly sinceMs: number;
  /** It is the copy, and another client deletes it. */
  readonly isByOthers: boolean;
  isReported: boolean;
}

/** A value that this process has given back to the host. */
interface Correction {
  /** When it was about to be written. */
  readonly atMs: number;
  readonly key: string;
  /** The virtual object had an echo of the key when it was seen last. */
  readonly isEchoed: boolean;
}

/** The reason of what is left where the host's admission has changed what was written, which is a change of the host like any other. */
export const ALTERED = 'the host has changed what was written';

/** Another syncer copies a record back within moments of its write. */
const RECORDS_MAX = 4;
/** Usually, another syncer copies a correction back sooner; later, the same value may be that of a user. */
const CORRECTED_MS = 10_000;
/** Others choose the names of the keys. The last ones are kept. */
const CORRECTIONS_MAX = 256;

export class ObjectState {
  /** Undefined: this process has not synced the pair, or its versions may have other content after a restore. */
  synced: SyncedPair | undefined;
  /** How often something else has changed that the copy is made from: a reconcile that runs meanwhile may not have seen it. */
  renewals = 0;
  /** When the last reconcile began. */
  renewalsSeen = 0;
  /** Unlike `synced`, it outlasts a deletion of the copy that is not this process's wish, or that another copy follows. */
  isCopied = false;
  lastSynced: LastSync | undefined;
  /** Hashes of the records that the copy had before the last writes of this process, which may have kept them; the last one at the end. */
  formerRecords: readonly string[] = [];
  corrections: ReadonlyMap<ValueId, Correction> = NO_CORRECTIONS;
  /** What the last sync has left to do; undefined: nothing. */
  left: Left | undefined;
  contest: Contest | undefined;
  keyContests: KeyContests = NO_CONTESTS;
  deletions: Streak | undefined;
  termination: Termination | undefined;
  /** The copy of an object that is gone, and since when vCluster has had the time to delete it. */
  leftToVcluster: { readonly uid: string | undefined; readonly sinceMs: number } | undefined;
  /** Of a host Service with a selector, which prevents a take-over. */
  takeOverReads = 0;
  /** The host object exists, and is left out of the cache by the label selector of the kind. */
  isLeftOut = false;
  /** Uid of the object, and why it was ignored, as the last Event said. */
  reportedIgnored: string | undefined;
  knownArrivals: Arrivals | undefined;

  get arrivals(): Arrivals {
    return (this.knownArrivals ??= new Arrivals());
  }

  isUnchanged({ virtual, host, service, isUnserved }: SeenState): boolean {
    const { synced } = this;
    return (
      synced !== undefined &&
      this.left === undefined &&
      synced.renewals === this.renewals &&
      isSameVersion(synced.virtual, virtual) &&
      isSameVersion(synced.host, host) &&
      (service?.metadata.resourceVersion ?? '') === synced.serviceVersion &&
      isUnserved === synced.isUnserved
    );
  }

  begin(): void {
    this.renewalsSeen = this.renewals;
  }

  renew(): void {
    this.renewals += 1;
  }

  /** After a restore from a backup, the same versions may have other content. */
  forgetVersions(): void {
    this.synced = undefined;
    this.renew();
  }

  /** No user has changed the virtual object. What another syncer has copied back from the host copy does not count. */
  isVirtualUnchanged(virtual: KubeObject | undefined): boolean {
    if (this.synced === undefined || virtual === undefined) return false;
    return isSameVersion(this.synced.virtual, virtual) || isEchoOnly(this.synced, virtual);
  }

  isHostUnchanged(host: KubeObject | undefined): boolean {
    return this.synced !== undefined && isSameVersion(this.synced.host, host);
  }

  /** What this copy has is what the host's admission has made of our last write: no client has changed it since. */
  isAltered(host: KubeObject): boolean {
    return this.left?.reason === ALTERED && this.isHostUnchanged(host);
  }

  /** This process wrote or read this host object (same uid) as the copy, even if the bookkeeping was changed since. */
  isKnownCopy(host: KubeObject): boolean {
    return this.synced !== undefined && this.synced.host.metadata.uid === host.metadata.uid;
  }

  lastSync(virtual: KubeObject, nowMs: number): Omit<MergeMemory, 'restoresEchoes' | 'held'> {
    const last = lastSyncOf(this, virtual);
    if (last === undefined) return { agreed: undefined };
    const memory = { agreed: last.agreed, records: last.records, formerRecords: this.formerRecords };
    const corrections = lateCorrections(this, nowMs);
    if (corrections.length === 0) return memory;
    return { ...memory, corrected: new Set(corrections.map(([id]) => id)) };
  }

  /** Of the copy, before the pair is written: if that fails, the next attempt may find the copy without what this record proves. */
  noteRecord(virtual: KubeObject, record: string | undefined): void {
    const { agreed, records = [] } = lastSyncOf(this, virtual) ?? {};
    if (record === undefined || record === records[0]) return;
    const others = records.filter((one) => one !== record);
    setLastSync(this, virtual, { agreed, records: [record, ...others].slice(0, RECORDS_MAX) });
  }

  /** `record`: of the copy that is about to be written; undefined: another syncer has removed it with a change of the virtual object. */
  noteReplaced(record = this.lastSynced?.records[0]): void {
    if (record === undefined) return;
    const hash = shortHash(record);
    const others = this.formerRecords.filter((one) => one !== hash);
    this.formerRecords = [...others, hash].slice(-RECORDS_MAX);
  }

  /** `values`: which the host is about to get back, with their keys. */
  noteCorrected(values: ReadonlyMap<ValueId, string>, atMs: number): void {
    if (values.size === 0) return;
    const known = lateCorrections(this, atMs).filter(([id]) => !values.has(id));
    const corrections = [...values].map(([id, key]) => [id, { atMs, key, isEchoed: false }] as const);
    this.corrections = new Map([...known, ...corrections].slice(-CORRECTIONS_MAX));
  }

  /** `keys`: of which the virtual object has echoes. A correction of such a key stays known until there is none. */
  noteEchoes(keys: readonly string[], nowMs: number): void {
    if (this.corrections.size === 0) return;
    const known = lateCorrections(this, nowMs);
    this.corrections = new Map(known.map(([id, one]) => [id, { ...one, isEchoed: keys.includes(one.key) }]));
  }

  /** `isEchoed`: the virtual object keeps, for now, what another syncer has copied back. */
  remember(
    { virtual, host }: { readonly virtual: KubeObject; readonly host: KubeObject },
    { service, isUnserved }: Pick<Observation, 'service' | 'isUnserved'>,
    isEchoed: boolean,
  ): void {
    const { agreed, records = [] } = lastSyncOf(this, virtual) ?? {};
    const record = recordOf(host);
    const serviceVersion = service?.metadata.resourceVersion ?? '';
    this.synced = { virtual, host, serviceVersion, isUnserved, renewals: this.renewalsSeen };
    setLastSync(this, virtual, {
      agreed: isEchoed ? agreed : { virtual, host },
      records: record === undefined ? records : [record],
    });
    this.isCopied = true;
    this.reportedIgnored = undefined;
  }

  noteTermination(uid: string | undefined, sinceMs: number, isByOthers: boolean): Termination {
    const known = this.termination?.uid === uid ? this.termination : undefined;
    return (this.termination = known ?? { uid, sinceMs, isByOthers, isReported: false });
  }

  /** What the deletion means is decided from now on, however long a finalizer has delayed it. */
  noteEnd(nowMs: number): void {
    if (this.termination?.isByOthers === true && this.deletions !== undefined)
      this.deletions = { ...this.deletions, lastMs: nowMs };
    this.termination = undefined;
  }

  noteDrift(nowMs: number, overwritesMax?: number): DriftVerdict {
    const { contest, verdict } = noteDrift(this.contest, nowMs, overwritesMax);
    this.contest = contest;
    return verdict;
  }

  /** All of it, for the log and for tests. Of objects the uid and the version: they may hold secrets of users. */
  toJSON(): JsonObject {
    return printed(Object.fromEntries(Object.entries(this))) as JsonObject; // of an object
  }
}

function lateCorrections(
  { corrections }: ObjectState,
  nowMs: number,
): readonly (readonly [ValueId, Correction])[] {
  if (corrections.size === 0) return [];
  return [...corrections].filter(([, { atMs, isEchoed }]) => isEchoed || nowMs - atMs < CORRECTED_MS);
}

function lastSyncOf({ lastSynced }: ObjectState, { metadata: { uid } }: KubeObject): LastSync | undefined {
  return lastSynced?.uid === uid ? lastSynced : undefined;
}

function setLastSync(
  state: ObjectState,
  { metadata: { uid } }: KubeObject,
  last: Pick<LastSync, 'agreed' | 'records'>,
): void {
  if (state.lastSynced !== undefined && state.lastSynced.uid !== uid)
    Object.assign(state, { formerRecords: [], corrections: NO_CORRECTIONS });
  state.lastSynced = { uid, ...last };
}

function printed(value: unknown): JsonValue {
  if (value instanceof Map) return printed(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(printed);
  if (typeof value !== 'object' || value === null) return value as JsonValue; // only data is left
  if ('metadata' in value) return versionOf(value as KubeObject); // nothing else has metadata
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(entries.map(([name, member]) => [name, printed(member)]));
}

function versionOf({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): string {
  return `${uid}@${resourceVersion}`;
}

const NO_CONTESTS: KeyContests = new Map();
const NO_CORRECTIONS: ObjectState['corrections'] = new Map();

export class ObjectStates {
  readonly #states = new Map<ObjectKey, ObjectState>();
  /** The few objects that are refused because of a host Service, and its key: an index, so that an event of a Service finds them. */
  readonly #awaitedServices = new Map<ObjectKey, ObjectKey>();

  of(key: ObjectKey): ObjectState {
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = new ObjectState();
    this.#states.set(key, state);
    return state;
  }

  find(key: ObjectKey): ObjectState | undefined {
    return this.#states.get(key);
  }

  /** The object is refused until this host Service changes; undefined: it is not. */
  awaitService(key: ObjectKey, service: ObjectKey | undefined): void {
    if (service === undefined) this.#awaitedServices.delete(key);
    else this.#awaitedServices.set(key, service);
  }

  awaiting(service: ObjectKey): readonly ObjectKey[] {
    return [...this.#awaitedServices].flatMap(([key, awaited]) => (awaited === service ? [key] : []));
  }

  /** There is no copy of ours. What another syncer has copied back from the last one is no change of the user still. */
  release(key: ObjectKey): void {
    const { lastSynced, formerRecords, corrections } = this.of(key);
    this.forget(key);
    Object.assign(this.of(key), { lastSynced, formerRecords, corrections });
  }

  /** There is neither a virtual object nor a copy of ours. */
  forget(key: ObjectKey): void {
    this.#states.delete(key);
    this.#awaitedServices.delete(key);
  }
}

export function isSameVersion(a: KubeObject, b: KubeObject | undefined): boolean {
  return a.metadata.resourceVersion === b?.metadata.resourceVersion && a.metadata.uid === b?.metadata.uid;
}

function isEchoOnly(pair: SyncedPair, { metadata, ...content }: KubeObject): boolean {
  const { metadata: before, ...contentBefore } = pair.virtual;
  if (metadata.uid !== before.uid || !jsonEquals(content as JsonObject, contentBefore as JsonObject))
    return false;
  return (
    isMapEcho(metadata.annotations, [before.annotations, pair.host.metadata.annotations]) &&
    isMapEcho(metadata.labels, [before.labels, pair.host.metadata.labels])
  );
}

function isMapEcho(
  now: StringMap = {},
  [before = {}, host = {}]: readonly [StringMap | undefined, StringMap | undefined],
): boolean {
  const keys = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...keys].every(
    (key) => now[key] === before[key] || isBookkeepingAnnotation(key) || now[key] === host[key],
  );
}

/** The object of the cache, where that is the same: a second one would take memory for as long as the pair exists. */
export function cachedAs(cache: Pick<Lister, 'get'>, object: KubeObject): KubeObject {
  const cached = cache.get(objectKey(object));
  return cached !== undefined && isSameVersion(cached, object) ? cached : object;
}
