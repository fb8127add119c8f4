/** Reads the bodies of requests, with limits on size and time of each, and on number and size of all that are read at the same time. */

import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import { BODIES_BYTES_MAX, BODIES_MAX, BODY_BYTES_MAX, BODY_BYTES_PER_SECOND_MIN } from '../limits.ts';
import { badRequest, requestTimeout, tooLarge, tooManyRequests } from '../status.ts';
import { SharedLimit, type Sender } from './shared-limit.ts';

const EMPTY = Buffer.alloc(0);

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
    const chunks: Buffer[] = [];
    let taken = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onData = (bytes: Buffer): void => {
      if (taken + bytes.length > BODY_BYTES_MAX) reject(tooLarge(BODY_BYTES_MAX));
      else if (this.#bytes.take(sender, bytes.length)) {
        taken += bytes.length;
        chunks.push(bytes);
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
    return chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks, taken);
  }
}
