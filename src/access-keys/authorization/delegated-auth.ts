/**
 * Delegated authentication and authorization: the host cluster reviews tokens (TokenReview) and requests (SubjectAccessReview). Results are
 * cached for seconds, as a kube-apiserver caches those of its webhooks; a revoked right works until its result expires.
 */

import { networkOf, refuseAfter } from '../../apiserver/http/client-limits.ts';
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { AccessDecision, AccessRequest } from '../../apiserver/request/request-info.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { failure, StatusError } from '../../kube/status-error.ts';
import type { Clock } from '../../base/clock.ts';
import { TokenBuckets, type Rate } from '../../base/token-bucket.ts';
import { EXTRA, extraJson, userOf } from '../identity.ts';
import { TransportError, MalformedResponseError, type ClusterClient } from '../../kube/types.ts';
import { isJsonObject, type JsonObject, objectField, text } from '../../base/json.ts';

export type HostRights = Pick<DelegatedAuth, 'reviewAccess'>;

export type HostReviews = ReturnType<typeof hostReviews>;

const TOKEN_CACHE_MS = 10_000;
const ALLOWED_CACHE_MS = 10_000;
const DENIED_CACHE_MS = 5_000;
/** Results per cache; the least recently used is evicted. */
const CACHE_ENTRIES_MAX = 1_000;
/** Longer than any token of a cluster. */
const TOKEN_BYTES_MAX = 16 * 1024;

/** Reviews of unknown tokens by address: invalid tokens must not keep the host busy. */
export const UNKNOWN_TOKEN_RATE: Rate = { burst: 100, perSecond: 10 };

interface CachedResult<T> {
  /** On the monotonic clock, in milliseconds; Infinity while the review is in flight. */
  untilMs: number;
  readonly answer: Promise<T>;
}

export class DelegatedAuth {
  readonly #host: HostReviews;
  readonly #clock: Clock;
  readonly #users = new LRUCache<string, CachedResult<UserInfo | undefined>>({ max: CACHE_ENTRIES_MAX });
  /** Tokens that the host recognized before: their reviews do not count against the rate limit of their address. */
  readonly #known = new LRUCache<string, true>({ max: CACHE_ENTRIES_MAX });
  readonly #unknown: TokenBuckets;
  readonly #decisions = new LRUCache<string, CachedResult<AccessDecision>>({ max: CACHE_ENTRIES_MAX });

  constructor(host: HostReviews, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
    this.#unknown = new TokenBuckets(UNKNOWN_TOKEN_RATE, clock);
  }

