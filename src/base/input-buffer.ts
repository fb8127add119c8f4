/** Input that arrives in pieces of any size. What a piece of one byte costs on its own, an object or a string, is many times its bytes. */

const EMPTY = Buffer.alloc(0);

/** Collects pieces in one buffer, which doubles when it is full. */
export class InputBuffer {
  readonly #bytesMax: number;
  #bytes = EMPTY;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies the piece. False, and nothing is added, when all would be more than the limit. */
  append(piece: Uint8Array): boolean {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) return false;
    if (length > this.#bytes.length) this.#grow(length);
    this.#bytes.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  /** All bytes; the buffer is empty afterwards. */
  take(): Buffer {
    const all = this.#bytes.subarray(0, this.#length);
    this.#bytes = EMPTY;
    this.#length = 0;
    return all;
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafe(Math.max(length, Math.min(2 * this.#bytes.length, this.#bytesMax)));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}

/** All of a stream. Undefined: it has more bytes than the limit; it is read no further. */
export async function collectInput(
  source: AsyncIterable<Uint8Array | string>,
  bytesMax: number,
): Promise<Buffer | undefined> {
  const input = new InputBuffer(bytesMax);
  for await (const piece of source) if (!input.append(Buffer.from(piece))) return undefined;
  return input.take();
}

const BLOCK_BYTES = 16 * 1024;

/** Passes pieces on in blocks: larger pieces as they are, smaller ones together. */
export class InputBlocks {
  readonly #pass: (block: Buffer) => void;
  readonly #pieces = new InputBuffer(BLOCK_BYTES);

  constructor(pass: (block: Buffer) => void) {
    this.#pass = pass;
  }

  add(piece: Buffer): void {
    if (this.#pieces.append(piece)) return;
    this.flush();
    if (!this.#pieces.append(piece)) this.#pass(piece);
  }

  /** After the last piece. */
  flush(): void {
    if (this.#pieces.length > 0) this.#pass(this.#pieces.take());
  }
}
