/** Lines that wait to be written, as bytes: strings that wait would survive collections of the young generation. */

/** More than the log writes at once, so that it rarely grows; untouched pages are not resident. */
const BYTES_MIN = 512 * 1024;
/** UTF-8 takes no more for each unit of a string. */
const UNIT_BYTES_MAX = 3;

export interface Lines {
  readonly bytes: Buffer;
  readonly count: number;
}

export class LineBuffer {
  #buffer = Buffer.allocUnsafe(BYTES_MIN);
  #length = 0;
  #count = 0;

  /** Bytes that wait. */
  get length(): number {
    return this.#length;
  }

  /** `line` ends with a line feed. */
  append(line: string): void {
    const needed = this.#length + line.length * UNIT_BYTES_MAX;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#length += this.#buffer.write(line, this.#length);
    this.#count++;
  }

  /** All lines; the buffer is empty afterwards. */
  take(): Lines {
    const lines = { bytes: this.#buffer.subarray(0, this.#length), count: this.#count };
    this.#buffer = Buffer.allocUnsafe(BYTES_MIN);
    this.#length = 0;
    this.#count = 0;
    return lines;
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, needed));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
