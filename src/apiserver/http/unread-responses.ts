/** Large answers that their clients have not taken yet. A list is whole in memory until then, and nobody may fill that with lists. */

import type { ServerResponse } from 'node:http';
import { COUNTED_RESPONSE_BYTES_MIN, UNREAD_RESPONSES_PER_USER_BYTES_MAX } from '../limits.ts';

export class UnreadResponses {
  readonly #bytesMax: number;
  /** By the name of the user. */
  readonly #bytes = new Map<string, number>();

  constructor(bytesMax = UNREAD_RESPONSES_PER_USER_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Before an answer is written. False: this user has not read enough of the others. The first is always one to take, whatever its size. */
  take(user: string, bytes: number, response: Pick<ServerResponse, 'once'>): boolean {
    if (bytes < COUNTED_RESPONSE_BYTES_MIN) return true;
    const unread = this.#bytes.get(user) ?? 0;
    if (unread > 0 && unread + bytes > this.#bytesMax) return false;
    this.#bytes.set(user, unread + bytes);
    response.once('close', () => this.#taken(user, bytes));
    return true;
  }

  #taken(user: string, bytes: number): void {
    const left = (this.#bytes.get(user) ?? 0) - bytes;
    if (left > 0) this.#bytes.set(user, left);
    else this.#bytes.delete(user);
  }
}
