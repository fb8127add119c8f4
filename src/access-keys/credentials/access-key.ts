/**
 * The text of an access key, `pak_<id>_<secret><checksum>`: 12, 43 and 6 digits of base 62. The id finds the key in the index, the secret
 * (256 bits) proves it, and the checksum refuses a typo without a look-up and lets scanners tell a leaked key from any other text.
 */

import { crc32 } from 'node:zlib';
import { base62Of, randomBase62, type RandomBytes } from './base62.ts';

const PREFIX = 'pak_';
const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
/** 62⁶ is more than 2³², so every CRC-32 fits. */
const CHECKSUM_LENGTH = 6;

const FORM = new RegExp(
  `^${PREFIX}([0-9A-Za-z]{${ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`,
);

export const SUPPLIED_LENGTH_MIN = 32;
export const SUPPLIED_LENGTH_MAX = 512;
/** A random text of 32 characters has at least as many, even in hexadecimal (probability 99.9 %). */
const DIFFERENT_MIN = 10;

export function generateAccessKey(randomBytes: RandomBytes): string {
  const id = randomBase62(ID_LENGTH, randomBytes);
  const body = `${PREFIX}${id}_${randomBase62(SECRET_LENGTH, randomBytes)}`;
  return body + checksumOf(body);
}

function checksumOf(body: string): string {
  return base62Of(crc32(body), CHECKSUM_LENGTH);
}

/**
 * Form of a text: `own` is a key that this server generated (with the id in it), `supplied` can be a key that a client supplied, `none`
 * cannot be a key.
 */
export type KeyForm =
  | { readonly kind: 'own'; readonly id: string }
  | { readonly kind: 'supplied' }
  | { readonly kind: 'none' };

const NONE: KeyForm = { kind: 'none' };

export function keyFormOf(text: string): KeyForm {
  if (!text.startsWith(PREFIX)) {
    const isPossible = text.length >= SUPPLIED_LENGTH_MIN && text.length <= SUPPLIED_LENGTH_MAX;
    return isPossible && isPlainText(text) ? { kind: 'supplied' } : NONE;
  }
  const match = FORM.exec(text);
  const [, id = '', checksum = ''] = match ?? [];
  if (!match || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== checksum) return NONE;
  return { kind: 'own', id };
}

/** Why a key that a client supplies is rejected, without the key itself; undefined: it is accepted. */
export function suppliedKeyProblem(text: string): string | undefined {
  if (text.length < SUPPLIED_LENGTH_MIN) {
    return `must have at least ${SUPPLIED_LENGTH_MIN} characters; omit it to have one generated`;
  }
  if (text.length > SUPPLIED_LENGTH_MAX) return `must have at most ${SUPPLIED_LENGTH_MAX} characters`;
  if (!isPlainText(text)) return 'must consist of printable ASCII characters without spaces';
  if (text.startsWith(PREFIX) && keyFormOf(text).kind === 'none') {
    return `must not begin with ${PREFIX}: its checksum is not that of a generated key`;
  }
  if (new Set(text).size < DIFFERENT_MIN || repeatsItself(text)) {
    return 'must be random: it has too few different characters or repeats itself; omit it to have one generated';
  }
  return undefined;
}

function isPlainText(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

function repeatsItself(text: string): boolean {
  // A text consists of equal parts if its doubling contains it before the second copy.
  return (text + text).indexOf(text, 1) < text.length;
}