  /**
   * The user of the token; undefined: the host does not know it. Throws a 429 `StatusError` for a new token from an address that sent too many
   * unknown tokens.
   */
  async authenticate(token: string, address = ''): Promise<UserInfo | undefined> {
    if (token === '' || token.length > TOKEN_BYTES_MAX) return undefined;
    // The cache holds no tokens, only hashes.
    const key = createHash('sha256').update(token).digest('base64');
    return this.#cached(this.#users, key, async () => {
      const network = networkOf(address);
      const isNew = !this.#known.has(key);
      const waitMs = isNew ? this.#unknown.take(network) : 0;
      refuseAfter(waitMs, 'too many unknown tokens from this address, try again later');
      const user = await this.#host.reviewToken(token);
      if (user) {
        this.#known.set(key, true);
        if (isNew) this.#unknown.giveBack(network);
      } else this.#known.delete(key);
      return [user && delegatedUser(user), TOKEN_CACHE_MS];
    });
  }

  async reviewAccess(user: UserInfo, request: AccessRequest): Promise<AccessDecision> {
    const asked = hostUser(user);
    const key = JSON.stringify([asked, request]);
    return this.#cached(this.#decisions, key, async () => {
      const decision = await this.#host.reviewAccess(asked, request);
      return [decision, decision.isAllowed ? ALLOWED_CACHE_MS : DENIED_CACHE_MS];
    });
  }

  /** Concurrent callers share one review; a failed review is not cached. */
  #cached<T>(
    cache: LRUCache<string, CachedResult<T>>,
    key: string,
    ask: () => Promise<readonly [answer: T, forMs: number]>,
  ): Promise<T> {
    const known = cache.get(key);
    if (known && known.untilMs > this.#clock.monotonicMs()) return known.answer;
    const asked = ask();
    const kept: CachedResult<T> = { untilMs: Infinity, answer: asked.then(([answer]) => answer) };
    cache.set(key, kept);
    asked.then(
      ([, forMs]) => (kept.untilMs = this.#clock.monotonicMs() + forMs),
      () => {
        if (cache.peek(key) === kept) cache.delete(key);
      },
    );
    return kept.answer;
  }
}

/** Prefixes of groups and extras that only this program sets. */
const OWN_GROUPS = 'platform:';
const OWN_EXTRAS = 'platform.sh/';

/**
 * The user as this API sees it, without groups that have a meaning here and that the host could assign. Undefined: the host authenticated the
 * user by one of our tokens, which is no credential for this API.
 */
function delegatedUser({ name, uid, groups, extra }: UserInfo): UserInfo | undefined {
  if (name === '' || Object.keys(extra).some((key) => key.startsWith(OWN_EXTRAS))) return undefined;
  return {
    name,
    uid,
    groups: groups.filter((group) => !group.startsWith(OWN_GROUPS)),
    extra: { ...extra, [EXTRA.delegated]: ['host'] },
  };
}

function hostUser({ extra, ...user }: UserInfo): UserInfo {
  const { [EXTRA.delegated]: _mark, ...own } = extra;
  return { ...user, extra: own };
}

// Reviews by the API server of the host cluster.

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const TIMEOUT_MS = 5_000;

/** Both reject with a `StatusError` 503 if the host does not respond. */
export function hostReviews(client: Pick<ClusterClient, 'request'>) {
  const review = async (path: string, kind: string, spec: JsonObject): Promise<JsonObject> => {
    const apiVersion = path.split('/').slice(2, 4).join('/');
    const body: JsonObject = { apiVersion, kind, metadata: {}, spec };
    try {
      const answer = await client.request('POST', path, body, {
        timeoutMs: TIMEOUT_MS,
        isSecret: path === TOKEN_REVIEWS,
      });
      if (isJsonObject(answer) && isJsonObject(answer['status'])) return answer['status'];
      throw new MalformedResponseError(`the response to a ${kind} has no status`);
    } catch (error) {
      throw unavailable(error, kind);
    }
  };
  return {
    /** Undefined: the host does not know the token. */
    reviewToken: async (token: string): Promise<UserInfo | undefined> => {
      const status = await review(TOKEN_REVIEWS, 'TokenReview', { token });
      return status['authenticated'] === true ? userOf(objectField(status, 'user'), 'username') : undefined;
    },
    reviewAccess: async (user: UserInfo, request: AccessRequest): Promise<AccessDecision> => {
      const status = await review(ACCESS_REVIEWS, 'SubjectAccessReview', accessSpec(user, request));
      return {
        isAllowed: status['allowed'] === true,
        isDenied: status['denied'] === true,
        reason: text(status, 'reason'),
      };
    },
  };
}

/** The caller gets a 503; the cause is for the log. */
function unavailable(error: unknown, kind: string): unknown {
  if (!(error instanceof StatusError) && !(error instanceof TransportError)) return error;
  const isRefused = error instanceof StatusError && (error.code === 401 || error.code === 403);
  const why = isRefused
    ? `this program may not create a ${kind} there; bind the ClusterRole system:auth-delegator`
    : 'try again';
  const message = `the host cluster did not review the request: ${why}`;
  const { status } = failure(503, 'ServiceUnavailable', message, { retryAfterSeconds: 1 });
  return new StatusError(status, { cause: error });
}

function accessSpec(user: UserInfo, request: AccessRequest): JsonObject {
  const { verb, group, version, resource, subresource, namespace, path } = request;
  const attributes: JsonObject =
    resource === ''
      ? { nonResourceAttributes: { verb, path } }
      : {
          resourceAttributes: { verb, group, version, resource, subresource, namespace, name: request.name },
        };
  return { user: user.name, uid: user.uid, groups: [...user.groups], extra: extraJson(user), ...attributes };
}
