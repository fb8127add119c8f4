/** Base 62: only digits and letters, so that a double click, a shell and a scanner take a key as one word. */

/** A cryptographic random generator. */
export type RandomBytes = (size: number) => Buffer;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 62 in a byte: larger bytes are skipped, because they would bias the digits. */
const FAIR_BELOW = 248;

/** `length` uniformly distributed digits. */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length + 8)) {
      if (byte < FAIR_BELOW && text.length < length) text += ALPHABET.charAt(byte % 62);
    }
  }
  return text;
}

/** A non-negative integer, padded with zeros to `length` digits. */
export function base62Of(value: number, length: number): string {
  let text = '';
  for (let rest = value; text.length < length || rest > 0; rest = Math.floor(rest / 62)) {
    text = ALPHABET.charAt(rest % 62) + text;
  }
  return text;
}
