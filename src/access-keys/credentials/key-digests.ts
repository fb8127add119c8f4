/** Digests of access keys: the store can recognise a key but not reproduce it. */

import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';
import { keyFormOf } from './access-key.ts';

/** The stored form of a secret. */
export interface StoredCredential {
  /** Index of the key: the id in its text, or a keyed hash of a key that a client supplied. */
  readonly id: string;
  /** HMAC-SHA-256 of the whole text under the pepper, base64. */
  readonly digest: string;
}

/** The digest of a bearer token. */
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

  /** `text` is an accepted key. */
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

/** Compares in constant time. */
export function isSameDigest(known: Buffer, presented: Buffer): boolean {
  return known.length === presented.length && timingSafeEqual(known, presented);
}
