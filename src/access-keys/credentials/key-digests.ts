/** What the store keeps of an access key: enough to recognise it, nothing to make it from. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { keyFormOf } from './access-key.ts';

/** Stored with the object. */
export interface StoredCredential {
  /** Finds the key: the id in its text, or for a key that a client brought along a keyed hash. */
  readonly id: string;
  /** HMAC-SHA-256 of the whole text under the pepper, base64. */
  readonly digest: string;
}

/** The same of a text that somebody sent. */
export interface PresentedCredential {
  readonly id: string;
  readonly digest: Buffer;
}

/** No id of ours: it has other characters. */
const SUPPLIED = 'supplied:';

export class KeyDigests {
  readonly #pepper: Buffer;

  /** `pepper` lies outside the store: a stolen database alone cannot be tried against guesses. */
  constructor(pepper: Buffer) {
    this.#pepper = pepper;
  }

  /** Undefined for a text that can be no key: a typo, or something too short. */
  presented(text: string): PresentedCredential | undefined {
    const form = keyFormOf(text);
    if (form.kind === 'none') return undefined;
    const digest = this.#hmac('digest', text);
    return { id: form.kind === 'own' ? form.id : this.#suppliedId(text), digest };
  }

  /** For a text that was accepted as a key. */
  stored(text: string): StoredCredential {
    const form = keyFormOf(text);
    const id = form.kind === 'own' ? form.id : this.#suppliedId(text);
    return { id, digest: this.#hmac('digest', text).toString('base64') };
  }

  #suppliedId(text: string): string {
    return SUPPLIED + this.#hmac('id', text).subarray(0, 16).toString('base64url');
  }

  #hmac(purpose: 'digest' | 'id', text: string): Buffer {
    return createHmac('sha256', this.#pepper).update(purpose).update('\0').update(text).digest();
  }
}

/** In constant time. */
export function isSameDigest(known: Buffer, presented: Buffer): boolean {
  return known.length === presented.length && timingSafeEqual(known, presented);
}
