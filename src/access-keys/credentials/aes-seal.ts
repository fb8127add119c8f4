/** AES-256-GCM for secrets in the store that must be read again. */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Seal } from '../types.ts';
import type { RandomBytes } from './base62.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ALGORITHM = 'aes-256-gcm';
/** Version of the format. */
const VERSION = 's1.';

export class AesSeal implements Seal {
  readonly #key: Buffer;
  readonly #randomBytes: RandomBytes;

  /** `key`: 32 bytes. */
  constructor(key: Buffer, randomBytes: RandomBytes) {
    this.#key = key;
    this.#randomBytes = randomBytes;
  }

  seal(plain: string, purpose: string): string {
    const nonce = this.#randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return VERSION + sealed.toString('base64url');
  }

  /** Throws an `Error` that names the purpose, never the text. */
  open(sealed: string, purpose: string): string {
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
    const isWhole = sealed.startsWith(VERSION) && bytes.length >= NONCE_BYTES + TAG_BYTES;
    if (!isWhole) throw new Error(`the stored value for ${purpose} is not a sealed text`);
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const text = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
    } catch (error) {
      const why = 'it was changed, or sealed for another purpose or with another master key';
      throw new Error(`the stored value for ${purpose} cannot be decrypted: ${why}`, { cause: error });
    }
  }
}
