/**
 * All keys in memory, indexed for authentication, tokens and the collector: parsed once per change, not once per request.
 *
 * INVARIANT: the index is a projection inside the commits of the store. When a write has been acknowledged, no request at this process finds the key
 * as it was before. The store also decides whether the index may be trusted: see `Projected.confirmed`.
 */

import { isDeepStrictEqual } from 'node:util';
import { isTimeMs, metadataOf } from '../../kube/object.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import {
  isJsonObject,
  type JsonObject,
  listField,
  numberField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import type { Projected, Projection, Store, StoredEntry, StoreKey } from '../../apiserver/storage/store.ts';
import {
  AUTHENTICATED,
  EXTRA,
  subjectOf,
  type KeyIndex as KeyIndexContract,
  type KeyRecord,
} from '../identity.ts';
import { keyBytes, TTL_SECONDS_MAX } from './key-validation.ts';
import { credentialsOf, endOf, tokenGenerationOf, type Lifetime } from './stored-key.ts';
import type { StoredCredential } from '../credentials/access-key.ts';
import type { KeyActivity } from './key-activity.ts';
import { KEY_STORAGE } from './key-kind.ts';

const NO_KEYS: readonly IndexedKey[] = [];

export class KeyIndex implements KeyIndexContract, Projection {
  readonly #store: Store;
  readonly #activity: Pick<KeyActivity, 'lastMs'>;
  readonly #listeners: ((change: KeyChange) => void)[] = [];
  readonly #byUid = new Map<string, IndexedKey>();
  readonly #byName = new Map<string, IndexedKey>();
  readonly #byCredential: KeySets = new Map();
  readonly #byOwner: KeySets = new Map();
  readonly #byUser: KeySets = new Map();
  #projected: Projected | undefined;

  /** `activity`: the last use of a key that is recorded outside the object. */
  constructor(store: Store, activity: Pick<KeyActivity, 'lastMs'>) {
    this.#store = store;
    this.#activity = activity;
  }

  /** The index is complete when it returns. */
  start(): void {
    this.#projected = this.#store.project(KEY_STORAGE, this);
  }

  stop(): void {
    this.#projected?.close();
  }

  /** Called after every change, in the turn of its commit. Must not throw. */
  onChange(listener: (change: KeyChange) => void): void {
    this.#listeners.push(listener);
  }

  get size(): number {
    return this.#byUid.size;
  }

  all(): Iterable<IndexedKey> {
    return this.#byUid.values();
  }

  byUid(uid: string): IndexedKey | undefined {
    return this.#byUid.get(uid);
  }

  byName(name: string): IndexedKey | undefined {
    return this.#byName.get(name);
  }

  /**
   * Keys with this credential id: one, unless two replicas accepted the same supplied key at the same time. The oldest first, so that all
   * replicas choose the same.
   */
  byCredential(id: string): readonly IndexedKey[] {
    const keys = this.#byCredential.get(id);
    return keys === undefined ? NO_KEYS : [...keys].sort(olderFirst);
  }

  dependentsOf(uid: string): Iterable<IndexedKey> {
    return this.#byOwner.get(uid) ?? NO_KEYS;
  }

  ofUser(user: string): ReadonlySet<IndexedKey> {
    return this.#byUser.get(user) ?? new Set();
  }

  /** A deleted key has expired; a key that is being deleted expires with its grace period at the latest. */
  expiresAtMs(record: KeyRecord): number | undefined {
    const key = this.byUid(record.uid);
    if (!key) return 0;
    const endMs = endOf(key, this.activityMs(key));
    return key.deletion ? Math.min(key.deletion.dueMs, endMs ?? Number.POSITIVE_INFINITY) : endMs;
  }

  /** The last use, recorded in the object or outside of it, whichever is later. */
  activityMs(key: IndexedKey): number | undefined {
    const beside = this.#activity.lastMs(key.uid);
    const { writtenActivityMs: written } = key;
    return beside === undefined || written === undefined ? (beside ?? written) : Math.max(beside, written);
  }

