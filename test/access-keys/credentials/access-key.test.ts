/** Generation, format and digests of access keys. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  keyFormOf,
  generateAccessKey,
  suppliedKeyProblem,
  base62Of,
  randomBase62,
  isSameDigest,
  KeyDigests,
} from '../../../src/access-keys/credentials/access-key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('base 62', () => {
  test('every digit is equally likely', () => {
    const counts = new Map<string, number>();
    for (const digit of randomBase62(62_000, randomBytes)) counts.set(digit, (counts.get(digit) ?? 0) + 1);
    expect([...counts.keys()].toSorted().join('')).toBe(DIGITS);
    // 1000 each on average, standard deviation 31: ten of them away never happens, a byte's remainder (1234) would.
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(200);
  });

  test('bytes that would bias the digits are discarded', () => {
    const bytes = [255, 248, 247, 0, 61, 62];
    expect(randomBase62(4, () => Buffer.from(bytes))).toBe('z0z0');
  });

  test.each([
    [0, '000000'],
    [61, '00000z'],
    [62, '000010'],
    [2 ** 32 - 1, '4gfFC3'],
  ])('%d is %s', (value, text) => {
    expect(base62Of(value, 6)).toBe(text);
  });
});

describe('generated keys', () => {
  test('have an id, a secret and a checksum', () => {
    const key = generateAccessKey(randomBytes);
    expect(key).toMatch(/^pak_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    expect(keyFormOf(key)).toEqual({ kind: 'own', id: key.slice(4, 16) });
    expect(suppliedKeyProblem(key)).toBeUndefined();
  });

  test('a changed, missing or added character is detected without a lookup', () => {
    const key = generateAccessKey(randomBytes);
    fc.assert(
      fc.property(fc.nat(key.length - 1), fc.constantFrom(...Array.from(DIGITS)), (at, digit) => {
        fc.pre(key[at] !== digit);
        // The prefix itself is no secret: without it the text is another kind of key.
        fc.pre(at > 3);
        expect(keyFormOf(key.slice(0, at) + digit + key.slice(at + 1))).toEqual({ kind: 'none' });
        expect(keyFormOf(key.slice(0, at) + key.slice(at + 1))).toEqual({ kind: 'none' });
        expect(keyFormOf(key.slice(0, at) + digit + key.slice(at))).toEqual({ kind: 'none' });
      }),
    );
  });
});

describe('keys that clients choose', () => {
  test.each([
    ['too short', 'aB3$'.repeat(7), /at least 32 characters/],
    ['too long', `${'x'.repeat(500)}0123456789abcdef`, /at most 512 characters/],
    ['with a space', 'correct horse battery staple, and more', /without spaces/],
    ['not ASCII', 'ä0123456789abcdefghijklmnopqrstuvwxyz', /printable ASCII/],
    ['a line break', '0123456789abcdefghijklmnopqrstuvwxyz\n', /printable ASCII/],
    ['one character', 'x'.repeat(40), /must be random/],
    ['few characters', 'abcabcabcabcabcabcabcabcabcabcabcabd', /must be random/],
    ['a repetition', '0123456789abcdef'.repeat(3), /must be random/],
    ['our form with a typo', `${generateAccessKey(randomBytes).slice(0, -1)}-`, /checksum/],
  ])('%s is refused, without a word of the key', (_what, key, problem) => {
    expect(suppliedKeyProblem(key)).toMatch(problem);
    expect(suppliedKeyProblem(key)).not.toContain(key);
  });

  test.each([
    randomBytes(16).toString('hex'),
    randomBytes(32).toString('base64'),
    '3f9c2b71-77aa-4d0e-9b52-0c1d2e3f4a5b',
  ])('%s is random enough', (key) => {
    expect(suppliedKeyProblem(key)).toBeUndefined();
    expect(keyFormOf(key)).toEqual({ kind: 'supplied' });
  });
});

describe('digests', () => {
  const digests = new KeyDigests(Buffer.alloc(32, 1));

  test('match only their own key, for any kind of key', () => {
    const texts = [
      generateAccessKey(randomBytes),
      generateAccessKey(randomBytes),
      'S3cret!S3cret-0123456789abcdefghij',
    ];
    for (const text of texts) {
      const stored = digests.stored(text);
      expect(JSON.stringify(stored)).not.toContain(text.slice(16));
      for (const other of texts) {
        const presented = digests.presented(other);
        const isSame = presented && isSameDigest(Buffer.from(stored.digest, 'base64'), presented.digest);
        expect(isSame).toBe(other === text);
        expect(presented?.id === stored.id).toBe(other === text);
      }
    }
  });

  test('depend on the pepper', () => {
    const key = generateAccessKey(randomBytes);
    expect(new KeyDigests(Buffer.alloc(32, 2)).stored(key).digest).not.toBe(digests.stored(key).digest);
  });

  test('do not throw for any text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1200 }), (bytes) => {
        const presented = digests.presented(Buffer.from(bytes).toString('utf16le'));
        expect(presented === undefined || presented.digest.length === 32).toBe(true);
      }),
    );
  });
});
