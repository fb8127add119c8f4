/** What clients may send and occupy: rates of requests, requests in flight, bodies being read, unread responses. */

import type { ServerResponse, IncomingMessage } from 'node:http';
import type { Clock, Timer } from '../../base/clock.ts';
import { InputBuffer } from '../../base/input-buffer.ts';
import {
  REQUESTS_IN_FLIGHT_MAX,
  BODIES_BYTES_MAX,
  BODIES_MAX,
  BODY_BYTES_MAX,
  BODY_BYTES_PER_SECOND_MIN,
  COUNTED_RESPONSE_BYTES_MIN,
  UNREAD_RESPONSES_PER_USER_BYTES_MAX,
} from '../limits.ts';
import type { ResourcePath } from '../request/request-info.ts';
import { TokenBuckets, type Rate } from '../../base/token-bucket.ts';
import type { UserInfo } from '../user.ts';
import { badRequest, requestTimeout, tooLarge, tooManyRequests } from '../status.ts';

interface OpenRequest {
  readonly sender: Sender | undefined;
  /** Monotonic time at which all of the response was written; undefined: not yet. */
  writtenMs: number | undefined;
}

/** Requests in flight: limits their number, and closes connections whose client does not read the response. */
export class OpenRequests {
  readonly #clock: Clock;
  readonly #responseMs: number;
  readonly #inFlight = new SharedLimit(REQUESTS_IN_FLIGHT_MAX);
  readonly #open = new Map<ServerResponse, OpenRequest>();
  #timer: Timer | undefined;

  constructor(clock: Clock, responseMs: number) {
    this.#clock = clock;
    this.#responseMs = responseMs;
  }

  /** False when too many requests are in flight. Counts the request until its response is written and read. */
  begin(response: ServerResponse, sender: Sender): boolean {
    if (!this.#inFlight.take(sender)) return false;
    this.#add(response, sender);
    return true;
  }

  written(response: ServerResponse): void {
    if (response.writableFinished || response.destroyed) {
      this.leave(response);
      return;
    }
    const request = this.#open.get(response) ?? this.#add(response, undefined);
    request.writtenMs = this.#clock.monotonicMs();
    this.#timer ??= this.#clock.schedule(this.#responseMs, () => this.#endSlow());
  }

  /** The request is done, or has become a watch, which has limits of its own. */
  leave(response: ServerResponse): void {
    const sender = this.#open.get(response)?.sender;
    if (sender) this.#inFlight.release(sender);
    this.#open.delete(response);
  }

  #add(response: ServerResponse, sender: Sender | undefined): OpenRequest {
    const request: OpenRequest = { sender, writtenMs: undefined };
    this.#open.set(response, request);
    // Not `once`, which wraps the listener and removes it again: the event comes once anyway.
    response.on('close', () => {
      // The work for a client that has left continues, and counts until it is done.
      if (request.writtenMs !== undefined) this.leave(response);
    });
    return request;
  }

  #endSlow(): void {
    this.#timer = undefined;
    const oldestMs = this.#clock.monotonicMs() - this.#responseMs;
    let nextMs: number | undefined;
    for (const [response, { writtenMs }] of this.#open) {
      if (writtenMs === undefined) continue;
      if (writtenMs <= oldestMs) response.destroy();
      else nextMs = Math.min(nextMs ?? writtenMs, writtenMs);
    }
    if (nextMs === undefined) return;
    this.#timer = this.#clock.schedule(nextMs - oldestMs, () => this.#endSlow());
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

const EMPTY = Buffer.alloc(0);

/** Reads bodies, with limits on size and time of each, and on number and size of all that are read at the same time. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #bodyMs: number;
  /** Bodies that are being read now, and their bytes. */
  readonly #bodies = new SharedLimit(BODIES_MAX);
  readonly #bytes = new SharedLimit(BODIES_BYTES_MAX);

  /** `bodyMs`: time for an empty body; more bytes have more time. */
  constructor(clock: Clock, bodyMs: number) {
    this.#clock = clock;
    this.#bodyMs = bodyMs;
  }

  /** Throws a `StatusError`: 408, 413, 429, or 400 when the client closed the connection. */
  async read(request: IncomingMessage, sender: Sender): Promise<Buffer> {
    const length = request.headers['content-length'];
    if (length === undefined && request.headers['transfer-encoding'] === undefined) return EMPTY;
    if (Number(length) > BODY_BYTES_MAX) throw tooLarge(BODY_BYTES_MAX);
    if (!this.#bodies.take(sender)) {
      throw tooManyRequests('too many request bodies are being sent, try again later');
    }
    const body = new InputBuffer(BODY_BYTES_MAX);
    let taken = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onData = (bytes: Buffer): void => {
      if (taken + bytes.length > BODY_BYTES_MAX) reject(tooLarge(BODY_BYTES_MAX));
      else if (this.#bytes.take(sender, bytes.length)) {
        taken += bytes.length;
        body.append(bytes);
      } else reject(tooManyRequests('too many large requests are in flight, try again later'));
    };
    const onClose = (): void => reject(badRequest('the request ended before its body was complete'));
    const startedMs = this.#clock.monotonicMs();
    const onDeadline = (): void => {
      const allowedMs = this.#bodyMs + (taken / BODY_BYTES_PER_SECOND_MIN) * 1000;
      const leftMs = startedMs + allowedMs - this.#clock.monotonicMs();
      if (leftMs <= 0) reject(requestTimeout());
      else deadline = this.#clock.schedule(leftMs, onDeadline);
    };
    let deadline = this.#clock.schedule(this.#bodyMs, onDeadline);
    request.on('data', onData).on('end', resolve).on('close', onClose);
    if (request.destroyed) onClose();
    try {
      await promise;
    } finally {
      deadline.cancel();
      // The rest of a rejected body is discarded, or no other request could follow on this connection.
      request.off('data', onData).off('end', resolve).off('close', onClose).resume();
      this.#bytes.release(sender, taken);
      this.#bodies.release(sender);
    }
    return body.take();
  }
}

