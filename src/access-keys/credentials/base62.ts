/** Base 62: digits and letters only, so that a key is one word to a mouse, a shell and a scanner. */

/** Random bytes of a cryptographic generator. */
export type RandomBytes = (size: number) => Buffer;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 62 in a byte: a byte from here on would make some digits likelier than others. */
const FAIR_BELOW = 248;

/** `length` digits, each of the 62 equally likely. */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length + 8)) {
      if (byte < FAIR_BELOW && text.length < length) text += ALPHABET.charAt(byte % 62);
    }
  }
  return text;
}

/** A whole number from 0 on, with zeros in front up to `length` digits. */
export function base62Of(value: number, length: number): string {
  let text = '';
  for (let rest = value; text.length < length || rest > 0; rest = Math.floor(rest / 62)) {
    text = ALPHABET.charAt(rest % 62) + text;
  }
  return text;
}
