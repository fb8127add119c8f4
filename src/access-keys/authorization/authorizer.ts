/**
 * Authorizes requests: the rights of the user, restricted by the scope of its credential. Depends on the UserInfo alone, so that a request
 * and a SubjectAccessReview of the same request take one code path.
 */

import {
  MANAGEMENT_GROUP,
  AUTH_DELEGATORS,
  AUTHENTICATED,
  EXTRA,
  isAdministrator,
  isEventOf,
  isOwnedBy,
  keyState,
  scopeOf,
  isDelegated,
  type KeyIndex,
  type KeyRecord,
  type RequestTarget,
} from '../identity.ts';
import type { AccessDecision, AccessRequest, Authorizer } from '../../apiserver/request/request-info.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import { type JsonObject, objectField } from '../../base/json.ts';
import type { HostRights } from './delegated-auth.ts';
import {
  type Grant,
  holdsRequest,
  matchGrants,
  reaches,
  DISCOVERY,
  isEvents,
  KEYS,
  CLIENT_REQUESTS,
  ORDINARY_REQUESTS,
  REVIEW_REQUESTS,
  targetOf,
} from './grants.ts';
import { grantsOf } from './scope-grants.ts';

export interface ManagementAuthorizerOptions {
  readonly index: KeyIndex;
  readonly clock: Clock;
  readonly activity: { recordUse(key: KeyRecord): void };
  /** Absent: tokens of the host cluster are not accepted. */
  readonly host?: HostRights | undefined;
}

/** `none`: the credential is not a key. */
type FoundKey = KeyRecord | 'missing' | 'none';

const ALLOWED: AccessDecision = { isAllowed: true, reason: '' };
const NO_OPINION: AccessDecision = { isAllowed: false, reason: '' };

const ENDED = {
  deleting: 'the access key no longer exists',
  disabled: 'the access key is disabled',
  expired: 'the access key has expired',
};

export class ManagementAuthorizer implements Authorizer {
  readonly #options: ManagementAuthorizerOptions;
  /** Parsed scopes: the user of a key is the same object until the key changes. */
  readonly #grants = new WeakMap<UserInfo, readonly Grant[] | 'unrestricted'>();

  constructor(options: ManagementAuthorizerOptions) {
    this.#options = options;
  }

  /** A request to this server. Requests below the prefix of a target other than reviews are answered with 404, so they need no rights here. */
  async authorize(user: UserInfo, request: AccessRequest): Promise<AccessDecision> {
    const decision = await this.decide(user, request);
    const isElsewhere = request.prefix !== '' && !isReview(request);
    const answer = isElsewhere && decision.isDenied !== true ? ALLOWED : decision;
    // A denied request does not extend the life of a key.
    if (answer.isAllowed) this.recordUse(user);
    return answer;
  }

  recordUse({ extra }: UserInfo): void {
    const key = this.#options.index.byUid(extra[EXTRA.keyUid]?.[0] ?? '');
    if (key) this.#options.activity.recordUse(key);
  }

  /**
   * Neither allowed nor denied means that this API has no opinion. Every scope includes discovery: a client that cannot read it never sends the
   * request whose denial names what the scope lacks.
   */
  async decide(user: UserInfo, request: AccessRequest): Promise<AccessDecision> {
    const target = targetOf(request.prefix);
    if (!target) return denied('the path names no cluster, space or virtual cluster');
    const key = await this.#keyOf(user);
    const problem = key === 'none' ? undefined : this.#problemOf(user, key);
    if (problem !== undefined) return denied(problem);
    const record = typeof key === 'string' ? undefined : key;
    const isDiscovery = DISCOVERY.some((pattern) => holdsRequest(pattern, request));
    for (const grants of isDiscovery ? [] : this.#restrictions(user, record)) {
      const { isAllowed, reason } = matchGrants(grants, request, target);
      if (!isAllowed) return denied(reason);
    }
    if (target.kind !== 'Management' && isUnverifiedAdmin(user, record)) return NO_OPINION;
    return this.#rights(user, request, target);
  }

  visibleTo(user: UserInfo, definition: ResourceDefinition): ((object: JsonObject) => boolean) | undefined {
    if (isDelegated(user) || isAdministrator(user)) return undefined;
    if (isEvents({ group: definition.group, resource: definition.plural }))
      return (event) => isEventOf(event, user);
    if (definition.group !== MANAGEMENT_GROUP || definition.plural !== KEYS) return undefined;
    return (object) => isOwnedBy(objectField(object, 'spec'), user);
  }

