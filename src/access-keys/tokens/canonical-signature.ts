/**
 * Prevents a second valid form of a token. For an ECDSA signature (r, s), (r, n − s) is valid as well, and base64url decoding ignores unused
 * bits: tokens are issued with the lower s in canonical base64url, and other encodings are rejected.
 */

/** Order n of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const HALF_ORDER = ORDER >> 1n;
const SCALAR_BYTES = 32;

/** `token`: a JWT signed with ES256. */
export function withCanonicalSignature(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  const signature = Buffer.from(token.slice(end), 'base64url');
  const s = scalarAt(signature, SCALAR_BYTES);
  if (s <= HALF_ORDER) return token;
  const lower = (ORDER - s).toString(16).padStart(2 * SCALAR_BYTES, '0');
  const canonical = Buffer.concat([signature.subarray(0, SCALAR_BYTES), Buffer.from(lower, 'hex')]);
  return token.slice(0, end) + canonical.toString('base64url');
}

/** Returns false if s is above n / 2, or if the signature is not canonical base64url of 64 bytes. Does not throw. */
export function hasCanonicalSignature(token: string): boolean {
  const text = token.slice(token.lastIndexOf('.') + 1);
  const signature = Buffer.from(text, 'base64url');
  if (signature.length !== 2 * SCALAR_BYTES || signature.toString('base64url') !== text) return false;
  return scalarAt(signature, SCALAR_BYTES) <= HALF_ORDER;
}

function scalarAt(signature: Buffer, offset: number): bigint {
  return BigInt(`0x${signature.subarray(offset, offset + SCALAR_BYTES).toString('hex')}`);
}
