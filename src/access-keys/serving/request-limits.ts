/** Rate limits by key and by address. */

import type { Throttle } from '../../apiserver/http/api-server.ts';
import type { ResourcePath } from '../../apiserver/request/request-info.ts';
import { tooManyRequests } from '../../apiserver/status.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import { TokenBuckets, type Rate } from '../../base/token-bucket.ts';
import { ADMINISTRATORS, AUTH_DELEGATORS, EXTRA } from '../identity.ts';

export interface RequestRates {
  /**
   * By address. Authenticated requests are not affected, so that one client does not lock out another behind the same address. A guess cannot
   * succeed without a limit either; the limit saves work and log volume.
   */
  readonly failedAuthentications: Rate;
  /** By key; a caller without a key, such as one with a token of the host cluster, by user. */
  readonly requests: Rate;
  readonly creates: Rate;
}

export const REQUEST_RATES: RequestRates = {
  failedAuthentications: { burst: 100, perSecond: 10 },
  requests: { burst: 20_000, perSecond: 10_000 },
  creates: { burst: 20_000, perSecond: 1000 },
};

/** An IPv6 client can choose any address of its /64. */
const IPV6_GROUPS = 4;

export class RequestLimits implements Throttle {
  readonly #failures: TokenBuckets;
  readonly #requests: TokenBuckets;
  readonly #creates: TokenBuckets;

  constructor(clock: Clock, rates: Partial<RequestRates> = {}) {
    const { failedAuthentications, requests, creates } = { ...REQUEST_RATES, ...rates };
    this.#failures = new TokenBuckets(failedAuthentications, clock);
    this.#requests = new TokenBuckets(requests, clock);
    this.#creates = new TokenBuckets(creates, clock);
  }

  admit(user: UserInfo, verb: string): void {
    const key = user.extra[EXTRA.keyUid]?.[0] ?? `user ${user.name}`;
    refuseAfter(this.#requests.take(key), 'too many requests with this key, try again later');
    if (verb !== 'create') return;
    refuseAfter(this.#creates.take(key), 'too many creates with this key, try again later');
  }

  refused(address: string): void {
    const waitMs = this.#failures.take(networkOf(address));
    refuseAfter(waitMs, 'too many failed authentications from this address, try again later');
  }

  /** Administrators, and the webhooks of clusters, which have a key of this group or a token of the host cluster. */
  isPrivileged({ groups, extra }: UserInfo, path: ResourcePath | undefined): boolean {
    if (groups.includes(ADMINISTRATORS) || groups.includes(AUTH_DELEGATORS)) return true;
    return extra[EXTRA.keyUid] === undefined && REVIEWS.has(path?.resource ?? '');
  }
}

const REVIEWS: ReadonlySet<string> = new Set(['subjectaccessreviews', 'tokenreviews']);

function refuseAfter(waitMs: number, message: string): void {
  if (waitMs > 0) throw tooManyRequests(message, Math.max(1, Math.ceil(waitMs / 1000)));
}

/** The part of an address that is counted as one client. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::', 2);
  const groups = head.split(':').filter((group) => group !== '');
  if (tail !== undefined) {
    const rest = tail.split(':').filter((group) => group !== '');
    while (groups.length + rest.length < 8) groups.push('0');
    groups.push(...rest);
  }
  return groups.slice(0, IPV6_GROUPS).join(':');
}
