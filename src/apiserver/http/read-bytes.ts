/** Reads the bodies of requests, with one limit for each body and one for all bodies that are read at the same time. */

import type { IncomingMessage } from 'node:http';
import { BODIES_BYTES_MAX, BODY_BYTES_MAX } from '../limits.ts';
import { badRequest, tooLarge, tooManyRequests } from '../status.ts';

const EMPTY = Buffer.alloc(0);

export class BodyReader {
  /** Bytes of the bodies that are being read now. */
  #bytes = 0;

  /** Throws a `StatusError`: 413, 429, or 400 when the client closed the connection. */
  async read(request: IncomingMessage): Promise<Buffer> {
    const length = request.headers['content-length'];
    if (length === undefined && request.headers['transfer-encoding'] === undefined) return EMPTY;
    if (Number(length) > BODY_BYTES_MAX) throw tooLarge(BODY_BYTES_MAX);
    const chunks: Buffer[] = [];
    let taken = 0;
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        const bytes = chunk as Buffer; // no encoding is set
        taken += bytes.length;
        this.#bytes += bytes.length;
        if (taken > BODY_BYTES_MAX) throw tooLarge(BODY_BYTES_MAX);
        if (this.#bytes > BODIES_BYTES_MAX) {
          throw tooManyRequests('too many large requests are in flight, try again later');
        }
        chunks.push(bytes);
      }
    } catch (error) {
      // The rest is discarded, or no other request could follow on this connection.
      request.resume();
      if (request.destroyed) throw badRequest('the request ended before its body was complete');
      throw error;
    } finally {
      this.#bytes -= taken;
    }
    return chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks, taken);
  }
}
