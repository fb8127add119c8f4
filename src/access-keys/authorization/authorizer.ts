/**
 * Who may do what with this API: the rights of the user, as far as the scope of its credential goes. Works from the UserInfo alone, so that
 * a request and a review of the same request by somebody else are one code path.
 */

import type { AccessDecision, AccessRequest, Authorizer } from '../../apiserver/request/authorizer.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../../apiserver/request/user.ts';
import { objectField } from '../../apiserver/validation/metadata.ts';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { AUTH_DELEGATORS, AUTHENTICATED, EXTRA, isAdministrator, isOwnedBy, scopeOf } from '../identity.ts';
import type { KeyIndex, KeyRecord, RequestTarget, Scope } from '../types.ts';
import { isDelegated } from './delegated/delegated-user.ts';
import type { Grant } from './scope/grants.ts';
import {
  DISCOVERY,
  KEYS,
  MANAGEMENT_GROUP,
  ORIENTATION,
  ORDINARY_REQUESTS,
  REVIEW_REQUESTS,
} from './roles.ts';
import { grantsOf } from './scope/scope-grants.ts';
import { holdsRequest, matchGrants, reaches } from './scope/scope-match.ts';
import { targetOf } from './target.ts';

/** Decides about users who came with a token of the host cluster. */
export interface HostRights {
  reviewAccess(user: UserInfo, request: AccessRequest): Promise<AccessDecision>;
}

export interface ManagementAuthorizerOptions {
  readonly index: KeyIndex;
  readonly clock: Clock;
  /** Absent: nobody comes with a token of the host cluster. */
  readonly host?: HostRights | undefined;
}

const ALLOWED: AccessDecision = { isAllowed: true, reason: '' };
const NO_OPINION: AccessDecision = { isAllowed: false, reason: '' };

export class ManagementAuthorizer implements Authorizer {
  readonly #options: ManagementAuthorizerOptions;
  /** Scopes taken apart, by what carries them: a key's user and scope stay the same objects until the key changes. */
  readonly #grants = new WeakMap<object, readonly Grant[] | 'unrestricted'>();

  constructor(options: ManagementAuthorizerOptions) {
    this.#options = options;
  }

  /** A request that has come to this server. What a target elsewhere may be asked for is for that target to say: here it is not found. */
  async authorize(user: UserInfo, request: AccessRequest): Promise<AccessDecision> {
    const decision = await this.decide(user, request);
    const isElsewhere = request.prefix !== '' && !isReview(request);
    return isElsewhere && decision.isDenied !== true ? ALLOWED : decision;
  }

  /**
   * May this user do this? Neither allowed nor denied: this API has no opinion. Discovery is within every scope: a client that cannot read it
   * never sends the request whose denial says what the scope lacks.
   */
  async decide(user: UserInfo, request: AccessRequest): Promise<AccessDecision> {
    const target = targetOf(request.prefix);
    if (!target) return denied('the path names neither a cluster nor a space nor a virtual cluster');
    const key = await this.#keyOf(user);
    const problem = key === undefined ? undefined : this.#problemOf(user, key);
    if (problem !== undefined) return denied(problem);
    const isDiscovery = DISCOVERY.some((pattern) => holdsRequest(pattern, request));
    for (const grants of isDiscovery ? [] : this.#restrictions(user, key === 'missing' ? undefined : key)) {
      const { isAllowed, reason } = matchGrants(grants, request, target);
      if (!isAllowed) return denied(reason);
    }
    if (target.kind !== 'Management' && isUnverifiedAdmin(user, key)) return NO_OPINION;
    return this.#rights(user, request, target);
  }

  visibleTo(user: UserInfo, definition: ResourceDefinition): ((object: JsonObject) => boolean) | undefined {
    if (definition.group !== MANAGEMENT_GROUP || definition.plural !== KEYS) return undefined;
    if (isDelegated(user) || isAdministrator(user)) return undefined;
    return (object) => isOwnedBy(objectField(object, 'spec'), user);
  }

