/** Users of the API, their groups and extras, and what the folders know of scopes and keys. */

import { metadataOf } from '../kube/object.ts';
import type { SenderRules } from '../apiserver/http/client-limits.ts';
import { SERVER_USER, type UserInfo } from '../apiserver/user.ts';
import { isJsonObject, setOwn, type JsonObject, listField, objectField, text } from '../base/json.ts';

/** The API group of keys and tokens. */
export const MANAGEMENT_GROUP = 'management.platform.sh';
export const MANAGEMENT_VERSION = 'v1';
export const MANAGEMENT_API_VERSION = `${MANAGEMENT_GROUP}/${MANAGEMENT_VERSION}`;

/** Members see and change every key. */
export const ADMINISTRATORS = 'platform:admins';
/** Members may create TokenReviews and SubjectAccessReviews, as the webhooks of a cluster do. */
export const AUTH_DELEGATORS = 'platform:auth-delegators';
export const AUTHENTICATED = 'system:authenticated';

/** Writes that this program makes without a request. */
export const SERVER_WRITE = { user: SERVER_USER, manager: 'endpoint-syncer', isDryRun: false };

/** The common audience of tokens: the endpoints of all clusters. */
export const TOKEN_AUDIENCE = 'direct-cluster-endpoint.platform.sh';

/** The audience of tokens whose scope names the cluster; a name has no `/`. */
export function clusterAudience(cluster: string): string {
  return `${TOKEN_AUDIENCE}/${cluster}`;
}

/** Keys of `UserInfo.extra`: they travel through a cluster's webhooks from one review to the next. */
export const EXTRA = {
  /** UID of the OwnedAccessKey. */
  keyUid: 'platform.sh/key-uid',
  keyName: 'platform.sh/key-name',
  /** Token generation of the key when the token was issued. */
  generation: 'platform.sh/generation',
  /** Id of the secret that the caller sent, for a key that was rotated. */
  credentialId: 'platform.sh/credential-id',
  /** The scope as JSON; absent where there is no restriction. */
  scope: 'platform.sh/scope',
  /** Set: a user of the host cluster. */
  delegated: 'platform.sh/delegated',
} as const;

/** The host authorizes these users; a user of this API with the same name is another user. */
export function isDelegated({ extra }: UserInfo): boolean {
  return extra[EXTRA.delegated] !== undefined;
}

/** What the limits of the API server need to know of users. */
export const SENDER_RULES: SenderRules = {
  /** The key; a caller without one, such as one with a token of the host cluster, is counted by name. */
  clientOf: ({ name, extra }) => extra[EXTRA.keyUid]?.[0] ?? `user ${name}`,
  /** Administrators, and the webhooks of clusters, which have a key of this group or a token of the host cluster. */
  isPrivileged: ({ groups, extra }, path) => {
    if (groups.includes(ADMINISTRATORS) || groups.includes(AUTH_DELEGATORS)) return true;
    return extra[EXTRA.keyUid] === undefined && REVIEWS.has(path?.resource ?? '');
  },
};

const REVIEWS: ReadonlySet<string> = new Set(['subjectaccessreviews', 'tokenreviews']);

/** A team is a user name of its own, and the group of its members. */
const TEAM_PREFIX = 'platform:team:';

/** Annotation of an Event with the subject of the key that it is about. */
export const SUBJECT_ANNOTATION = 'platform.sh/subject';

export function subjectOfEvent(event: JsonObject): string {
  return text(objectField(metadataOf(event), 'annotations'), SUBJECT_ANNOTATION);
}

/** The Event is about a key of this user, or of a team of this user. */
export function isEventOf(event: JsonObject, user: UserInfo): boolean {
  const subject = subjectOfEvent(event);
  if (subject === '') return false;
  return subject === user.name || (subject.startsWith(TEAM_PREFIX) && user.groups.includes(subject));
}

/** The subject of a key: its user, its team or its subject, exactly one of which is set in a valid key. */
export function subjectOf(spec: JsonObject): Pick<UserInfo, 'name' | 'groups'> {
  const added = textsOf(spec, 'groups');
  const team = text(spec, 'team');
  if (team === '') return { name: text(spec, 'user') || text(spec, 'subject'), groups: added };
  const name = TEAM_PREFIX + team;
  return { name, groups: [name, ...added] };
}

/** The key belongs to this user, or to a team of this user. */
export function isOwnedBy(spec: JsonObject, user: UserInfo): boolean {
  const { name } = subjectOf(spec);
  const isTeam = text(spec, 'team') !== '';
  return name !== '' && (name === user.name || (isTeam && user.groups.includes(name)));
}

export function isAdministrator(user: UserInfo): boolean {
  return user.groups.includes(ADMINISTRATORS);
}