  reaches(user: UserInfo, target: RequestTarget): boolean {
    const grants = this.#grantsOfUser(user);
    return grants === 'unrestricted' || reaches(grants, target);
  }

  async #rights(user: UserInfo, request: AccessRequest, target: RequestTarget): Promise<AccessDecision> {
    const isElsewhere = target.kind !== 'Management';
    if (isDelegated(user)) {
      if (isElsewhere && !isReview(request)) return NO_OPINION;
      if (!isElsewhere && CLIENT_REQUESTS.some((pattern) => holdsRequest(pattern, request))) return ALLOWED;
      return (await this.#options.host?.reviewAccess(user, asKeyRequest(request))) ?? NO_OPINION;
    }
    // Other clusters have groups from other sources: only the extras of one of our keys prove that the groups are ours.
    if (isElsewhere && !isOurs(user)) return NO_OPINION;
    if (isAdministrator(user)) return ALLOWED;
    if (isReview(request) && user.groups.includes(AUTH_DELEGATORS)) return ALLOWED;
    if (isElsewhere || !user.groups.includes(AUTHENTICATED)) return NO_OPINION;
    return ORDINARY_REQUESTS.some((pattern) => holdsRequest(pattern, request)) ? ALLOWED : NO_OPINION;
  }

  async #keyOf({ extra }: UserInfo): Promise<FoundKey> {
    const uids = extra[EXTRA.keyUid];
    if (uids === undefined) return 'none';
    const uid = uids.length === 1 ? (uids[0] ?? '') : '';
    const { index } = this.#options;
    await index.confirmed();
    const known = index.byUid(uid);
    if (known) return known;
    await index.catchUp();
    return index.byUid(uid) ?? 'missing';
  }

  /** Why the key is no longer valid, although the user was authenticated with it before; undefined: it is valid. */
  #problemOf({ extra }: UserInfo, key: KeyRecord | 'missing'): string | undefined {
    const { index, clock } = this.#options;
    const nowMs = clock.now();
    if (key === 'missing') return ENDED.deleting;
    const state = keyState(key, index, nowMs);
    if (state !== 'active') return ENDED[state];
    // A cluster keeps the result of a TokenReview for a while. An unknown secret may be one that another replica has just created.
    const used = key.credentials?.find(({ id }) => id === extra[EXTRA.credentialId]?.[0]);
    if (used?.untilMs !== undefined && used.untilMs <= nowMs)
      return 'the secret of the access key was rotated';
    const generations = extra[EXTRA.generation];
    if (generations === undefined) return undefined;
    const isCurrent = generations.length === 1 && generations[0] === String(key.tokenGeneration);
    return isCurrent ? undefined : 'the access key has changed: request a new token';
  }

  /** The scope that the user carries, and that of the key, because a cluster may not have passed it on. */
  #restrictions(user: UserInfo, key: KeyRecord | undefined): (readonly Grant[])[] {
    const carried = this.#grantsOfUser(user);
    const own = key === undefined || key.user === user ? 'unrestricted' : this.#grantsOfUser(key.user);
    return [carried, own].filter((grants) => grants !== 'unrestricted');
  }

  #grantsOfUser(user: UserInfo): readonly Grant[] | 'unrestricted' {
    let grants = this.#grants.get(user);
    if (grants === undefined) {
      const scope = scopeOf(user);
      grants = scope === undefined ? 'unrestricted' : grantsOf(scope);
      this.#grants.set(user, grants);
    }
    return grants;
  }
}

/** The reviews that clusters send about their users: the requests that this API serves below the prefix of a target. */
function isReview(request: AccessRequest): boolean {
  return REVIEW_REQUESTS.some((pattern) => holdsRequest(pattern, request));
}

/**
 * The asking cluster says that the user is an administrator, but the key does not. The cluster may have other sources of users and allow
 * impersonation, so below a target only the key itself gives the rights of an administrator.
 */
function isUnverifiedAdmin(user: UserInfo, key: KeyRecord | undefined): boolean {
  return key !== undefined && isAdministrator(user) && !isAdministrator(key.user);
}

/** Events here are about keys: the right to read keys decides, not that to read the host's own Events. */
function asKeyRequest(request: AccessRequest): AccessRequest {
  if (!isEvents(request)) return request;
  return { ...request, group: MANAGEMENT_GROUP, resource: KEYS, namespace: '', name: '' };
}

function isOurs({ extra }: UserInfo): boolean {
  return extra[EXTRA.keyUid] !== undefined;
}

function denied(reason: string): AccessDecision {
  return { isAllowed: false, isDenied: true, reason };
}
