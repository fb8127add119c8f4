/** Requests in flight: limits their number, and closes connections whose client does not read the response. */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../base/clock.ts';
import { REQUESTS_IN_FLIGHT_MAX } from '../limits.ts';

export class OpenRequests {
  readonly #clock: Clock;
  readonly #responseMs: number;
  readonly #requestsMax: number;
  /** Response → monotonic time at which all of it was written; undefined: not yet. */
  readonly #open = new Map<ServerResponse, number | undefined>();
  #timer: Timer | undefined;

  constructor(clock: Clock, responseMs: number, requestsMax = REQUESTS_IN_FLIGHT_MAX) {
    this.#clock = clock;
    this.#responseMs = responseMs;
    this.#requestsMax = requestsMax;
  }

  get size(): number {
    return this.#open.size;
  }

  /** False when too many requests are in flight. */
  begin(response: ServerResponse): boolean {
    if (this.#open.size >= this.#requestsMax) return false;
    this.#open.set(response, undefined);
    // Not `once`, which wraps the listener and removes it again: the event comes once anyway.
    response.on('close', () => this.#open.delete(response));
    return true;
  }

  /** The response is written. The client must read it within the timeout from now on. */
  written(response: ServerResponse): void {
    if (response.writableFinished || !this.#open.has(response)) return;
    this.#open.set(response, this.#clock.monotonicMs());
    this.#timer ??= this.#clock.schedule(this.#responseMs, () => this.#endSlow());
  }

  /** The request has become a watch, which has limits of its own. */
  leave(response: ServerResponse): void {
    this.#open.delete(response);
  }

  #endSlow(): void {
    this.#timer = undefined;
    const oldestMs = this.#clock.monotonicMs() - this.#responseMs;
    let nextMs: number | undefined;
    for (const [response, sinceMs] of this.#open) {
      if (sinceMs === undefined) continue;
      if (sinceMs <= oldestMs) response.destroy();
      else nextMs = Math.min(nextMs ?? sinceMs, sinceMs);
    }
    if (nextMs === undefined) return;
    this.#timer = this.#clock.schedule(nextMs - oldestMs, () => this.#endSlow());
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