  confirmed(): Promise<void> | undefined {
    return this.#projected?.confirmed();
  }

  async catchUp(): Promise<void> {
    await this.#projected?.catchUp();
  }

  /** Since the store last responded; 0 while it responds. */
  get unconfirmedMs(): number {
    return this.#projected?.unconfirmedMs ?? 0;
  }

  reset(entries: readonly StoredEntry[]): void {
    const names = new Set(entries.map(({ key }) => key.name));
    for (const key of this.#byName.values()) if (!names.has(key.name)) this.#set(key, undefined);
    for (const entry of entries) {
      const key = indexedKey(entry);
      const known = this.#byName.get(key.name);
      if (!isDeepStrictEqual(known, key)) this.#set(known, key);
    }
  }

  changed({ name }: StoreKey, entry: StoredEntry | undefined): void {
    this.#set(this.#byName.get(name), entry && indexedKey(entry));
  }

  #set(before: IndexedKey | undefined, now: IndexedKey | undefined): void {
    if (before && now && before.uid !== now.uid) {
      // An object that was recreated with the same name is another key.
      this.#set(before, undefined);
      this.#set(undefined, now);
      return;
    }
    if (before) this.#forget(before);
    if (now) this.#add(now);
    if (before || now) for (const listener of this.#listeners) listener({ now, before });
  }

  #add(key: IndexedKey): void {
    this.#byUid.set(key.uid, key);
    this.#byName.set(key.name, key);
    for (const [sets, name] of this.#placesOf(key)) sets.set(name, (sets.get(name) ?? new Set()).add(key));
  }

  #forget(key: IndexedKey): void {
    this.#byUid.delete(key.uid);
    this.#byName.delete(key.name);
    for (const [sets, name] of this.#placesOf(key)) {
      const keys = sets.get(name);
      if (keys?.delete(key) && keys.size === 0) sets.delete(name);
    }
  }

