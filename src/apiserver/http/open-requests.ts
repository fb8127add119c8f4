/** Requests in flight: limits their number, and closes connections whose client does not read the response. */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../base/clock.ts';
import { REQUESTS_IN_FLIGHT_MAX } from '../limits.ts';
import { SharedLimit, type Sender } from './shared-limit.ts';

interface OpenRequest {
  /** Undefined: the request does not count. */
  readonly sender: Sender | undefined;
  /** Monotonic time at which all of the response was written; undefined: not yet. */
  writtenMs: number | undefined;
}

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

  /** The response is written. The client must read it within the timeout from now on. */
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