  /** Does the user's credential reach anything of this target? */
  reaches(user: UserInfo, target: RequestTarget): boolean {
    const grants = this.#grantsOfUser(user);
    return grants === 'unrestricted' || reaches(grants, target);
  }

  async #rights(user: UserInfo, request: AccessRequest, target: RequestTarget): Promise<AccessDecision> {
    const isElsewhere = target.kind !== 'Management';
    if (isDelegated(user)) {
      if (isElsewhere && !isReview(request)) return NO_OPINION;
      if (!isElsewhere && ORIENTATION.some((pattern) => holdsRequest(pattern, request))) return ALLOWED;
      return (await this.#options.host?.reviewAccess(user, request)) ?? NO_OPINION;
    }
    // Elsewhere groups come from others too: only with one of our keys are they known to be ours.
    if (isElsewhere && !isOurs(user)) return NO_OPINION;
    if (isAdministrator(user)) return ALLOWED;
    if (isReview(request) && user.groups.includes(AUTH_DELEGATORS)) return ALLOWED;
    if (isElsewhere || !user.groups.includes(AUTHENTICATED)) return NO_OPINION;
    return ORDINARY_REQUESTS.some((pattern) => holdsRequest(pattern, request)) ? ALLOWED : NO_OPINION;
  }

  /** The key that the user came with; undefined: with none. */
  async #keyOf({ extra }: UserInfo): Promise<KeyRecord | 'missing' | undefined> {
    const uids = extra[EXTRA.keyUid];
    if (uids === undefined) return undefined;
    const uid = uids.length === 1 ? (uids[0] ?? '') : '';
    const { index } = this.#options;
    const known = index.byUid(uid);
    if (known) return known;
    await index.catchUp();
    return index.byUid(uid) ?? 'missing';
  }

  /** Why the key is good for nothing now, whatever it was when the user was authenticated. */
  #problemOf({ extra }: UserInfo, key: KeyRecord | 'missing'): string | undefined {
    if (key === 'missing' || key.isDeleted) return 'the access key does not exist any more';
    if (key.isDisabled) return 'the access key is disabled';
    const expiresAtMs = this.#options.index.expiresAtMs(key);
    if (expiresAtMs !== undefined && expiresAtMs <= this.#options.clock.now()) {
      return 'the access key has expired';
    }
    const generations = extra[EXTRA.generation];
    if (generations === undefined) return undefined;
    const isCurrent = generations.length === 1 && generations[0] === String(key.tokenGeneration);
    return isCurrent ? undefined : 'the access key has changed: a new token is needed';
  }

  /** What restricts the user: the scope that it carries, and the key's own where a cluster has not handed it on. */
  #restrictions(user: UserInfo, key: KeyRecord | undefined): (readonly Grant[])[] {
    const carried = this.#grantsOfUser(user);
    const own =
      key?.scope === undefined || key.user === user ? 'unrestricted' : this.#grantsOfScope(key.scope);
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

  #grantsOfScope(scope: Scope): readonly Grant[] | 'unrestricted' {
    const known = this.#grants.get(scope);
    if (known !== undefined) return known;
    const grants = grantsOf(scope);
    this.#grants.set(scope, grants);
    return grants;
  }
}

/** The reviews by which a cluster asks about others: what this API serves for targets elsewhere. */
export function isReview(request: AccessRequest): boolean {
  return REVIEW_REQUESTS.some((pattern) => holdsRequest(pattern, request));
}

/**
 * An administrator only by the word of the asking cluster, which may have other sources of users and may let users impersonate others. There
 * the rights of an administrator come from the key itself.
 */
function isUnverifiedAdmin(user: UserInfo, key: KeyRecord | 'missing' | undefined): boolean {
  if (key === undefined || key === 'missing') return false;
  return isAdministrator(user) && !isAdministrator(key.user);
}

function isOurs({ extra }: UserInfo): boolean {
  return extra[EXTRA.keyUid] !== undefined;
}

function denied(reason: string): AccessDecision {
  return { isAllowed: false, isDenied: true, reason };
}