/** The scope among the extras; undefined: no restriction. Text that is not a scope allows nothing. */
export function scopeOf({ extra }: Pick<UserInfo, 'extra'>): Scope | undefined {
  const texts = extra[EXTRA.scope];
  if (texts === undefined) return undefined;
  try {
    const scope: unknown = texts.length === 1 ? JSON.parse(texts[0] ?? '') : undefined;
    return isJsonObject(scope) ? scope : {};
  } catch {
    return {};
  }
}

/** A list of strings; items of other types are dropped. */
export function textsOf(object: JsonObject, field: string): readonly string[] {
  return listField(object, field).filter((item) => typeof item === 'string');
}

/** The user in a review, which has its name in the field `name`. */
export function userOf(sent: JsonObject, name: 'user' | 'username'): UserInfo {
  const extra: Record<string, readonly string[]> = {};
  const values = objectField(sent, 'extra');
  for (const key of Object.keys(values)) setOwn(extra, key, textsOf(values, key));
  return { name: text(sent, name), uid: text(sent, 'uid'), groups: textsOf(sent, 'groups'), extra };
}

export function extraJson({ extra }: UserInfo): JsonObject {
  const sent: JsonObject = {};
  for (const [key, values] of Object.entries(extra)) setOwn(sent, key, [...values]);
  return sent;
}

// Types that the modules of the key and token API share.

/** `spec.scope` of a key or a token, as clients write it. Absent: no restriction; present: the union of its entries; `{}`: nothing. */
export interface Scope {
  readonly roles?: readonly ScopeRole[];
  readonly projects?: readonly { readonly project?: string }[];
  readonly spaces?: readonly { readonly project?: string; readonly space?: string }[];
  readonly virtualClusters?: readonly { readonly project?: string; readonly virtualCluster?: string }[];
  readonly clusters?: readonly { readonly cluster?: string }[];
  /** Deprecated, see {@link ScopeRule}. */
  readonly rules?: readonly ScopeRule[];
  /** Deprecated: the role `platformCLI`. */
  readonly allowPlatformCli?: boolean;
}

export interface ScopeRole {
  readonly role?: string;
  readonly projects?: readonly string[];
  readonly virtualClusters?: readonly string[];
}

/** Matches as a rule of a Kubernetes audit policy does; an absent list matches everything. */
export interface ScopeRule {
  readonly verbs?: readonly string[];
  readonly resources?: readonly {
    readonly group?: string;
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
  readonly resourceNames?: readonly string[];
  readonly namespaces?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly requestTargets?: readonly string[];
  readonly cluster?: string;
  readonly virtualClusters?: readonly { readonly name?: string; readonly namespace?: string }[];
}

export const TARGET_KINDS = ['Management', 'Cluster', 'ProjectSpace', 'ProjectVirtualCluster'] as const;

/** The API that a request is for, by the prefix of its URL. */
export interface RequestTarget {
  readonly kind: (typeof TARGET_KINDS)[number];
  /** Of the cluster, or of the project and the space or virtual cluster in it; in a pattern each may be `*`. */
  readonly names: readonly string[];
}

/** An OwnedAccessKey as authentication and tokens need it. Immutable: each change of the object creates a new record. */
export interface KeyRecord {
  readonly name: string;
  readonly uid: string;
  /** The user that the key authenticates, its scope among the extras. */
  readonly user: UserInfo;
  /** 0: it never expires. */
  readonly ttlMs: number;
  readonly isDisabled: boolean;
  /** It is being deleted without a grace period and has finalizers: requests that use it fail. */
  readonly isDeleted: boolean;
  /** It has data of an OpenID Connect login, which other keys of the user share through their parent. */
  readonly holdsOidcData?: boolean;
  /** Incremented when the rights of the key change; tokens of earlier generations are invalid. */
  readonly tokenGeneration: number;
  /** `untilMs`: the end of the overlap of a rotation, in epoch milliseconds; undefined: the current secret. */
  readonly credentials?: readonly { readonly id: string; readonly untilMs: number | undefined }[];
}

export const KEY_STATES = ['active', 'disabled', 'expired', 'deleting'] as const;
type KeyState = (typeof KEY_STATES)[number];

/** Requests that use a key are accepted only while it is `active`. */
export function keyState(key: KeyRecord, index: Pick<KeyIndex, 'expiresAtMs'>, nowMs: number): KeyState {
  if (key.isDeleted) return 'deleting';
  const endMs = index.expiresAtMs(key);
  if (endMs !== undefined && endMs <= nowMs) return 'expired';
  return key.isDisabled ? 'disabled' : 'active';
}

/** All keys, as the store has committed them. */
export interface KeyIndex {
  byUid(uid: string): KeyRecord | undefined;
  /** When the key expires, in epoch milliseconds; undefined: never. */
  expiresAtMs(record: KeyRecord): number | undefined;
  /** Before a key is accepted: rejects with `StoreError` while another replica may have revoked any key unnoticed, see `Projected.confirmed`. */
  confirmed(): Promise<void> | undefined;
  /** Waits until the index contains every write before this call. */
  catchUp(): Promise<void>;
}
