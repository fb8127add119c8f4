/** The encodings in which a secret could be stored or logged. */

export class SecretHunt {
  /** What it is called → its bytes. */
  readonly #secrets = new Map<string, Buffer>();

  /** Answers the secret again. */
  add<T extends string | Buffer>(name: string, secret: T): T {
    this.#secrets.set(name, Buffer.from(secret as Buffer)); // or from text
    return secret;
  }

  get size(): number {
    return this.#secrets.size;
  }

  /** `NAME as FORM in PLACE` for all that is found. */
  findIn(place: string, bytes: Buffer | string): string[] {
    const haystack = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const found: string[] = [];
    for (const [name, secret] of this.#secrets) {
      for (const [form, needle] of formsOf(secret)) {
        const at = haystack.indexOf(needle);
        if (at >= 0)
          found.push(
            `${name} as ${form} in ${place}: …${haystack.toString('latin1', Math.max(0, at - 80), at)}`,
          );
      }
    }
    return found;
  }
}

function formsOf(secret: Buffer): [string, string | Buffer][] {
  const hex = secret.toString('hex');
  return [
    ['itself', secret],
    ['hex', hex],
    ['HEX', hex.toUpperCase()],
    ['URL', hex.replaceAll(/../g, '%$&')],
    ['UTF-16', Buffer.from(secret.toString('latin1'), 'utf16le')],
    ['half of it', secret.subarray(0, Math.max(16, secret.length >> 1))],
    ...[0, 1, 2].flatMap((shift): [string, string][] => {
      const text = insideBase64(secret, shift);
      return [
        [`base64 at ${shift}`, text],
        [`base64url at ${shift}`, text.replaceAll('+', '-').replaceAll('/', '_')],
      ];
    }),
  ];
}

/** What of the secret stays the same in base64 whatever stands around it, `shift` bytes behind a multiple of three. */
function insideBase64(secret: Buffer, shift: number): string {
  const whole = Buffer.concat([Buffer.alloc(shift), secret])
    .toString('base64')
    .replace(/=+$/, '');
  const first = Math.ceil((shift * 8) / 6);
  const last = Math.floor(((shift + secret.length) * 8) / 6);
  return whole.slice(first, last);
}
