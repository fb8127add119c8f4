/** The memory of what API servers have begun to send, over all connections that share it. */

/** What a piece of input costs beside its bytes: an HTTP chunk, a line. */
export const PIECE_BYTES = 128;

/** INVARIANT: the shares add up to no more than the limit, because beyond it the connection with the largest is ended. */
export class InputBudget {
  readonly #bytesMax: number;
  readonly #shares = new Set<Share>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Of one connection. `end` must release the share. */
  open(end: (bytesMax: number) => void): InputShare {
    const share: Share = { bytes: 0, end };
    this.#shares.add(share);
    return {
      hold: (bytes) => this.#hold(share, bytes),
      release: () => {
        this.#bytes -= share.bytes;
        share.bytes = 0;
        this.#shares.delete(share);
      },
    };
  }

  #hold(share: Share, bytes: number): void {
    if (!this.#shares.has(share)) return;
    this.#bytes += bytes - share.bytes;
    share.bytes = bytes;
    while (this.#bytes > this.#bytesMax) this.#largest(share).end(this.#bytesMax);
  }

  #largest(first: Share): Share {
    let largest = first;
    for (const share of this.#shares) if (share.bytes > largest.bytes) largest = share;
    return largest;
  }
}

export interface InputShare {
  /** The bytes that the connection has now. May end this connection, or another one. */
  hold(bytes: number): void;
  release(): void;
}

interface Share {
  bytes: number;
  readonly end: (bytesMax: number) => void;
}
