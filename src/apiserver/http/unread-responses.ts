/** Limits, per user, the bytes of large responses that clients have not read: a list stays in memory until its client has read it. */

import type { ServerResponse } from 'node:http';
import { COUNTED_RESPONSE_BYTES_MIN, UNREAD_RESPONSES_PER_USER_BYTES_MAX } from '../limits.ts';

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