  #placesOf({ credentials, user, owners }: IndexedKey): (readonly [sets: KeySets, name: string])[] {
    return [
      ...credentials.map(({ id }) => [this.#byCredential, id] as const),
      ...owners.map(({ uid }) => [this.#byOwner, uid] as const),
      [this.#byUser, user.name],
    ];
  }
}

type KeySets = Map<string, Set<IndexedKey>>;

function olderFirst(a: IndexedKey, b: IndexedKey): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1);
}

// A stored key as authentication and the collector need it.

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly isBlocking: boolean;
}

interface Deletion {
  /** Epoch milliseconds: the object is not removed before. */
  readonly dueMs: number;
  readonly hasGrace: boolean;
}

/** Immutable: each change of the object creates a new record. */
export interface IndexedKey extends KeyRecord, Lifetime {
  /** What is wrong with the stored object; requests that use such a key fail. */
  readonly problem: string | undefined;
  readonly revision: number;
  readonly bytes: number;
  /** The newest first; several after a rotation. */
  readonly credentials: readonly IndexedCredential[];
  /** `status.lastActivity` of the stored object. */
  readonly writtenActivityMs: number | undefined;
  readonly deletion: Deletion | undefined;
  readonly finalizers: readonly string[];
  readonly owners: readonly OwnerReference[];
}

export interface IndexedCredential {
  readonly id: string;
  readonly digest: Buffer;
  /** Epoch milliseconds: the end of its overlap. Undefined: it is the current secret. */
  readonly untilMs: number | undefined;
  /** The user of the key; for a rotated key with the id of the secret among the extras. */
  readonly user: UserInfo;
}

/** A key after and before a change; undefined: it did not exist. */
export interface KeyChange {
  readonly now: IndexedKey | undefined;
  readonly before: IndexedKey | undefined;
}

export function indexedKey({ key, value, revision }: StoredEntry): IndexedKey {
  const metadata = metadataOf(value);
  const spec = objectField(value, 'spec');
  const deletion = deletionOf(metadata);
  const tokenGeneration = tokenGenerationOf(value);
  const user = userOf(value, tokenGeneration);
  const createdMs = Date.parse(text(metadata, 'creationTimestamp'));
  const ttlMs = numberField(spec, 'ttl') * 1000;
  const problem = lifetimeProblem(createdMs, ttlMs);
  return {
    name: key.name,
    uid: text(metadata, 'uid'),
    user,
    isDisabled: spec['disabled'] === true || problem !== undefined,
    problem,
    isDeleted: deletion?.hasGrace === false,
    holdsOidcData: holdsOidcData(value),
    tokenGeneration,
    revision,
    bytes: keyBytes(value),
    credentials: indexedCredentials(value, user),
    createdMs: problem === undefined ? createdMs : 0,
    ttlMs: problem === undefined ? ttlMs : 0,
    isAfterActivity: spec['ttlAfterLastActivity'] === true,
    writtenActivityMs: timeMs(text(objectField(value, 'status'), 'lastActivity')),
    deletion,
    finalizers: listField(metadata, 'finalizers').filter((name) => typeof name === 'string'),
    owners: objectList(metadata, 'ownerReferences').map(ownerOf),
  };
}

/** The API stores no such key. Requests that use it fail, and no time is computed from it. */
function lifetimeProblem(createdMs: number, ttlMs: number): string | undefined {
  if (!isTimeMs(createdMs)) return 'metadata.creationTimestamp is not a time';
  return ttlMs >= 0 && ttlMs <= TTL_SECONDS_MAX * 1000
    ? undefined
    : `spec.ttl is not a number from 0 to ${TTL_SECONDS_MAX}`;
}

function indexedCredentials(value: JsonObject, user: UserInfo): IndexedCredential[] {
  const { current, replaced } = credentialsOf(value);
  const indexed = ({ id, digest }: StoredCredential, untilMs: number | undefined): IndexedCredential => ({
    id,
    digest: Buffer.from(digest, 'base64'),
    untilMs,
    user: replaced.length === 0 ? user : { ...user, extra: { ...user.extra, [EXTRA.credentialId]: [id] } },
  });
  return [
    indexed(current, undefined),
    ...replaced.map((credential) => indexed(credential, credential.untilMs)),
  ];
}

function userOf(value: JsonObject, tokenGeneration: number): UserInfo {
  const spec = objectField(value, 'spec');
  const metadata = metadataOf(value);
  const { name, groups } = subjectOf(spec);
  const { scope } = spec;
  return {
    name,
    uid: '',
    groups: [...new Set([...groups, AUTHENTICATED])],
    extra: {
      [EXTRA.keyUid]: [text(metadata, 'uid')],
      [EXTRA.keyName]: [text(metadata, 'name')],
      [EXTRA.generation]: [String(tokenGeneration)],
      ...(isJsonObject(scope) ? { [EXTRA.scope]: [JSON.stringify(scope)] } : {}),
    },
  };
}

function holdsOidcData(value: JsonObject): boolean {
  const { oidcLogin, oidcProvider } = objectField(value, 'spec');
  const sealed = Object.keys(objectField(value, 'sealed'));
  const isFilled = (part: unknown): boolean => isJsonObject(part) && Object.keys(part).length > 0;
  return (
    isFilled(oidcLogin) || isFilled(oidcProvider) || sealed.some((name) => name.startsWith('oidcLogin.'))
  );
}

function deletionOf(metadata: JsonObject): Deletion | undefined {
  const dueMs = timeMs(text(metadata, 'deletionTimestamp'));
  if (dueMs === undefined) return undefined;
  return { dueMs, hasGrace: numberField(metadata, 'deletionGracePeriodSeconds') > 0 };
}

function ownerOf(reference: JsonObject): OwnerReference {
  return {
    apiVersion: text(reference, 'apiVersion'),
    kind: text(reference, 'kind'),
    name: text(reference, 'name'),
    uid: text(reference, 'uid'),
    isBlocking: reference['blockOwnerDeletion'] === true,
  };
}

/** Undefined also for a text that is no time. */
function timeMs(time: string): number | undefined {
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? undefined : ms;
}
