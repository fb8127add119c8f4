/**
 * Delegated authentication and authorization: the host cluster reviews tokens (TokenReview) and requests (SubjectAccessReview). Results are
 * cached for seconds, as a kube-apiserver caches those of its webhooks; a revoked right works until its result expires.
 */

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { AccessDecision, AccessRequest } from '../../../apiserver/request/authorizer.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { tooManyRequests } from '../../../apiserver/status.ts';
import type { Clock } from '../../../base/clock.ts';
import { TokenBuckets, type Rate } from '../../../base/token-bucket.ts';
import { networkOf } from '../../serving/request-limits.ts';
import type { HostRights } from '../authorizer.ts';
import { delegatedUser, hostUser } from './delegated-user.ts';

/** Reviews by the host cluster. Both reject with a `StatusError` 503 if the host does not respond. */
export interface HostReviews extends HostRights {
  /** Undefined: the host does not know the token. */
  reviewToken(token: string): Promise<UserInfo | undefined>;
}

export interface DelegatedAuthOptions {
  readonly host: HostReviews;
  readonly clock: Clock;
}

export const TOKEN_CACHE_MS = 10_000;
export const ALLOWED_CACHE_MS = 10_000;
export const DENIED_CACHE_MS = 5_000;
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

export class DelegatedAuth implements HostRights {
  readonly #options: DelegatedAuthOptions;
  readonly #users = new LRUCache<string, CachedResult<UserInfo | undefined>>({ max: CACHE_ENTRIES_MAX });
  /** Tokens that the host recognized before: their reviews do not count against the rate limit of their address. */
  readonly #known = new LRUCache<string, true>({ max: CACHE_ENTRIES_MAX });
  readonly #unknown: TokenBuckets;
  readonly #decisions = new LRUCache<string, CachedResult<AccessDecision>>({ max: CACHE_ENTRIES_MAX });

  constructor(options: DelegatedAuthOptions) {
    this.#options = options;
    this.#unknown = new TokenBuckets(UNKNOWN_TOKEN_RATE, options.clock);
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
      if (waitMs > 0) {
        const message = 'too many unknown tokens from this address, try again later';
        throw tooManyRequests(message, Math.max(1, Math.ceil(waitMs / 1000)));
      }
      const user = await this.#options.host.reviewToken(token);
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
      const decision = await this.#options.host.reviewAccess(asked, request);
      return [decision, decision.isAllowed ? ALLOWED_CACHE_MS : DENIED_CACHE_MS];
    });
  }

  /** Concurrent callers share one review; a failed review is not cached. */
  #cached<T>(
    cache: LRUCache<string, CachedResult<T>>,
    key: string,
    ask: () => Promise<readonly [answer: T, forMs: number]>,
  ): Promise<T> {
    const { clock } = this.#options;
    const known = cache.get(key);
    if (known && known.untilMs > clock.monotonicMs()) return known.answer;
    const asked = ask();
    const kept: CachedResult<T> = { untilMs: Infinity, answer: asked.then(([answer]) => answer) };
    cache.set(key, kept);
    asked.then(
      ([, forMs]) => (kept.untilMs = clock.monotonicMs() + forMs),
      () => {
        if (cache.peek(key) === kept) cache.delete(key);
      },
    );
    return kept.answer;
  }
}