/** Whom a request counts for. */
export interface Sender {
  readonly name: string;
  /** Administrators and the webhooks of clusters: others leave a part of each limit to them. */
  readonly isPrivileged: boolean;
}

/** Of the limit. */
const SHARE_OF_A_USER = 1 / 4;
const SHARE_FOR_PRIVILEGED = 1 / 8;

/** A limit that all users share: one user cannot exhaust it. */
export class SharedLimit {
  readonly #max: number;
  /** By user name. */
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False, and nothing taken, when the user or all users would have too much. */
  take({ name, isPrivileged }: Sender, amount = 1): boolean {
    const own = (this.#takenBy.get(name) ?? 0) + amount;
    const all = this.#taken + amount;
    if (own > this.#max * SHARE_OF_A_USER) return false;
    if (all > this.#max * (isPrivileged ? 1 : 1 - SHARE_FOR_PRIVILEGED)) return false;
    this.#takenBy.set(name, own);
    this.#taken = all;
    return true;
  }

  release({ name }: Sender, amount = 1): void {
    const left = (this.#takenBy.get(name) ?? 0) - amount;
    if (left > 0) this.#takenBy.set(name, left);
    else this.#takenBy.delete(name);
    this.#taken -= amount;
  }
}

export class UnreadResponses {
  readonly #bytesMax: number;
  /** By user name. */
  readonly #bytes = new Map<string, number>();

  constructor(bytesMax = UNREAD_RESPONSES_PER_USER_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Must be called before a response is written. False: the user has too many unread bytes. The first response is accepted whatever its size. */
  take(user: string, bytes: number, response: Pick<ServerResponse, 'once'>): boolean {
    if (bytes < COUNTED_RESPONSE_BYTES_MIN) return true;
    const unread = this.#bytes.get(user) ?? 0;
    if (unread > 0 && unread + bytes > this.#bytesMax) return false;
    this.#bytes.set(user, unread + bytes);
    response.once('close', () => this.#release(user, bytes));
    return true;
  }

  #release(user: string, bytes: number): void {
    const left = (this.#bytes.get(user) ?? 0) - bytes;
    if (left > 0) this.#bytes.set(user, left);
    else this.#bytes.delete(user);
  }
}

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

const REQUEST_RATES: RequestRates = {
  failedAuthentications: { burst: 100, perSecond: 10 },
  requests: { burst: 20_000, perSecond: 10_000 },
  creates: { burst: 20_000, perSecond: 1000 },
};

export interface SenderRules {
  /** The name of the client that the rate of requests is counted for, such as a key of the user. */
  clientOf(user: UserInfo): string;
  /** The request may use the part of each limit that other requests leave: see `SharedLimit`. `path`: undefined for a non-resource request. */
  isPrivileged(user: UserInfo, path: ResourcePath | undefined): boolean;
}

/** Each of its methods throws a 429 `StatusError` above a limit. */
export class RequestLimits {
  readonly #rules: SenderRules;
  readonly #failures: TokenBuckets;
  readonly #requests: TokenBuckets;
  readonly #creates: TokenBuckets;

  constructor(clock: Clock, rules: SenderRules, rates: Partial<RequestRates> = {}) {
    const { failedAuthentications, requests, creates } = { ...REQUEST_RATES, ...rates };
    this.#rules = rules;
    this.#failures = new TokenBuckets(failedAuthentications, clock);
    this.#requests = new TokenBuckets(requests, clock);
    this.#creates = new TokenBuckets(creates, clock);
  }

  admit(user: UserInfo, verb: string): void {
    const client = this.#rules.clientOf(user);
    refuseAfter(this.#requests.take(client), 'too many requests with this key, try again later');
    if (verb !== 'create') return;
    refuseAfter(this.#creates.take(client), 'too many creates with this key, try again later');
  }

  isPrivileged(user: UserInfo, path: ResourcePath | undefined): boolean {
    return this.#rules.isPrivileged(user, path);
  }

  refused(address: string): void {
    const waitMs = this.#failures.take(networkOf(address));
    refuseAfter(waitMs, 'too many failed authentications from this address, try again later');
  }
}

export function refuseAfter(waitMs: number, message: string): void {
  if (waitMs > 0) throw tooManyRequests(message, Math.max(1, Math.ceil(waitMs / 1000)));
}

/** An IPv6 client can choose any address of its /64. */
const IPV6_GROUPS = 4;

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
