/**
 * Callers with a token of the host cluster: the host says who they are (TokenReview) and what they may do (SubjectAccessReview). Answers are
 * kept for seconds, as a kube-apiserver keeps those of its webhooks: that is how long a withdrawn right still works.
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

/** What is asked of the host cluster. Both reject with a `StatusError` 503 when the host does not answer. */
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
/** Answers at most; the least recently used go. */
const CACHE_ENTRIES_MAX = 1_000;
/** Longer than any token of a cluster, shorter than what a host would rather not be sent. */
const TOKEN_BYTES_MAX = 16 * 1024;

/** Questions about tokens that the host turned out not to know, by address: whoever is nobody must not keep the host busy. */
export const UNKNOWN_TOKEN_RATE: Rate = { burst: 100, perSecond: 10 };

interface Kept<T> {
  /** On the monotonic clock, in milliseconds; Infinity while the host is being asked. */
  untilMs: number;
  readonly answer: Promise<T>;
}

export class DelegatedAuth implements HostRights {
  readonly #options: DelegatedAuthOptions;
  readonly #users = new LRUCache<string, Kept<UserInfo | undefined>>({ max: CACHE_ENTRIES_MAX });
  /** Tokens that the host has known: not pushed out by those that it never did, and asked about whatever comes from their address. */
  readonly #known = new LRUCache<string, true>({ max: CACHE_ENTRIES_MAX });
  readonly #unknown: TokenBuckets;
  readonly #decisions = new LRUCache<string, Kept<AccessDecision>>({ max: CACHE_ENTRIES_MAX });

  constructor(options: DelegatedAuthOptions) {
    this.#options = options;
    this.#unknown = new TokenBuckets(UNKNOWN_TOKEN_RATE, options.clock);
  }

  /**
   * Who sent the token; undefined: nobody whom the host knows. Throws a 429 `StatusError` for a new token from an address that has sent too
   * many which the host did not know.
   */
  async authenticate(token: string, address = ''): Promise<UserInfo | undefined> {
    if (token === '' || token.length > TOKEN_BYTES_MAX) return undefined;
    // The cache must not be a place to find tokens in.
    const key = createHash('sha256').update(token).digest('base64');
    return this.#kept(this.#users, key, async () => {
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
    return this.#kept(this.#decisions, key, async () => {
      const decision = await this.#options.host.reviewAccess(asked, request);
      return [decision, decision.isAllowed ? ALLOWED_CACHE_MS : DENIED_CACHE_MS];
    });
  }

  /** One question at a time for the same thing; a question that failed is asked again. */
  #kept<T>(
    cache: LRUCache<string, Kept<T>>,
    key: string,
    ask: () => Promise<readonly [answer: T, forMs: number]>,
  ): Promise<T> {
    const { clock } = this.#options;
    const known = cache.get(key);
    if (known && known.untilMs > clock.monotonicMs()) return known.answer;
    const asked = ask();
    const kept: Kept<T> = { untilMs: Infinity, answer: asked.then(([answer]) => answer) };
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
