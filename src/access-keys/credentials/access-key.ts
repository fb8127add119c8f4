/**
 * The text of an access key, `pak_<id>_<secret><checksum>`: 12, 43 and 6 digits of base 62. The id finds the key in the index, the secret
 * (256 bits) proves it, and the checksum refuses a typo without a look-up and lets scanners tell a leaked key from any other text. The store has only digests of keys.
 */

import { crc32 } from 'node:zlib';
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';

const PREFIX = 'pak_';
const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
/** 62⁶ is more than 2³², so every CRC-32 fits. */
const CHECKSUM_LENGTH = 6;

const FORM = new RegExp(
  `^${PREFIX}([0-9A-Za-z]{${ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`,
);

const SUPPLIED_LENGTH_MIN = 32;
const SUPPLIED_LENGTH_MAX = 512;
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
type KeyForm =
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

// Digests of access keys: the store can recognise a key but not reproduce it.

export interface StoredCredential {
  /** Index of the key: the id in its text, or a keyed hash of a key that a client supplied. */
  readonly id: string;
  /** HMAC-SHA-256 of the whole text under the pepper, base64. */
  readonly digest: string;
}

export interface PresentedCredential {
  readonly id: string;
  readonly digest: Buffer;
}

/** Never the beginning of a generated id, which has no colon. */
const SUPPLIED = 'supplied:';

export class KeyDigests {
  /** A key object: from bytes, each HMAC would create one first. */
  readonly #pepper: KeyObject;

  /** `pepper` is kept outside the store, so that guesses cannot be checked against a stolen database. */
  constructor(pepper: Buffer) {
    this.#pepper = createSecretKey(pepper);
  }

  /** Undefined for a text that cannot be a key: a wrong checksum, or too short. */
  presented(text: string): PresentedCredential | undefined {
    const form = keyFormOf(text);
    if (form.kind === 'none') return undefined;
    const digest = this.#hmac('digest', text);
    return { id: form.kind === 'own' ? form.id : this.#suppliedId(text), digest };
  }

  stored(text: string): StoredCredential {
    const form = keyFormOf(text);
    const id = form.kind === 'own' ? form.id : this.#suppliedId(text);
    return { id, digest: this.#hmac('digest', text).toString('base64') };
  }

  #suppliedId(text: string): string {
    return SUPPLIED + this.#hmac('id', text).subarray(0, 16).toString('base64url');
  }

  #hmac(purpose: 'digest' | 'id', text: string): Buffer {
    return createHmac('sha256', this.#pepper).update(`${purpose}\0${text}`).digest();
  }
}

export function isSameDigest(known: Buffer, presented: Buffer): boolean {
  return known.length === presented.length && timingSafeEqual(known, presented);
}

// Base 62: only digits and letters, so that a double click, a shell and a scanner take a key as one word.

export type RandomBytes = (size: number) => Buffer;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 62 in a byte: larger bytes are skipped, because they would bias the digits. */
const FAIR_BELOW = 248;

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
